"""True accuracy can be logged for curves, and changes nothing else."""

import json
from pathlib import Path

import pytest

from onesided.run.config import RunConfig
from onesided.run.execute import run
from onesided.run.folder import check_place, working_in
from onesided.run.load import load_data
from onesided.run.problem import build_problem

SETTINGS = {
    "data": {"name": "toy-images", "positives": 20, "unlabelled": 60},
    "method": {"name": "ce"},
    "backbone": {"name": "small", "width": 0.125},
    "train": {"epochs": 5, "batch_size": 16},
}


def trained(folder: Path, *, log_truth: int) -> list[dict[str, object]]:
    config = RunConfig.from_settings(SETTINGS)
    problem = build_problem(config, load_data(config.data))
    with working_in(folder):
        run(problem, check_place(folder), log_truth=log_truth)
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def test_truth_is_logged_when_asked_for_and_changes_no_bit(tmp_path: Path) -> None:
    plain = trained(tmp_path / "plain", log_truth=0)
    logged = trained(tmp_path / "logged", log_truth=2)
    assert all("measured" not in row for row in plain)
    assert ["measured" in row for row in logged] == [False, True, False, True, True]
    for name in ("model.safetensors", "scores.csv", "config.toml"):
        one, other = tmp_path / "plain" / name, tmp_path / "logged" / name
        assert one.read_bytes() == other.read_bytes()


def test_the_last_entry_is_the_accuracy_of_the_result(tmp_path: Path) -> None:
    *_, last = trained(tmp_path / "run", log_truth=5)
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    measured = last["measured"]
    assert isinstance(measured, dict)
    assert measured["test_oa"] == pytest.approx(result["test"]["oa"])
    assert 0 <= measured["unlabelled_oa"] <= 1
