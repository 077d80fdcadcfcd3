"""Cells are run once, resumed to the bit, and shared between processes."""

import json
import shutil
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from onesided.bench.cells import Cell
from onesided.bench.results import beside, read_records, result_file
from onesided.bench.work import Work
from onesided.core.errors import FolderTaken
from onesided.jobs.bench import run_tables
from onesided.run.folder import working_in
from tests.cli.command import assert_refused, call
from tests.processes import PATIENCE, ended, started

TARGETS = ("ncpu/table2", "ncpu/table7", "ncpu/figure2", "ncpu/figure6")
ROW = Cell("ncpu", "table2", "ncpu", "toy-images", "smoke", 0)
TIMES = ("seconds", "origins")


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the results of four tables that share the row of NcPU."""
    folder = tmp_path_factory.mktemp("bench")
    words = ("--scale", "smoke", "--seeds", "1", "--only", "ncpu,ncpu-self", "-o", folder)
    outcome = call("bench", "run", *TARGETS, *words)
    assert outcome.exit_code == 0, outcome.err
    assert outcome.out == f"5 cells: 5 finished, 0 failed, 0 not run. Results: {folder}\n"
    return folder


def test_tables_that_share_a_row_are_filled_by_one_run(output: Path) -> None:
    assert len(list((output / "runs" / "smoke").glob("*/result.json"))) == 2
    records = {name: read_records(output, "ncpu", name) for name in ("table2", "table7")}
    of_table2 = [one for one in records["table2"] if one["row"] == "ncpu"]
    assert of_table2 == records["table7"]


def test_a_record_says_where_and_how_it_was_measured(output: Path) -> None:
    (record,) = read_records(output, "ncpu", "table7")
    assert record["at"].startswith("reduced (toy images")
    assert record["origins"][0]["cpu"]
    assert "commit" in record["origins"][0]
    assert record["settings"]["train"]["epochs"] == 3
    assert record["seconds"] > 0
    assert 0 <= record["figures"]["oa"] <= 1


def test_curves_and_maps_are_in_the_files_of_their_figures(output: Path) -> None:
    (curve,) = read_records(output, "ncpu", "figure6")
    assert curve["curve"]["epoch"] == [1, 2, 3]
    assert curve["curve"]["test_oa"][-1] == pytest.approx(curve["figures"]["oa"], abs=1e-4)
    (mapped,) = read_records(output, "ncpu", "figure2")
    assert len(mapped["points"]) == 80
    assert {label for _, _, label in mapped["points"]} == {0, 1}


def test_what_is_finished_is_not_run_again(output: Path) -> None:
    result = ROW.folder(output) / "result.json"
    before = result.stat().st_mtime_ns
    run_tables(TARGETS, scale="smoke", output=output, seeds=1, only=("ncpu",))
    assert result.stat().st_mtime_ns == before


def test_a_record_without_its_run_folder_counts_while_its_settings_are_the_same(
    output: Path, tmp_path: Path
) -> None:
    shutil.copytree(output / "ncpu", tmp_path / "ncpu")
    run_tables(["ncpu/table2"], scale="smoke", output=tmp_path, seeds=1, only=("ncpu",))
    assert not (tmp_path / "runs").exists()
    for path in (tmp_path / "ncpu").glob("*.json"):
        path.write_text(path.read_text().replace(f'"{ROW.key()}"', '"0badf00d"'))
    run_tables(["ncpu/table2"], scale="smoke", output=tmp_path, seeds=1, only=("ncpu",))
    assert (ROW.folder(tmp_path) / "result.json").exists()
    assert ROW.key() in result_file(tmp_path, "ncpu", "table2").read_text()


def test_a_record_by_other_rules_than_todays_is_measured_again(
    output: Path, tmp_path: Path
) -> None:
    shutil.copytree(output / "ncpu", tmp_path / "ncpu")
    for path in (tmp_path / "ncpu").glob("*.json"):
        content = json.loads(path.read_text())
        for cell in content["cells"]:
            assert cell.pop("then") == {}
        path.write_text(json.dumps(content))
    run_tables(["ncpu/table2"], scale="smoke", output=tmp_path, seeds=1, only=("ncpu",))
    assert (ROW.folder(tmp_path) / "result.json").exists()
    (record,) = (one for one in read_records(tmp_path, "ncpu", "table2") if one["row"] == "ncpu")
    assert record["then"] == {}


def test_a_record_serves_another_table_that_shows_no_more_of_the_run(
    output: Path, tmp_path: Path
) -> None:
    shutil.copytree(output / "ncpu", tmp_path / "ncpu")
    before = read_records(tmp_path, "ncpu", "table7")
    result_file(tmp_path, "ncpu", "table7").unlink()
    result_file(tmp_path, "ncpu", "figure6").unlink()
    run_tables(["ncpu/table7"], scale="smoke", output=tmp_path, seeds=1, only=("ncpu",))
    assert not (tmp_path / "runs").exists()
    assert read_records(tmp_path, "ncpu", "table7") == before
    run_tables(["ncpu/figure6"], scale="smoke", output=tmp_path, seeds=1, only=("ncpu",))
    assert (ROW.folder(tmp_path) / "result.json").exists(), "a table holds no curve"
    (curve,) = read_records(tmp_path, "ncpu", "figure6")
    assert curve["curve"]["epoch"] == [1, 2, 3]


def test_a_cell_that_another_process_works_on_is_left_to_it(tmp_path: Path) -> None:
    waited = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        raise FolderTaken("still at work")  # ends the test instead of waiting

    with working_in(ROW.folder(tmp_path)), pytest.raises(FolderTaken, match="still at work"):
        Work([ROW], tmp_path, sleep=sleep).do()
    assert waited


def test_data_that_is_not_here_is_named_and_does_not_stop_the_others(tmp_path: Path) -> None:
    found = run_tables(
        ["ncpu/table10"],
        scale="paper",
        output=tmp_path / "out",
        root=tmp_path,
        seeds=1,
        only=("ncpu-ir80", "ncpu-ir53"),
    )
    assert [one["status"] for one in found.records] == ["not run", "not run"]
    assert not found.failed
    assert "cifar" in found.records[0]["failure"].lower()


def test_a_failure_is_recorded_and_the_command_says_so(tmp_path: Path) -> None:
    folder = ROW.folder(tmp_path)
    folder.mkdir(parents=True)
    (folder / "foreign.txt").write_text("not a run")
    words = ("--scale", "smoke", "--seeds", "1", "--only", "ncpu", "-o", tmp_path)
    outcome = call("bench", "run", "ncpu/table7", *words)
    assert outcome.exit_code == 1
    (record,) = read_records(tmp_path, "ncpu", "table7")
    assert record["status"] == "failed"
    assert "is not empty and holds no run" in record["failure"]


def test_several_scales_are_run_in_the_order_given(tmp_path: Path) -> None:
    found = run_tables(
        ["ncpu/table10"],
        scale=["paper", "features"],
        output=tmp_path / "out",
        root=tmp_path,
        seeds=1,
        only=("ncpu-ir80",),
    )
    assert [one["scale"] for one in found.records] == ["paper", "features"]


def test_the_protocol_of_pu_bench_runs_and_keeps_an_epoch(tmp_path: Path) -> None:
    words = ("--scale", "smoke", "--seeds", "1", "--only", "nnpu,ce", "-o", tmp_path)
    outcome = call("bench", "run", "pu-bench", *words)
    assert outcome.exit_code == 0, outcome.err
    for record in read_records(tmp_path, "pu-bench", "accuracy"):
        assert record["prior"] == 0.4
        assert (record["n_positive"], record["n_unlabelled"]) == (20, 60)
        folder = Cell("pu-bench", "accuracy", record["row"], "toy-images", "smoke", 0)
        result = json.loads((folder.folder(tmp_path) / "result.json").read_text())
        assert any("(proxy accuracy" in said for said in result["warnings"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("ncpu/table9", "--scale", "smoke", "--only", "ncpu"),
            "--only ncpu: none of these tables",
        ),
        (("ncpu/table9", "--scale", "smoke", "--data", "mnist"), "--data mnist: none of these"),
        (("ncpu/table9", "--scale", "tiny"), "There is no scale 'tiny'."),
        (("pico/table1", "--scale", "smoke"), "There is no suite 'pico'."),
    ],
)
def test_a_wrong_name_is_refused(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    assert_refused(call("bench", "run", *words, "-o", tmp_path), said)


def start(output: Path, *words: str) -> BaseProcess:
    common = ("--scale", "smoke", "--seeds", "1", "-q", "-o", str(output))
    return started(["bench", "run", "ncpu/table7", *common, *words])


def without_times(output: Path) -> list[dict[str, object]]:
    records = read_records(output, "ncpu", "table7")
    return [{key: one[key] for key in one if key not in TIMES} for one in records]


@pytest.mark.slow
def test_killed_and_resumed_a_cell_has_the_same_bytes(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert ended(start(whole, "--only", "ncpu")) == 0
    process, log = start(broken, "--only", "ncpu"), ROW.folder(broken) / "log.jsonl"
    deadline = time.monotonic() + PATIENCE
    while process.is_alive() and time.monotonic() < deadline:
        if log.exists() and log.read_bytes().count(b"\n") >= 1:
            break
        time.sleep(0.01)
    process.kill()
    assert ended(process) == -signal.SIGKILL
    assert not (ROW.folder(broken) / "result.json").exists()
    assert ended(start(broken, "--only", "ncpu")) == 0
    for name in ("model.safetensors", "scores.csv", "scores.npz", "split.csv", "config.toml"):
        assert (ROW.folder(whole) / name).read_bytes() == (ROW.folder(broken) / name).read_bytes()
    assert without_times(whole) == without_times(broken)
    assert _measured(whole) == _measured(broken)


def _measured(output: Path) -> list[object]:
    lines = (ROW.folder(output) / "log.jsonl").read_text().splitlines()
    return [json.loads(line)["measured"] for line in lines]


@pytest.mark.slow
def test_two_processes_share_the_cells_and_leave_the_same_results(tmp_path: Path) -> None:
    alone, together = tmp_path / "alone", tmp_path / "together"
    assert ended(start(alone)) == 0
    both = [start(together), start(together)]
    assert [ended(process) for process in both] == [0, 0]
    assert without_times(alone) == without_times(together)
    runs = list((together / "runs" / "smoke").glob("*/result.json"))
    assert len(runs) == 3
    for run in runs:
        assert len(json.loads(beside(run.parent).read_text())["origins"]) == 1


@pytest.mark.slow
def test_jobs_share_the_cells_too(tmp_path: Path) -> None:
    assert ended(start(tmp_path, "--jobs", "2")) == 0
    assert [one["status"] for one in read_records(tmp_path, "ncpu", "table7")] == ["finished"] * 3


@pytest.mark.slow
def test_tasks_of_ray_leave_the_results_of_one_process(output: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="pip install 'onesided[ray]'")
    rows = ("ncpu", "ncpu-self")
    asked = {"scale": "smoke", "seeds": 1, "only": rows, "engine": "ray", "jobs": 2}
    found = run_tables(TARGETS, output=tmp_path, **asked)  # type: ignore[arg-type]
    assert (len(found.records), found.count("finished")) == (5, 5)
    assert len(list((tmp_path / "runs" / "smoke").glob("*/result.json"))) == 2
    for name in ("table2", "table7"):
        mine, theirs = (
            [{key: one[key] for key in one if key not in TIMES} for one in records]
            for records in (
                read_records(tmp_path, "ncpu", name),
                read_records(output, "ncpu", name),
            )
        )
        assert mine == theirs
