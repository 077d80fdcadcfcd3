"""Odd pools: each is what its name says, and the page shows what the rows say."""

import numpy as np
import pytest

from benchmarks import audit_corners
from onesided.metrics.audit import FIGURES


def test_every_corner_has_its_own_name() -> None:
    names = audit_corners.corners()
    assert len(set(names)) == len(names) == 24
    assert "300 0.005 equal 0" in names


@pytest.mark.parametrize("kind", audit_corners.SCORES)
def test_scores_are_what_their_name_says(kind: str) -> None:
    truth = np.arange(2000) < 500
    scores = audit_corners._scores(kind, truth, np.random.default_rng(0))
    gap = scores[truth].mean() - scores[~truth].mean()
    assert ((scores >= 0) & (scores <= 1)).all()
    assert (gap > 0) == (kind in ("good", "tied"))
    assert (gap < 0) == (kind == "worse")
    assert (len(np.unique(scores)) <= 5) == (kind in ("tied", "equal"))


def test_intervals_hold_in_a_few_pools_and_undefined_figures_are_left_out() -> None:
    row = audit_corners.measured(3, "300 0.7 equal 0")
    assert row["held"]["precision"] == [0, 0]  # nothing is called positive
    assert row["held"]["positives"][1] == 3
    assert audit_corners.measured(2, "300 0.7 good 1")["held"]["recall"] == [2, 2]


def test_the_page_shows_what_the_rows_say() -> None:
    held = {name: [98, 100] for name in FIGURES} | {"precision": [0, 0]}
    rows = [
        {"row": "20000 0.005 tied 0", "held": held},
        {"row": "typical 0", "items": 300, "prior": 0.05, "labelled": 100, "made": 99, "wrong": 2},
    ]
    origin = {"commit": "abc", "dirty": False}
    text = audit_corners.page({"pools": 100, "rows": rows, "origin": origin})
    assert "| 20,000 | 0.5% | tied | 0% | - | 98% | 98% | 98% | 98% |" in text
    assert "| 300 | 5.0% | 100 | 2 of 99 |" in text
