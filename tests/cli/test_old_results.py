"""A run whose `result.json` an older version wrote, with sentences instead of data, still opens."""

import json
import shutil
from pathlib import Path

import pytest

from onesided import PUClassifier
from onesided.metrics.stored import read_figures
from tests.cli.command import call

OLD = Path(__file__).parents[1] / "old_results"


@pytest.fixture(params=["own_prior", "no_prior"])
def old_run(cross_fitted: Path, request: pytest.FixtureRequest) -> Path:
    shutil.copy(OLD / f"{request.param}.json", cross_fitted / "result.json")
    return cross_fitted


def test_it_can_be_reported(old_run: Path) -> None:
    assert call("report", old_run).exit_code == 0
    page = (old_run / "report.html").read_text()
    assert "<h3>Recall</h3>" in page
    figures = read_figures(json.loads((old_run / "result.json").read_text()))
    assert ("at most " in page) == any(figure.bias for figure in figures.values())
    assert ("Not estimated: " in page) == any(figure.missing for figure in figures.values())
    assert "optimistically" not in page


def test_it_can_be_evaluated(old_run: Path, tmp_path: Path) -> None:
    shown = call("evaluate", old_run)
    assert shown.exit_code == 0, shown.err
    assert "Recall" in shown.out
    (tmp_path / "truth.csv").write_text("item,label\nU/item00.png,positive\n")
    outcome = call("evaluate", old_run, "--labels", tmp_path / "truth.csv", "--json")
    rows = {row["name"]: row for row in json.loads(outcome.out)["figures"]}
    assert rows["recall"]["value"] is not None
    moved = call("evaluate", old_run, "--threshold", "recall=0.9", "--json")
    assert moved.exit_code == 0, moved.err
    assert isinstance(json.loads(moved.out)["pu"]["figures"]["recall"]["assumes"], list)


def test_it_can_rank(old_run: Path, shared_data: Path, tmp_path: Path) -> None:
    assert call("rank", old_run, shared_data / "U", "-o", tmp_path / "ranked.csv").exit_code == 0


def test_python_can_load_it(old_run: Path) -> None:
    evaluation = PUClassifier.load(old_run).evaluation_
    assert evaluation is not None
    assert evaluation.figures["recall"].value is not None
