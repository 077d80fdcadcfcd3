"""Samples that belong together stay together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onesided.core.errors import DataError
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.data.problem.negatives import add_negatives, divide_negatives
from onesided.data.problem.samples import Samples
from onesided.data.problem.split import held_out_together, split_one_sided


def samples_of(classes: np.ndarray, groups: np.ndarray | None) -> Samples:
    return Samples(
        values=np.arange(len(classes), dtype=np.float32)[:, None],
        classes=classes.astype(np.int64),
        names=tuple(map(str, range(len(classes)))),
        kind="vector",
        groups={} if groups is None else {"street": groups},
    )


@settings(max_examples=50, deadline=None)
@given(count=st.integers(8, 30), share=st.sampled_from([0.1, 0.2, 0.5]), seed=st.integers(0, 9))
def test_no_group_is_on_both_sides_and_both_hold_p_and_u(
    count: int, share: float, seed: int
) -> None:
    rows = np.arange(400)
    classes = np.where(rows % 4 == 0, POSITIVE, np.where(rows % 10 == 1, NEGATIVE, UNKNOWN))
    groups = np.random.default_rng(seed).integers(0, count, 400)
    samples = samples_of(classes, groups)
    labelled = classes == POSITIVE
    held_out = held_out_together(samples, labelled, content=None, share=share, seed=seed)
    assert held_out is not None
    split = split_one_sided(
        samples,
        labelled,
        held_out_share=share,
        scenario="single-set",
        seed=seed,
        held_out=held_out,
    )
    known = divide_negatives(samples, held_out_share=share, seed=seed, held_out=held_out)
    assert split.held_out is not None
    assert known is not None
    training = add_negatives(split, known.train).train
    assert training.groups is not None
    assert split.held_out.groups is not None
    assert known.held_out.groups is not None
    outside = {*split.held_out.groups, *known.held_out.groups}
    assert not outside & set(training.groups)
    assert split.held_out.labelled.any()
    assert split.held_out.unlabelled.any()
    np.testing.assert_array_equal(training.groups, [groups[int(name)] for name in training.names])
    # The largest of eight groups holds a fifth of the rows.
    assert abs(held_out.mean() - share) < 0.15


def test_without_groups_the_split_is_what_it_always_was() -> None:
    classes = np.where(np.arange(100) % 3 == 0, POSITIVE, UNKNOWN)
    samples = samples_of(classes, None)
    assert held_out_together(samples, classes == POSITIVE, content=None, share=0.2, seed=0) is None


@pytest.mark.parametrize("groups", [np.zeros(60), np.arange(60) % 2])
def test_groups_that_cannot_be_divided_are_refused(groups: np.ndarray) -> None:
    classes = np.where(np.arange(60) % 2 == 0, POSITIVE, UNKNOWN)
    with pytest.raises(DataError, match="groups cannot be divided"):
        held_out_together(
            samples_of(classes, groups), classes == POSITIVE, content=None, share=0.2, seed=0
        )
