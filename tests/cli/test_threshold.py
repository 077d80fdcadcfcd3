"""`--threshold` of fit and evaluate: one choice, stored wherever decisions are read."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.command import assert_refused, call, contents, fit


def result_of(run: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((run / "result.json").read_text())
    return content


def rows_of(table: Path) -> list[dict[str, str]]:
    with table.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_threshold_reaches_model_result_decisions_and_report(run: Path) -> None:
    before, page = rows_of(run / "scores.csv"), (run / "report.html").read_bytes()
    outcome = call("evaluate", run, "--threshold", "top-k=17")
    assert outcome.exit_code == 0
    assert "17 of 60 unlabelled items" in outcome.err
    result = result_of(run)
    assert json.loads((run / "model.json").read_text())["threshold"] == result["threshold"]
    assert result["threshold_rule"]["rule"] == "top-k=17"
    assert result["threshold_rule"]["chosen_by"] == "onesided evaluate"
    rows = rows_of(run / "scores.csv")
    assert [row["decision"] for row in rows] == ["positive"] * 17 + ["negative"] * 43
    assert [{**row, "decision": ""} for row in rows] == [{**row, "decision": ""} for row in before]
    assert (run / "report.html").read_bytes() != page
    assert "top-k=17" in (run / "report.html").read_text()


def test_pictures_nearest_the_old_threshold_are_not_shown_as_nearest_the_new(run: Path) -> None:
    call("evaluate", run, "--threshold", "top-k=17")
    scores = np.load(run / "scores.npz")
    with np.load(run / "report.npz") as arrays:
        assert not [name for name in arrays.files if name.startswith("threshold_")]
        assert [name for name in arrays.files if name.startswith("top_")]
        threshold = result_of(run)["threshold"]
        called = (scores["train"] > threshold) & ~scores["train_labelled"]
        assert (arrays["embedding_role"] == 2).sum() == called.sum()


def test_rank_decides_by_the_stored_threshold(run: Path, shared_data: Path, tmp_path: Path) -> None:
    call("evaluate", run, "--threshold", "top-k=17")
    ranked = tmp_path / "ranked.csv"
    assert call("rank", run, shared_data / "U", "-o", ranked, "--quiet").exit_code == 0
    assert sum(row["decision"] == "positive" for row in rows_of(ranked)) == 17


def test_fit_with_a_rule_gives_what_evaluate_with_it_gives(
    run: Path, shared_data: Path, tmp_path: Path
) -> None:
    fitted = tmp_path / "fitted"
    assert fit(shared_data, fitted, "--threshold", "recall=0.7").exit_code == 0
    call("evaluate", run, "--threshold", "recall=0.7")
    for name in ("model.json", "model.safetensors", "scores.csv"):
        assert (fitted / name).read_bytes() == (run / name).read_bytes(), name
    left, right = result_of(fitted), result_of(run)
    changed = {key for key in left if left[key] != right[key]}
    assert changed <= {"seconds", "threshold_rule"}
    assert left["threshold_rule"]["chosen_by"] == "onesided fit"
    assert left["notices"] == [left["threshold_rule"]["explained"]]
    # The rule is part of what the run is: the same command resumes, another is another run.
    assert fit(shared_data, fitted, "--threshold", "recall=0.7").exit_code == 0
    assert_refused(fit(shared_data, fitted, "--threshold", "recall=0.8"), "another run")


def test_a_second_choice_replaces_the_first(run: Path) -> None:
    first = contents(run)
    call("evaluate", run, "--threshold", "recall=0.9")
    call("evaluate", run, "--threshold", "0.5")
    again = contents(run)
    for name in ("model.json", "scores.csv", "scores.npz"):
        assert again[name] == first[name], name
    result = result_of(run)
    assert result["notices"] == []
    assert result["threshold_rule"]["chosen_by"] == "onesided evaluate"
    before = json.loads(first["result.json"])
    assert (result["pu"], result["warnings"]) == (before["pu"], before["warnings"])


def test_json_tells_the_rule(run: Path) -> None:
    outcome = call("evaluate", run, "--threshold", "max-f1", "--json")
    told = json.loads(outcome.out)
    assert outcome.err == ""
    assert told["threshold"] == result_of(run)["threshold"]
    assert told["threshold_rule"]["rule"] == "max-f1"


@pytest.mark.parametrize("rule", ["none", "recall=1.5", "top-k=61", "2"])
def test_a_rule_that_cannot_be_is_refused_and_the_run_stays(run: Path, rule: str) -> None:
    before = contents(run)
    assert_refused(call("evaluate", run, "--threshold", rule), rule)
    assert contents(run) == before


def test_a_rule_that_cannot_be_is_refused_before_training(
    shared_data: Path, tmp_path: Path
) -> None:
    assert_refused(fit(shared_data, tmp_path / "a", "--threshold", "maybe"), "'maybe'")
    assert_refused(fit(shared_data, tmp_path / "b", "--threshold", "top-k=61"), "top-k=61")
    words = ("--threshold", "max-f1", "--set", "data.held_out=0")
    assert_refused(fit(shared_data, tmp_path / "c", *words), "data.held_out")
    for name in "abc":
        assert not (tmp_path / name / "result.json").exists()


def test_estimates_stand_beside_the_truth(cross_fitted: Path, tmp_path: Path) -> None:
    run, truth = cross_fitted, tmp_path / "truth.csv"
    items = [row["item"] for row in rows_of(run / "scores.csv")]
    red = [int(item.removeprefix("U/item").removesuffix(".png")) < 24 for item in items]
    words = [
        f"{item},{'positive' if is_red else 'negative'}"
        for item, is_red in zip(items, red, strict=True)
    ]
    truth.write_text("\n".join(["item,label", *words]))
    outcome = call("evaluate", run, "--threshold", "top-k=20", "--labels", truth, "--json")
    told = {row["name"]: row for row in json.loads(outcome.out)["figures"]}
    figures = result_of(run)["pu"]["figures"]
    assert told["recall"]["value"] == figures["recall"]["value"]
    assert told["recall"]["true"] == pytest.approx(sum(red[:20]) / 24)
    assert told["precision"]["true"] == pytest.approx(sum(red[:20]) / 20)
    assert told["precision"]["value"] == figures["precision"]["value"]
    assert told["share_positive"]["true"] == pytest.approx(20 / 60)
    assert told["prior"]["true"] == pytest.approx(0.4)
    shown = call("evaluate", run, "--labels", truth)
    assert "Estimated without labels, and true" in shown.out
