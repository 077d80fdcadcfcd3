"""The folds of a problem: copies and groups stay together, whatever the rows hold."""

from dataclasses import replace

import numpy as np
import pytest

from onesided.core.errors import DataError
from onesided.data.problem.dataset import PUDataset, Selection
from onesided.run.search.folds import folds_of, groups_of, trained_on
from tests.run.search.searching import numbered, problem_of


def data_of(values: np.ndarray, positives: int, groups: np.ndarray | None = None) -> PUDataset:
    count = len(values)
    return PUDataset(
        Selection(values, np.arange(count)),
        np.arange(count) < positives,
        np.full(count, -1),
        tuple(map(str, range(count))),
        groups=groups,
    )


def same(groups: np.ndarray) -> np.ndarray:
    """Return for every pair of rows whether they are of one group."""
    together: np.ndarray = groups[:, None] == groups[None, :]
    return together


def test_copies_are_one_group() -> None:
    values = np.repeat(np.arange(10.0, dtype=np.float32), 2)[:, None]
    assert np.array_equal(same(groups_of(data_of(values, 5))), same(np.arange(20) // 2))


def test_equal_rows_that_are_no_copies_are_divided() -> None:
    values = np.repeat(np.arange(10.0, dtype=np.float32), 2)[:, None]
    data = replace(data_of(values, 5), content=np.arange(20))
    assert np.array_equal(same(groups_of(data)), np.eye(20, dtype=bool))


def test_copies_of_raw_rows_are_known_by_content_and_not_by_address() -> None:
    texts = np.array([["".join(["wor", "d"]) + str(row // 2), 1.5] for row in range(12)], object)
    assert np.array_equal(same(groups_of(data_of(texts, 5))), same(np.arange(12) // 2))


def test_equal_texts_are_divided_equally_wherever_they_are_in_memory() -> None:
    def folds() -> list[int]:
        data = data_of(np.array([[f"house {row}"] for row in range(40)], object), 12)
        return [int(number) for number in folds_of(data, groups_of(data), 5, 0)]

    before = folds()
    kept = [f"house {row}" for row in range(1000)]  # the next ones are elsewhere
    assert folds() == before
    del kept


def test_groups_that_share_a_copy_become_one() -> None:
    values = np.array([[0], [1], [1], [2], [3]], np.float32)
    groups = np.array(["a", "a", "b", "b", "c"])
    assert np.array_equal(
        same(groups_of(data_of(values, 2, groups))), same(np.array([0] * 4 + [1]))
    )


def test_every_fold_holds_p_and_u_and_no_group_is_divided() -> None:
    random = np.random.default_rng(0)
    for seed in range(5):
        groups = random.integers(0, 15, 80)
        data = data_of(random.normal(size=(80, 2)), 25, groups)
        fold = folds_of(data, groups_of(data), 5, seed)
        for number in range(int(fold.max()) + 1):
            assert len(np.unique(data.labelled[fold == number])) == 2
        for group in range(15):
            assert len(np.unique(fold[groups == group])) <= 1


def test_few_groups_give_few_folds() -> None:
    groups = np.arange(60) % 3
    data = data_of(np.random.default_rng(0).normal(size=(60, 2)), 20, groups)
    fold = folds_of(data, groups_of(data), 5, 0)
    assert fold.max() == 2


def test_a_fold_without_positives_joins_another() -> None:
    groups = np.array([0] * 10 + [1] * 10 + [0] * 5 + [1] * 5 + list(range(2, 32)))
    data = data_of(np.random.default_rng(0).normal(size=(60, 2)), 20, groups)
    assert folds_of(data, groups_of(data), 5, 0).max() == 1


@pytest.mark.parametrize("groups", [[0] * 20 + list(range(1, 41)), list(range(20)) + [99] * 40])
def test_one_group_of_all_positives_or_all_unlabelled_is_refused(groups: list[int]) -> None:
    data = data_of(np.random.default_rng(0).normal(size=(60, 2)), 20, np.array(groups))
    with pytest.raises(DataError, match="one group or copies of one item"):
        folds_of(data, groups_of(data), 5, 0)


def test_u_in_a_few_groups_that_hold_p_too_is_divided() -> None:
    # The groups of P alone are larger, so the two that hold U would both go to the other fold.
    groups = np.array([0] * 8 + [1] + [2] + [1] * 20 + [2] * 20)
    data = data_of(np.random.default_rng(0).normal(size=(50, 2)), 10, groups)
    for seed in range(5):
        fold = folds_of(data, groups_of(data), 5, seed)
        assert fold.max() == 1
        for number in (0, 1):
            assert len(np.unique(data.labelled[fold == number])) == 2
        assert len(np.unique(fold[groups == 1])) == len(np.unique(fold[groups == 2])) == 1


def test_two_groups_of_p_and_two_of_u_are_always_enough() -> None:
    random = np.random.default_rng(1)
    divided = 0
    for seed in range(200):
        groups = random.integers(0, random.integers(2, 6), 24)
        data = data_of(random.normal(size=(24, 2)), int(random.integers(2, 23)), groups)
        kinds = (data.labelled, ~data.labelled)
        if min(len(np.unique(groups[kind])) for kind in kinds) < 2:
            continue
        divided += 1
        fold = folds_of(data, groups_of(data), 5, seed)
        assert fold.max() >= 1
        for number in range(int(fold.max()) + 1):
            assert len(np.unique(data.labelled[fold == number])) == 2
    assert divided > 100


def test_rows_keep_their_labels_names_and_groups() -> None:
    data = data_of(np.arange(12.0).reshape(6, 2), 3, np.array(list("aabbcc")))
    part = data.some(np.array([1, 4]))
    assert part.values.take(slice(None)).tolist() == [[2.0, 3.0], [8.0, 9.0]]
    assert part.labelled.tolist() == [True, False]
    assert part.names == ("1", "4")
    assert part.groups is not None
    assert part.groups.tolist() == ["a", "c"]


def test_a_fold_is_standardised_by_the_rows_that_it_trains_on() -> None:
    values = numbered()
    problem = problem_of(values, 20)
    rows, others = np.arange(0, 60, 2), np.arange(1, 60, 2)
    training = trained_on(problem, rows, others)
    chosen = problem.split.train.values.take(rows).astype(np.float64)
    assert training.data.mean == pytest.approx(chosen.mean(axis=0).tolist())
    assert training.data.std == pytest.approx(chosen.std(axis=0).tolist())
    assert training.split.held_out is not None
    assert not set(training.split.held_out.names) & set(training.split.train.names)
    assert training.training.train.names == tuple(problem.split.train.names[row] for row in rows)
