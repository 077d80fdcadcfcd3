"""Answered items: they teach, leave the pool, and no figure counts them."""

import numpy as np
import pytest

from onesided.core.errors import DataError
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.data.problem.answered import with_answers
from onesided.data.problem.content import counted
from onesided.data.problem.dataset import PUSplit
from onesided.data.problem.negatives import KnownNegatives, divide_negatives
from onesided.data.problem.samples import Samples
from onesided.data.problem.split import split_one_sided


def problem(negatives: int = 0) -> tuple[PUSplit, KnownNegatives | None]:
    """30 positives, 50 unlabelled and some negatives; every vector holds its own number."""
    classes = np.repeat([POSITIVE, UNKNOWN, NEGATIVE], [30, 50, negatives]).astype(np.int64)
    values = np.arange(len(classes), dtype=np.float32)[:, None]
    names = tuple(f"{row}\\" for row in range(len(classes)))  # a backslash is written as two
    data = Samples(values, classes, names, kind="vector")
    split = split_one_sided(
        data, data.classes == POSITIVE, held_out_share=0.2, scenario="single-set", seed=1
    )
    return split, divide_negatives(data, held_out_share=0.2, seed=1)


def unlabelled(split: PUSplit, part: str, count: int) -> list[str]:
    data = getattr(split, part)
    return [data.names[row] for row in np.flatnonzero(data.unlabelled)[:count]]


def written(names: list[str]) -> list[str]:
    return [name.replace("\\", "\\\\") for name in names]


@pytest.mark.parametrize("negatives", [0, 10])
def test_confirmed_items_of_both_parts_are_trained_on(negatives: int) -> None:
    split, known = problem(negatives)
    found = unlabelled(split, "train", 3) + unlabelled(split, "held_out", 2)
    wrong = unlabelled(split, "train", 5)[3:] + unlabelled(split, "held_out", 3)[2:]
    done = with_answers(split, known, positive=written(found), negative=written(wrong))
    assert (done.positives, done.rejected, done.known) == (5, 3, 0)
    train = done.split.train
    labelled = {name for name, is_p in zip(train.names, train.labelled, strict=True) if is_p}
    assert set(found) <= labelled
    assert not set(wrong) & {*train.names, *done.split.held_out.names}  # type: ignore[union-attr]
    assert done.negatives is not None
    assert set(wrong) <= set(done.negatives.train.names)
    assert len(done.negatives) == negatives + 3
    # Values go with their names.
    numbers = train.values.take(slice(None))[:, 0].astype(int)
    assert [f"{number}\\" for number in numbers] == list(train.names)
    assert (train.truth[train.labelled] == POSITIVE).all()


def test_what_is_held_out_and_not_answered_stays_held_out() -> None:
    split, known = problem()
    (found,) = unlabelled(split, "held_out", 1)
    done = with_answers(split, known, positive=written([found]), negative=[])
    assert split.held_out is not None
    assert done.split.held_out is not None
    assert done.split.held_out.names == tuple(n for n in split.held_out.names if n != found)


def test_figures_count_no_item_that_a_review_found() -> None:
    split, known = problem()
    found = unlabelled(split, "train", 4)
    done = with_answers(split, known, positive=written(found), negative=[])
    rows = counted(done.split.train)
    assert rows is not None
    left_out = {n for n, c in zip(done.split.train.names, rows, strict=True) if not c}
    assert left_out == set(found)
    assert counted(split.train) is None
    again = with_answers(done.split, done.negatives, positive=[], negative=[])
    assert again.split.train.found is not None
    assert again.split.train.found.sum() == 4
    assert (again.split.train.some(np.arange(5)).found is not None) is True


def test_items_that_are_labelled_already_are_counted_and_stay() -> None:
    split, known = problem(10)
    p = [split.train.names[row] for row in np.flatnonzero(split.train.labelled)[:2]]
    assert known is not None
    n = list(known.train.names[:1])
    done = with_answers(split, known, positive=written(p), negative=written(n))
    assert (done.positives, done.rejected, done.known) == (0, 0, 3)
    assert done.split.fingerprint() == split.fingerprint()


def test_a_name_that_is_nowhere_is_refused() -> None:
    split, known = problem()
    with pytest.raises(DataError, match=r"name 'nobody', which is not in the data \(nor are 1 oth"):
        with_answers(split, known, positive=["nobody"], negative=["nowhere"])


def test_a_pool_that_is_answered_to_the_last_item_needs_no_training() -> None:
    split, known = problem()
    every = written(unlabelled(split, "train", 99))
    with pytest.raises(DataError, match="no pool is left to rank"):
        with_answers(split, known, positive=every, negative=[])
