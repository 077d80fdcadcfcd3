"""What a review changed, in the report; a file that was changed by hand breaks nothing."""

from pathlib import Path
from typing import Any

import pytest

from onesided.report import write_report
from tests.report.fake_run import HOSTILE, write_fake_run, write_json

FIGURE = {"assumes": ["scar"], "value": 0.8, "low": 0.7, "high": 0.9}
REVIEW: dict[str, Any] = {
    "round": 2,
    "parent": {"folder": "runs/first", "identity": "x"},
    "start": "Warm start: the backbone begins with the weights of runs/first.",
    "answers": {
        **{"positive": 12, "negative": 30, "unsure": 2, "skip": 1, "contested": 1},
        **{"reviewers": ["Anna", HOSTILE], "seconds": 1800, "found_per_hour": 24.0},
        "by_strategy": {"likely": {"answers": 20, "positive": 11}},
    },
    "agreement": [{"reviewers": ["Anna", "Ben"], "items": 10, "agreed": 9, "kappa": 0.74}],
    "figures": {"recall": {"before": FIGURE, "after": {**FIGURE, "value": 0.85}}},
    "ranking": {
        **{"common": 900, "correlation": 0.9, "top": 100, "kept": 80},
        "rose": [{"item": HOSTILE, "before": 300, "after": 4}],
    },
}


def page(folder: Path, review: object) -> str:
    run = write_fake_run(folder / "run")
    write_json(run / "review.json", review)
    return write_report(run).read_text()


def test_the_report_shows_what_changed_between_the_rounds(tmp_path: Path) -> None:
    text = page(tmp_path, REVIEW)
    assert "What the review changed" in text
    for words in (
        "12 positive, 30 negative, 2 unsure, 1 skipped",
        "on 1 item reviewers disagree, and it stays in the pool.",
        "in 30 min 0 s of work.",
        "24 positives were found per hour",
        "Cohen&#39;s kappa 0.74",
        "80 of the 100",
        "(Spearman): 0.90",
        "Warm start",
        "runs/first",
    ):
        assert words in text, words
    assert "<script>alert" not in text
    assert "\u202e" not in text


def test_without_a_review_there_is_no_such_section(tmp_path: Path) -> None:
    text = write_report(write_fake_run(tmp_path / "run")).read_text()
    assert "What the review changed" not in text


@pytest.mark.parametrize(
    "review",
    [
        [],
        {"round": "two", "answers": 3, "figures": [], "ranking": {"rose": [{"item": 3}]}},
        {"round": 1e400, "answers": {"seconds": "x", "by_strategy": {"a": 3}}},
        {"figures": {"recall": {"before": 3}, HOSTILE: {"after": FIGURE}}, "agreement": [3, {}]},
    ],
)
def test_a_file_that_was_changed_by_hand_breaks_nothing(tmp_path: Path, review: object) -> None:
    assert "<h1>" in page(tmp_path, review)
