"""Kept rows: which rows are rejected, and which never."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from onesided.losses.classification import balanced_cross_entropy
from onesided.state.kept_rows import KeptRows

SCORES = [0.9, 0.1, 0.8, 0.4, 0.6, 0.2, 0.3, 0.7, 0.5, 0.05]


def kept_of(
    scores: list[float], share: float, labelled: list[bool] | None = None, at_least: int = 1
) -> list[bool]:
    rows = KeptRows(len(scores))
    marks = torch.tensor(labelled or [False] * len(scores))
    rows.reject_top(
        torch.tensor(scores, dtype=torch.float64), marks, share=share, at_least=at_least
    )
    kept: list[bool] = rows.read(torch.arange(len(scores))).tolist()
    return kept


def test_at_first_every_row_is_kept() -> None:
    assert KeptRows(4).read(torch.arange(4)).all()


def test_the_four_highest_of_ten_are_rejected() -> None:
    assert [int(kept) for kept in kept_of(SCORES, 0.4)] == [0, 1, 0, 1, 0, 1, 1, 0, 1, 1]


@pytest.mark.parametrize(("share", "expected"), [(0.25, 0.6349752990), (0.0, 0.9473167494)])
def test_the_risk_of_six_margins(share: float, expected: float) -> None:
    margins = torch.tensor([2, -1, 0.5, -1.5, 3, -0.5], dtype=torch.float64)
    labelled = torch.arange(6) < 2
    rows = KeptRows(6)
    rows.reject_top(margins, labelled, share=share)
    used = labelled | rows.read(torch.arange(6))
    risk = balanced_cross_entropy(margins[used], labelled[used])
    assert risk.item() == pytest.approx(expected, abs=1e-10)


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=12, unique=True), st.floats(0, 1))
def test_no_kept_row_scores_above_a_rejected_one(scores: list[float], share: float) -> None:
    kept = kept_of(scores, share)
    inside = [score for score, keep in zip(scores, kept, strict=True) if keep]
    outside = [score for score, keep in zip(scores, kept, strict=True) if not keep]
    assert len(outside) == min(int(share * len(scores) + 1e-9), len(scores) - 1)
    assert max(inside) < min(outside, default=float("inf"))


def test_binary_fractions_do_not_cost_a_row() -> None:
    assert int(0.29 * 100) == 28, "the pitfall"
    assert kept_of([float(row) for row in range(100)], 0.29).count(False) == 29


def test_labelled_rows_are_not_counted_and_not_rejected() -> None:
    labelled = [True, False, True, False, False, False]
    kept = kept_of([9.0, 5.0, 8.0, 4.0, 3.0, 2.0], 0.5, labelled)
    assert kept == [True, False, True, False, True, True]


@pytest.mark.parametrize(("at_least", "expected"), [(1, 1), (3, 3), (10, 10), (99, 10)])
def test_a_prior_of_one_still_leaves_something_to_learn_from(at_least: int, expected: int) -> None:
    assert kept_of(SCORES, 1.0, at_least=at_least).count(True) == expected


def test_of_equal_scores_the_earlier_row_goes() -> None:
    assert kept_of([0.5, 0.5, 0.5, 0.5], 0.5) == [False, False, True, True]


def test_a_rejected_row_may_come_back() -> None:
    rows, no_labels = KeptRows(3), torch.zeros(3, dtype=torch.bool)
    rows.reject_top(torch.tensor([3.0, 2.0, 1.0]), no_labels, share=0.4)
    assert rows.read(torch.arange(3)).tolist() == [False, True, True]
    rows.reject_top(torch.tensor([1.0, 2.0, 3.0]), no_labels, share=0.4)
    assert rows.read(torch.arange(3)).tolist() == [True, True, False]


def test_the_marks_travel_with_the_checkpoint() -> None:
    assert list(KeptRows(3).state_dict()) == ["keep"]
