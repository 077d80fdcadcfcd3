"""A result that passes the check can be shown."""

import json
from pathlib import Path
from typing import Any

import pytest

from onesided.metrics.result_schema import fault_in, is_compared

OLD = Path(__file__).parents[1] / "old_results"


@pytest.fixture
def result() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((OLD / "own_prior.json").read_text())
    return content


def test_results_of_earlier_versions_pass() -> None:
    for path in OLD.glob("*.json"):
        assert fault_in(json.loads(path.read_text())) is None


@pytest.mark.parametrize(
    ("entry", "value", "named"),
    [
        ("seconds", "soon", "seconds"),
        ("seconds", 10**400, "value"),
        ("threshold_rule", {"explained": "no rule"}, "threshold_rule.rule"),
        ("leaderboard", [{"words": "x"}], "leaderboard.0.proxy_auc"),
        ("threshold", 10**400, "value"),
        ("seed", None, "seed"),
        ("warnings", "one", "warnings"),
        ("n_positive", -1, "n_positive"),
        ("logs", {"loss": 3}, "logs.loss"),
    ],
)
def test_a_value_that_could_not_be_shown_is_named(
    result: dict[str, Any], entry: str, value: object, named: str
) -> None:
    fault = fault_in({**result, entry: value})
    assert fault is not None
    assert named in fault
    if not isinstance(value, dict) and entry != "leaderboard":
        assert fault_in({**result, entry: value}, may_lack=True) is not None


def test_a_report_can_be_made_from_less_than_a_threshold_is_moved_by(
    result: dict[str, Any],
) -> None:
    del result["scenario"]
    assert fault_in(result) == "lacks 'scenario'"
    assert fault_in(result, may_lack=True) is None


def test_rows_of_a_comparison_are_checked_like_results() -> None:
    row = {"method": "ce", "seed": 0, "test": None, "pu": None, "seconds": 1.0}
    assert is_compared(row)
    assert not is_compared({**row, "seconds": "long"})
    assert not is_compared(["ce"])
