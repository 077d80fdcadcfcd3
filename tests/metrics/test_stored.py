"""Figures of `result.json`, of this version and of an older one, and of a damaged file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onesided.metrics.figure import Figure
from onesided.metrics.pu import evaluate_pu
from onesided.metrics.registry import OWN_SCORES
from onesided.metrics.stored import listed, number, read_figures, table

OLD_RESULTS = Path(__file__).parents[1] / "old_results"


def old(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((OLD_RESULTS / f"{name}.json").read_text())
    return content


def test_what_was_written_is_read() -> None:
    random = np.random.default_rng(0)
    evaluation = evaluate_pu(
        random.normal(2, 1, 50),
        random.normal(0, 1, 400),
        scenario="single-set",
        prior=0.2,
        prior_interval=(0.1, 0.3),
        prior_origin=OWN_SCORES,
    )
    read = read_figures({"pu": json.loads(json.dumps(evaluation.to_json()))})
    for name, figure in evaluation.figures.items():
        assert read[name].to_json() == figure.to_json()
        assert figure.is_vague or read[name] == figure


def test_sentences_of_an_old_file_are_read_as_data() -> None:
    result = old("own_prior")
    figures = read_figures(result)
    assert {name: figure.bias for name, figure in figures.items() if figure.bias} == {
        **{"precision": "high", "f1": "high", "prior": "high", "auc": "high"},
        "proxy_accuracy": "low",
    }
    assert OWN_SCORES in figures["prior"].assumes
    stored = result["pu"]["figures"]["recall"]
    assert figures["recall"] == Figure(
        "recall", stored["value"], stored["low"], stored["high"], ("scar", "held_out")
    )
    assert figures["precision"].assumes[:2] == ("scar", "held_out")
    assert figures["precision"].assumes[2].startswith("Between 0.236 and 0.42 of the unlabelled")
    alarms = result["known_negatives"]
    assert figures["false_alarms"] == Figure(
        *("false_alarms", alarms["called_positive"], alarms["low"], alarms["high"]),
        assumes=("typical_negatives",),
    )


def test_the_missing_reason_of_an_old_file_is_read() -> None:
    figures = read_figures(old("no_prior"))
    missing = {name: figure.missing for name, figure in figures.items() if figure.value is None}
    assert set(missing) == {"precision", "f1", "proxy_accuracy", "auc"}
    for reason in missing.values():
        assert reason is not None
        assert reason.startswith("it needs the share of positives")
        assert reason.endswith("and it takes 10 of each")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *[(3, 3.0), (0.5, 0.5), (np.float32(0.5), 0.5), (True, None), ("1", None), (None, None)],
        *[(float("nan"), None), (float("-inf"), None), (10**400, None)],
    ],
)
def test_only_finite_numbers_are_numbers(value: object, expected: float | None) -> None:
    assert number(value) == expected


def test_what_is_no_figure_has_no_value() -> None:
    figures = {"recall": {"value": 0.9, "label": None}, "f1": {"value": None}, "auc": 0.7}
    found = read_figures({"pu": {"figures": figures}})
    assert [name for name, figure in found.items() if figure.value is not None] == ["recall"]
    assert (found["recall"].low, found["recall"].assumes) == (None, ())


@pytest.mark.parametrize("pu", [None, [], {"figures": None}, {"figures": [1]}])
def test_a_run_without_figures_has_none(pu: object) -> None:
    assert read_figures({"pu": pu}) == {}


def test_a_list_or_an_object_is_read_as_it_is_and_anything_else_as_an_empty_one() -> None:
    assert listed([1, "a"]) == [1, "a"]
    assert table({"a": 1}) == {"a": 1}
    for damaged in (None, 3, "ab", True):
        assert listed(damaged) == []
        assert table(damaged) == {}
    assert listed({"a": 1}) == []
    assert table([1]) == {}
