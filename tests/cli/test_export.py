"""`onesided export`, and ranking with what it wrote, without torch."""

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onesided.engine.exported import load_exported
from onesided.jobs.export import _samples
from onesided.run.opened import open_model
from tests.cli.command import assert_refused, call, unlisted

NAMES = ("model.onnx", "small.onnx")

WITHOUT_TORCH = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ImportError("torch is not here")

sys.meta_path.insert(0, NoTorch())
from onesided.cli import main
sys.argv = ["onesided", *sys.argv[1:]]
try:
    main()
finally:
    assert "torch" not in sys.modules
"""


def rows_of(path: Path) -> dict[str, tuple[float, str]]:
    with path.open(newline="") as file:
        return {row["item"]: (float(row["score"]), row["decision"]) for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory, trained: Path) -> Path:
    path = tmp_path_factory.mktemp("exported") / "model.onnx"
    outcome = call("export", trained, "-o", path)
    assert outcome.exit_code == 0, outcome.err
    assert "scores equal to the model's within" in outcome.out
    return path


@pytest.mark.parametrize("missing", ["onnx", "onnxruntime"])
def test_what_an_export_needs_is_asked_for_before_it_begins(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    outcome = call("export", tmp_path, "-o", tmp_path / "model.onnx")
    assert_refused(outcome, f"Exporting a model takes the library {missing}", "onesided[export]")


def test_what_a_killed_export_left_is_removed_by_the_next(trained: Path, tmp_path: Path) -> None:
    left, other = tmp_path / ".model.onnx.4711.part", tmp_path / ".else.onnx.4711.part"
    for path in (left, other):
        path.write_bytes(b"half a graph")
    assert call("export", trained, "-o", tmp_path / "model.onnx").exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [other.name, "model.onnx"]


@pytest.mark.slow
def test_a_process_that_cannot_import_torch_ranks_as_the_run_does(
    exported: Path, trained: Path, data: Path, tmp_path: Path
) -> None:
    assert call("rank", trained, data / "U", "-o", tmp_path / "one.csv").exit_code == 0
    words = ["rank", exported, data / "U", "-o", tmp_path / "two.csv", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *map(str, words)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["items"] == 60
    one, two = rows_of(tmp_path / "one.csv"), rows_of(tmp_path / "two.csv")
    assert one.keys() == two.keys()
    for item, (score, decision) in one.items():
        assert two[item][0] == pytest.approx(score, abs=1e-4)
        assert two[item][1] == decision


def with_curve(run: Path, copy: Path) -> Path:
    """Return a copy of a run whose model gives probabilities, as those of `auto` do."""
    shutil.copytree(run, copy)
    path = copy / "model.json"
    scores = [0.1, 0.4, 0.6, 0.9]
    curve = {"scores": scores, "probabilities": [0, 0.2, 0.2, 0.9], "basis": "prior"}
    path.write_text(json.dumps({**json.loads(path.read_text()), "calibration": curve}))
    return unlisted(copy)


@pytest.mark.slow
def test_probabilities_go_along_into_the_file_and_the_ranking(
    trained: Path, data: Path, tmp_path: Path
) -> None:
    run, file, small = with_curve(trained, tmp_path / "run"), *map(tmp_path.joinpath, NAMES)
    assert "with probabilities" in call("export", run, "-o", file).out
    outcome = call("export", run, "-o", small, "--int8", "--sample", data / "U", "--json")
    about = json.loads(outcome.out)
    assert about["probability"]
    assert 0 < about["loss"]["probability"] < 0.4
    assert "probabilities by" in load_exported(small).facts.notes[0]
    found = {}
    for model in (run, file, small):
        output = tmp_path / f"{model.stem}.csv"
        assert call("rank", model, data / "U", "-o", output).exit_code == 0
        with output.open(newline="") as rows:
            found[model] = {row["item"]: row for row in csv.DictReader(rows)}
    curve = load_exported(file).facts.calibration
    assert curve is not None
    for item, row in found[run].items():
        assert float(found[file][item]["probability"]) == pytest.approx(
            float(row["probability"]), abs=1e-4
        )
        rounded = found[small][item]
        score = np.array([float(rounded["score"])])
        assert float(rounded["probability"]) == pytest.approx(curve.of(score)[0], abs=1e-5)


def test_a_table_of_numbers_is_ranked_by_the_exported_file(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    lines = ["name,a,b,label"]
    for row in range(80):
        positive = row % 4 == 0
        a, b = random.standard_normal(2) + 2 * positive
        lines.append(f"i{row},{a},{b},{'positive' if positive else 'unlabelled'}")
    table = tmp_path / "items.csv"
    table.write_text("\n".join(lines))
    fitted = call("fit", "--table", table, "-o", tmp_path / "run", "--method", "forest", "--quiet")
    assert fitted.exit_code == 0, fitted.err
    assert call("export", tmp_path / "run", "-o", tmp_path / "m.onnx").exit_code == 0
    for model, output in (("run", "one.csv"), ("m.onnx", "two.csv")):
        ranked = call("rank", tmp_path / model, table, "-o", tmp_path / output)
        assert ranked.exit_code == 0, ranked.err
    one, two = rows_of(tmp_path / "one.csv"), rows_of(tmp_path / "two.csv")
    for item, (score, decision) in one.items():
        assert two[item][0] == pytest.approx(score, abs=1e-6)
        assert two[item][1] == decision
    refused = call("export", tmp_path / "run", "-o", tmp_path / "m.pt2", "--format", "torch")
    assert_refused(refused, "torch has no operator for the method forest")


def test_int8_tells_what_it_costs_and_nothing_else(
    trained: Path, data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "small.onnx"
    outcome = call("export", trained, "-o", path, "--int8", "--sample", data / "U", "--json")
    assert outcome.exit_code == 0, outcome.err
    loss = json.loads(outcome.out)["loss"]
    advice = [record.getMessage() for record in caplog.records if record.name == "root"]
    assert not advice, "onnxruntime advises about a graph that nobody wrote by hand"
    assert loss["items"] == 30
    assert 0 < loss["mean"] <= loss["largest"] < 0.2
    kinds = {one.data_type for one in onnx.load(path).graph.initializer}
    assert onnx.TensorProto.INT8 in kinds
    assert call("rank", path, data / "U", "-o", tmp_path / "ranked.csv").exit_code == 0
    entry = {one.key: one.value for one in onnx.load(path).metadata_props}["onesided"]
    assert json.loads(entry)["precision"] == "int8"
    assert "decisions; measured on items that did not calibrate it" in json.loads(entry)["notes"][0]


@pytest.mark.parametrize("rows", [900, 3000])
def test_int8_samples_lie_all_over_a_table_and_are_no_more_than_512(
    rows: int, tmp_path: Path
) -> None:
    numbers = np.random.default_rng(0).standard_normal((rows, 2)).astype(np.float32)
    labels = ["positive" if row % 9 == 0 else "unlabelled" for row in range(rows)]
    table = pa.table({"a": numbers[:, 0], "b": numbers[:, 1], "label": labels})
    items, run = tmp_path / "items.parquet", tmp_path / "run"
    pq.write_table(table, items)
    words = ("--method", "linear", "-q", "--allow-degenerate")
    assert call("fit", "--table", items, "-o", run, *words).exit_code == 0
    found = _samples(items, open_model(run))
    assert found.shape == (512, 2)
    places = [int(np.flatnonzero((numbers == one).all(axis=1))[0]) for one in found]
    assert (places[0], places[-1]) == (0, rows - 1)
    assert max(np.diff(places)) <= -(-rows // 511)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("-o", "model.bin"), "a file of the format onnx ends in .onnx"),
        (("-o", "model.onnx", "--format", "tflite"), "expected onnx or torch"),
        (("-o", "no/such/model.onnx"), "its folder is missing"),
        (("-o", "model.onnx", "--int8"), "add --sample FOLDER"),
        (("-o", "model.onnx", "--resolution", "3"), "for --deepness"),
    ],
)
def test_what_cannot_be_exported_is_refused(
    words: tuple[str, ...],
    expected: str,
    trained: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused(call("export", trained, *words), expected)
    assert not list(tmp_path.iterdir())


def test_files_that_are_no_exported_models_are_refused(
    exported: Path, trained: Path, data: Path, tmp_path: Path
) -> None:
    garbage = tmp_path / "garbage.onnx"
    garbage.write_bytes(exported.read_bytes()[:2000])
    assert_refused(call("rank", garbage, data / "U"), "onnxruntime cannot read")
    bits = bytearray(exported.read_bytes())
    bits[len(bits) // 2] ^= 4
    (tmp_path / "flipped.onnx").write_bytes(bits)
    assert_refused(
        call("rank", tmp_path / "flipped.onnx", data / "U"), "is damaged, or was changed"
    )
    other = onnx.load(exported)
    del other.metadata_props[:]
    onnx.save(other, tmp_path / "other.onnx")
    assert_refused(call("rank", tmp_path / "other.onnx", data / "U"), "was not written by onesided")
    assert_refused(call("rank", tmp_path / "none.onnx", data / "U"), "There is no run folder")
    squares = call("export", trained, "-o", tmp_path / "map.onnx", "--deepness")
    assert squares.exit_code == 0, squares.err
    assert_refused(call("rank", tmp_path / "map.onnx", data / "U"), "exported for Deepness")
