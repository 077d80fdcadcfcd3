"""Known negatives: divided once, never part of U, trained on as rows of their own."""

import numpy as np
import pytest

from onesided.core.errors import DataError
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.data.problem.dataset import PUSplit
from onesided.data.problem.negatives import (
    KnownNegatives,
    add_negatives,
    clean_from_negatives,
    divide_negatives,
    joined,
)
from onesided.data.problem.samples import Samples
from onesided.data.problem.split import split_one_sided


def samples(negatives: int = 20) -> Samples:
    """30 positives, 50 unlabelled and some negatives; every vector holds its own number."""
    classes = np.repeat([POSITIVE, UNKNOWN, NEGATIVE], [30, 50, negatives]).astype(np.int64)
    values = np.arange(len(classes), dtype=np.float32)[:, None]
    names = tuple(f"{row}" for row in range(len(classes)))
    return Samples(values, classes, names, kind="vector")


def problem(negatives: int = 20) -> tuple[PUSplit, KnownNegatives]:
    data = samples(negatives)
    split = split_one_sided(
        data, data.classes == POSITIVE, held_out_share=0.2, scenario="single-set", seed=1
    )
    known = divide_negatives(data, held_out_share=0.2, seed=1)
    assert known is not None
    return split, known


def test_the_same_share_is_held_out_as_of_p_and_u() -> None:
    _, known = problem()
    assert (len(known.train), len(known.held_out), len(known)) == (16, 4, 20)
    assert {*known.train.names, *known.held_out.names} == {str(row) for row in range(80, 100)}
    assert set(known.train.truth.tolist()) == {NEGATIVE}


def test_the_division_depends_on_the_seed_alone() -> None:
    def held_out(seed: int) -> tuple[str, ...]:
        known = divide_negatives(samples(), held_out_share=0.5, seed=seed)
        assert known is not None
        return known.held_out.names

    assert held_out(3) == held_out(3)
    assert held_out(3) != held_out(4)


def test_without_negatives_there_is_nothing_to_divide() -> None:
    assert divide_negatives(samples(0), held_out_share=0.2, seed=0) is None


def test_added_negatives_come_last_and_are_neither_labelled_nor_unlabelled() -> None:
    split, known = problem()
    extended = add_negatives(split, known.train)
    before, after = split.train, extended.train
    count = len(before)
    assert after.names[:count] == before.names
    assert after.names[count:] == known.train.names
    assert after.negative is not None
    assert after.negative.tolist() == [False] * count + [True] * 16
    assert not (after.labelled & after.negative).any()
    assert after.unlabelled.sum() == before.unlabelled.sum() == 40
    assert after.values.take(slice(count, None))[:, 0].tolist() == [
        float(name) for name in known.train.names
    ]
    assert extended.held_out is split.held_out


def test_the_roles_name_them() -> None:
    split, known = problem()
    roles = add_negatives(split, known.train).roles()
    assert {role for role, name in roles if int(name) >= 80} == {"train-negative"}
    assert {role for role, name in roles if 30 <= int(name) < 80} == {
        "train-unlabelled",
        "held-out-unlabelled",
    }


def test_adding_no_negatives_leaves_the_split_as_it_is() -> None:
    split, known = problem(2)
    none = joined(known.held_out, known.held_out)
    assert len(none) == 0
    assert add_negatives(split, none) is split


def test_a_clean_set_takes_as_many_positives_as_negatives_out_of_training() -> None:
    split, known = problem(10)
    rest, left = clean_from_negatives(split, known.train)
    clean = rest.clean
    assert clean is not None
    assert clean.truth.tolist() == [POSITIVE] * 8 + [NEGATIVE] * 8
    assert all(
        (int(name) < 30) == bool(t) for name, t in zip(clean.names, clean.truth, strict=True)
    )
    assert rest.train.labelled.sum() == 24 - 8
    assert {*rest.train.names, *clean.names[:8]} == set(split.train.names)
    assert len(left) == 0


def test_a_clean_set_leaves_half_of_p_and_the_other_negatives_for_training() -> None:
    split, known = problem(100)
    rest, left = clean_from_negatives(split, known.train)
    assert rest.train.labelled.sum() == 12
    assert rest.clean is not None
    assert len(rest.clean) == 24
    assert len(left) == 80 - 12
    assert not set(left.names) & set(rest.clean.names)


def test_a_clean_set_without_negatives_is_refused() -> None:
    split, known = problem(2)
    with pytest.raises(DataError, match="0 negatives and 24 positives"):
        clean_from_negatives(split, known.held_out)
