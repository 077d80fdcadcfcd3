"""The leaderboard of the report: best first, escaped, and nothing from damaged rows."""

from typing import Any

import pytest

from onesided.report.runfiles import RunFiles
from onesided.report.tables import leaderboard
from tests.report.fake_run import HOSTILE, fake_result

ROW = {
    **{"name": "linear-1", "method": "linear", "words": "a linear model", "proxy_auc": 0.81234},
    **{"low": 0.7, "high": 0.9, "folds": 5, "seconds": 3.2, "tried": 8, "won": True},
}
POOR = {**ROW, "words": "a forest", "proxy_auc": 0.6, "folds": 2, "tried": 1, "won": False}


def page(*rows: Any, **entries: Any) -> str:  # noqa: ANN401
    result = {"leaderboard": list(rows), "folds": 5, "optimism": 0.012, **entries}
    return leaderboard(RunFiles("quake", fake_result(0.1) | result))


def test_a_row_has_its_figures_and_the_winner_is_marked() -> None:
    found = page(ROW, POOR)
    assert found.count("(kept)") == 1
    assert "a linear model (kept)" in found
    assert found.index("a linear model (kept)") < found.index('row">a forest')
    assert "2, given up" in found
    assert "5, given up" not in found
    assert "9 models were tried" in found
    assert "lowered by 1.2 percentage points" in found
    assert "81.2%" in found


def test_a_run_of_one_method_has_none() -> None:
    assert leaderboard(RunFiles("quake", fake_result(0.1))) == ""


def test_words_of_a_file_are_escaped() -> None:
    found = page({**ROW, "words": HOSTILE})
    assert "<script>" not in found
    assert "<img" not in found


@pytest.mark.parametrize("rows", [None, "x", {}, [None], [3], [{}], [["won"]]])
def test_damaged_rows_are_left_out(rows: object) -> None:
    result = fake_result(0.1) | {"leaderboard": rows}
    assert "<td>" not in leaderboard(RunFiles("quake", result))


def test_a_row_without_figures_does_not_break_the_page() -> None:
    assert "a linear model" in page({"words": "a linear model", "folds": 1, "won": 1})
