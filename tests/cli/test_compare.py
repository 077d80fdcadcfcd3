"""`fit --compare`: other methods on the same split, each a run of its own."""

import json
import shutil
from pathlib import Path

import pytest

from onesided.run.compare import KEPT, comparison_rows
from tests.cli.command import assert_refused, call, contents, fit
from tests.cli.pictures import BLUE, draw


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Path:
    folder = tmp_path_factory.mktemp("compared") / "run"
    outcome = fit(shared_data, folder, "--compare", "ncpu, nnpu", "--prior", "0.4")
    assert outcome.exit_code == 0, outcome.err
    assert "Methods on the same split" in outcome.out
    return folder


def test_each_method_is_a_run_of_its_own_on_the_same_split(compared: Path) -> None:
    split = (compared / "split.csv").read_bytes()
    for name in ("ncpu", "nnpu"):
        beside = compared / "compare" / name
        result = json.loads((beside / "result.json").read_text())
        assert (result["method"], result["epochs"]) == (name, 1)
        assert (beside / "split.csv").read_bytes() == split
    assert json.loads((compared / "result.json").read_text())["method"] == "ce"


def test_the_comparison_is_in_the_file_and_in_the_report(compared: Path) -> None:
    rows = json.loads((compared / "compare.json").read_text())
    assert [row["method"] for row in rows] == ["ce", "ncpu", "nnpu"]
    for row, folder in zip(rows, ["", "compare/ncpu", "compare/nnpu"], strict=True):
        result = json.loads((compared / folder / "result.json").read_text())
        assert row == {key: result[key] for key in KEPT if key in result}
        assert set(KEPT) - set(row) <= {"chosen_by"}, "no search chose among methods"
    assert "Comparison" in (compared / "report.html").read_text()


def test_the_same_command_again_changes_nothing(compared: Path, shared_data: Path) -> None:
    before = contents(compared)
    outcome = fit(shared_data, compared, "--compare", "ncpu,nnpu", "--prior", "0.4", "--json")
    assert contents(compared) == before
    told = json.loads(outcome.out)
    assert told["method"] == "ce"
    assert told["comparison"] == json.loads(before["compare.json"])


def test_a_lost_run_beside_is_made_again_and_the_rest_is_left(
    compared: Path, shared_data: Path
) -> None:
    before = contents(compared)
    (compared / "compare" / "ncpu" / "result.json").unlink()
    assert fit(shared_data, compared, "--compare", "ncpu,nnpu", "--prior", "0.4").exit_code == 0
    after = contents(compared)
    for name in ("result.json", "model.safetensors", "compare/nnpu/result.json"):
        assert after[name] == before[name]
    name = "compare/ncpu/scores.csv"
    assert after[name] == before[name]


def test_a_threshold_moves_in_all_of_them(compared: Path) -> None:
    assert call("evaluate", compared, "--threshold", "top-k=20", "--quiet").exit_code == 0
    rows = json.loads((compared / "compare.json").read_text())
    assert [row["method"] for row in rows] == ["ce", "ncpu", "nnpu"]
    for folder in ("", "compare/ncpu", "compare/nnpu"):
        table = (compared / folder / "scores.csv").read_text()
        assert table.count(",positive\n") == 20
        assert json.loads((compared / folder / "result.json").read_text())["pu"] in [
            row["pu"] for row in rows
        ]


def test_rows_share_the_prior_of_the_first(compared: Path, tmp_path: Path) -> None:
    """Each with its own would not compare: a weak model finds more positives in the pool."""
    folder = tmp_path / "run"
    shutil.copytree(compared, folder)
    results = []
    for number, place in enumerate((folder, folder / "compare/ncpu", folder / "compare/nnpu")):
        result = json.loads((place / "result.json").read_text())
        prior = {"value": 0.3 + 0.1 * number, "low": None, "high": None, "origin": "given"}
        results.append({**result, "prior": {**prior, "notes": []}})
    rows = comparison_rows(folder, results)[1:]
    assert [row["pu"]["figures"]["prior"]["value"] for row in rows] == [0.3, 0.3]
    for row, result in zip(rows, results[1:], strict=True):
        own, shared = (each["pu"]["figures"]["recall"] for each in (result, row))
        assert own == shared, "only what rests on the prior changes"


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("ncpu,nnpuu", ["'nnpuu'", "nnpu"]),
        ("ncpu,ce", ["ce", "method of the run itself"]),
        (" , ", ["--compare names nothing"]),
        ("lagam", ["LaGAM needs a small clean set", "-n"]),
        ("supervised", ["Supervised needs the true class"]),
    ],
)
def test_what_cannot_be_compared_is_refused_before_any_training(
    shared_data: Path, tmp_path: Path, names: str, words: list[str]
) -> None:
    run = tmp_path / "run"
    assert_refused(fit(shared_data, run, "--compare", names), *words)
    assert not list(run.rglob("manifest.json"))


def test_lagam_runs_on_own_folders_with_known_negatives(data: Path, tmp_path: Path) -> None:
    for number in range(12):
        draw(data / "N" / f"{number}.png", 2000 + number, BLUE)
    run = tmp_path / "run"
    words = ("-n", data / "N", "--method", "lagam", "--epochs", "2")
    assert fit(data, run, *words, "--compare", "nnpu", "--prior", "0.4").exit_code == 0
    roles = (run / "split.csv").read_text()
    assert roles.count(",clean\n") == 20
    assert roles.count(",held-out-negative\n") == 2
    result, beside = (
        json.loads((path / "result.json").read_text()) for path in (run, run / "compare" / "nnpu")
    )
    assert result["known_negatives"]["count"] == 2
    assert beside["known_negatives"]["count"] == 12, "nnPU did not see them, so all can judge it"
