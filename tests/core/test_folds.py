"""Folds: groups stay whole, copies stay together, P and U are spread evenly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onesided.core.folds import assign_folds, same_content, sides


def alone(count: int) -> np.ndarray:
    """Return groups of one item each."""
    return np.arange(count)


def dealt(labelled: np.ndarray, groups: np.ndarray, folds: int, seed: int = 0) -> np.ndarray:
    return assign_folds(labelled, groups, folds, np.random.default_rng(seed))


@given(
    items=st.lists(st.tuples(st.booleans(), st.integers(0, 12)), min_size=1, max_size=80),
    folds=st.integers(2, 7),
    seed=st.integers(0, 9),
)
def test_a_group_is_in_one_fold(items: list[tuple[bool, int]], folds: int, seed: int) -> None:
    labelled = np.array([label for label, _ in items])
    groups = np.array([group for _, group in items])
    fold = dealt(labelled, groups, folds, seed)
    assert fold.shape == labelled.shape
    assert set(fold.tolist()) <= set(range(folds))
    for group in np.unique(groups):
        assert len(np.unique(fold[groups == group])) == 1


@pytest.mark.parametrize(
    ("positives", "unlabelled", "folds"), [(12, 50, 5), (10, 10, 3), (7, 9, 2)]
)
def test_single_items_are_dealt_like_cards(positives: int, unlabelled: int, folds: int) -> None:
    labelled = np.arange(positives + unlabelled) < positives
    fold = dealt(labelled, alone(len(labelled)), folds)
    for mask in (labelled, ~labelled):
        counts = np.bincount(fold[mask], minlength=folds)
        assert counts.max() - counts.min() <= 1


def test_one_large_group_of_positives_has_a_fold_for_itself() -> None:
    labelled = np.ones(30, bool)
    groups = np.array([0] * 20 + list(range(1, 11)))
    fold = dealt(labelled, groups, 3)
    large = fold[0]
    assert (fold == large).sum() == 20, "the small groups fill the other folds"
    assert sorted(np.bincount(fold).tolist()) == [5, 5, 20]


def test_folds_depend_on_the_generator_alone() -> None:
    labelled = np.arange(60) < 15
    first, again, other = (dealt(labelled, alone(60), 5, seed) for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_sides_of_a_fold_are_all_rows_and_share_none() -> None:
    fold = np.array([2, 0, 1, 0, 2, 2])
    found = list(sides(fold))
    assert [number for number, _, _ in found] == [0, 1, 2]
    for number, rest, part in found:
        assert fold[part].tolist() == [number] * len(part)
        assert sorted([*rest, *part]) == list(range(6))


@pytest.mark.parametrize("kind", [np.float32, np.uint8, np.int64])
def test_equal_rows_share_a_number_and_others_do_not(kind: type[np.generic]) -> None:
    rows = np.random.default_rng(0).integers(0, 3, (40, 2, 2)).astype(kind)
    number = same_content(rows)
    for i in range(40):
        for j in range(40):
            assert (number[i] == number[j]) == np.array_equal(rows[i], rows[j])


def test_rows_that_differ_in_the_last_bit_are_no_copies() -> None:
    rows = np.ones((2, 3), np.float32)
    rows[1, 2] = np.nextafter(np.float32(1), np.float32(2))
    assert len(np.unique(same_content(rows))) == 2
