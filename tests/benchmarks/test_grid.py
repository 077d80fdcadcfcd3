"""Runs are done once, failures are recorded, and the file says where numbers come from."""

import csv
import json
import os
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.grid import Budget, Entry, Grid
from benchmarks.origin import code_in_memory
from benchmarks.runs import Collected, add_origin, describe, folder_name, run_grid
from onesided.core.errors import ConfigError, DataNotFound, FolderTaken, Interrupted
from onesided.engine.fit import Watcher
from onesided.run.load import load_data
from onesided.storage.lock import alone
from tests.benchmarks.fakes import TOY, folders_in, toy_entry, toy_grid
from tests.run.running import run_in


def go(grid: Grid, folder: Path, *seeds: int, only: str | None = None) -> dict[str, Any]:
    """Run a grid silently, and return its collected file."""
    run_grid(grid, folders_in(folder), seeds=seeds, only=only, say=lambda line: None)
    return collected(folder)


def collected(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "results" / "toy.json").read_text())
    return content


def status(content: dict[str, Any]) -> dict[tuple[str, int], str]:
    return {(record["label"], record["seed"]): record["status"] for record in content["runs"]}


def run_folder(folder: Path, one: Entry, seed: int) -> Path:
    return folder / "work" / folder_name(describe(one.label, one.config(seed)))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grid")
    go(toy_grid(), folder, 0, 1)
    return folder


def test_figures_are_those_of_the_result_files(done: Path) -> None:
    for record in collected(done)["runs"]:
        one = toy_entry(record["label"], record["method"])
        written = json.loads((run_folder(done, one, record["seed"]) / "result.json").read_text())
        assert record["result"]["test"] == written["test"]
        assert record["result"]["pu"]["degenerate"] == written["pu"]["degenerate"]
        assert record["seconds"] == written["seconds"]


def test_two_processes_fill_one_file(done: Path, tmp_path: Path) -> None:
    records = collected(done)["runs"]
    first, second = (Collected(toy_grid(), tmp_path / "results", (0, 1)) for _ in range(2))
    for turn, record in enumerate(records):
        (first, second)[turn % 2].put(record)
    assert collected(tmp_path)["runs"] == records


def test_a_process_waits_while_another_one_writes_the_file(
    done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, others, *_ = collected(done)["runs"]
    first, second = (Collected(toy_grid(), tmp_path / "results", (0, 1)) for _ in range(2))
    other = threading.Thread(target=second.put, args=(others,))
    written = first._content

    def content_while_another_waits() -> dict[str, Any]:
        other.start()
        other.join(0.2)
        assert other.is_alive()
        return written()

    monkeypatch.setattr(first, "_content", content_while_another_waits)
    first.put(mine)
    other.join()
    assert [record for record in collected(tmp_path)["runs"] if record["result"]] == [mine, others]


def test_settings_can_be_evaluated_without_the_test_set(tmp_path: Path) -> None:
    outside = replace(TOY, data={**TOY.data, "clean": 4})
    one = toy_entry("CE", "ce", budget=outside)
    content = go(replace(toy_grid(one), evaluated_on="clean"), tmp_path, 0)
    assert content["judged_on"] == "clean"
    with (run_folder(tmp_path, one, 0) / "split.csv").open(encoding="utf-8") as file:
        roles = {line["item"]: line["role"] for line in csv.DictReader(file)}
    evaluated = [item for item, role in roles.items() if role.startswith("test")]
    assert len(evaluated) == 8
    assert all(item.startswith("train/") for item in evaluated)
    assert "clean" not in {role.partition("-")[0] for role in roles.values()}


def test_evaluating_outside_p_and_u_needs_samples_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"needs data\.clean"):
        go(replace(toy_grid(), evaluated_on="clean"), tmp_path, 0)


def test_every_run_says_with_which_seed_code_and_machine_it_was_made(done: Path) -> None:
    content = collected(done)
    assert status(content) == {(label, s): "finished" for label in ("CE", "uPU") for s in (0, 1)}
    for record in content["runs"]:
        (origin,) = record["origins"]
        assert {key: origin[key] for key in ("commit", "dirty")} == code_in_memory()
        assert origin["cpu"]
        assert origin["threads"] == 1
        assert record["result"]["seed"] == record["seed"]


def test_the_budget_is_written_in_words_and_in_full(done: Path) -> None:
    budget = collected(done)["budget"]
    exact = budget["exact"]["toy-images"]
    assert budget["words"] == "Which is better?"
    assert exact["train"] == toy_entry("CE", "ce").config(0).train.model_dump(mode="json")
    assert exact["data"]["unlabelled"] == 32


def test_methods_that_need_a_prior_get_the_true_one_and_the_record_says_so(done: Path) -> None:
    found = {(record["label"], record["prior"]) for record in collected(done)["runs"]}
    assert found == {("CE", None), ("uPU", "truth")}
    priors = [r["result"]["prior"] for r in collected(done)["runs"] if r["label"] == "uPU"]
    assert all(prior["origin"].startswith("truth") for prior in priors)


def test_no_path_of_the_machine_is_in_the_collected_file(tmp_path: Path) -> None:
    grid = toy_grid(toy_entry("CE", "ce"))
    root = tmp_path / "data"
    run_grid(grid, folders_in(tmp_path), seeds=(0,), root=root, say=lambda line: None)
    assert str(tmp_path) not in json.dumps(collected(tmp_path))


def test_the_same_command_again_runs_nothing_and_changes_nothing(done: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in done.rglob("*") if path.is_file()}
    go(toy_grid(), done, 0, 1)
    assert before == {path: path.stat().st_mtime_ns for path in done.rglob("*") if path.is_file()}


def test_some_rows_can_be_run_before_others(tmp_path: Path) -> None:
    grid = toy_grid(toy_entry("CE", "ce"), toy_entry("vPU", "vpu"))
    run_grid(grid, folders_in(tmp_path), seeds=(0,), rows=("vPU",), say=lambda line: None)
    assert status(collected(tmp_path)) == {("CE", 0): "missing", ("vPU", 0): "finished"}
    with pytest.raises(ConfigError, match="--rows takes some of CE, vPU; got 'nnPU'"):
        run_grid(grid, folders_in(tmp_path), seeds=(0,), rows=("vPU", "nnPU"))


def test_rows_may_differ_in_the_training_setting_that_is_studied() -> None:
    plain = toy_entry("CE", "ce")
    gentle = replace(plain, label="gentle", train={**plain.train, "views": "gentle"})
    with pytest.raises(ConfigError, match="different budgets"):
        toy_grid(plain, gentle)
    assert replace(toy_grid(plain), entries=(plain, gentle), varied=frozenset({"views"}))


def test_further_seeds_and_data_sets_join_what_is_there(tmp_path: Path) -> None:
    images, points = toy_entry("CE", "ce"), toy_entry("CE", "ce", data="toy-vectors")
    grid = toy_grid(images, points)
    first = go(grid, tmp_path, 0, only="toy-images")
    assert [(r["data"], r["seed"], r["status"]) for r in first["runs"]] == [
        ("toy-images", 0, "finished"),
        ("toy-vectors", 0, "missing"),
    ]
    second = go(grid, tmp_path, 1, only="toy-vectors")
    assert [(r["data"], r["seed"], r["status"]) for r in second["runs"]] == [
        ("toy-images", 0, "finished"),
        ("toy-images", 1, "missing"),
        ("toy-vectors", 0, "missing"),
        ("toy-vectors", 1, "finished"),
    ]


def test_results_of_other_settings_are_not_kept_as_if_they_were_these(tmp_path: Path) -> None:
    go(toy_grid(toy_entry("CE", "ce")), tmp_path, 0)
    longer = replace(TOY, train={**TOY.train, "learning_rate": 0.1})
    changed = toy_grid(toy_entry("CE", "ce", budget=longer))
    content = go(changed, tmp_path, 1)
    assert status(content) == {("CE", 1): "finished"}


def test_a_run_that_fails_is_recorded_with_its_message_and_the_others_continue(
    tmp_path: Path,
) -> None:
    grid = toy_grid()
    blocked = run_folder(tmp_path, grid.entries[0], 0)
    blocked.parent.mkdir(parents=True)
    blocked.write_text("a file where the run's folder should be")
    content = go(grid, tmp_path, 0)
    assert status(content) == {("CE", 0): "failed", ("uPU", 0): "finished"}
    assert "is a file" in content["runs"][0]["failure"]
    assert content["runs"][0]["result"] is None

    blocked.unlink()
    assert status(go(grid, tmp_path, 0)) == {("CE", 0): "finished", ("uPU", 0): "finished"}


def test_an_interrupted_run_resumes_and_ends_like_one_that_was_not(
    tmp_path: Path, done: Path
) -> None:
    one = toy_entry("CE", "ce")
    config = one.config(0)
    folder = run_folder(tmp_path, one, 0)
    stop = Watcher(step=lambda clock: os.kill(os.getpid(), signal.SIGTERM))
    add_origin(folder)
    with pytest.raises(Interrupted):
        run_in(folder, config, load_data(config.data), watcher=stop)
    (resumed,) = go(toy_grid(one), tmp_path, 0)["runs"]
    assert resumed["status"] == "finished"
    assert resumed["result"]["test"] == collected(done)["runs"][0]["result"]["test"]


def test_a_run_of_another_process_is_not_a_failed_run(done: Path) -> None:
    before = (done / "results" / "toy.json").read_bytes()
    one = toy_entry("CE", "ce")
    with alone(run_folder(done, one, 0)), pytest.raises(FolderTaken):
        go(toy_grid(), done, 0, 1)
    assert (done / "results" / "toy.json").read_bytes() == before


def pretend_other_code(run_made: Path) -> None:
    """Make the file of the run's origins say that another commit made it."""
    note = run_made.with_name(f"{run_made.name}.origin.json")
    content = json.loads(note.read_text())
    content["origins"][-1]["commit"] = "other"
    note.write_text(json.dumps(content))


def test_later_code_does_not_claim_a_run_that_was_finished_before(tmp_path: Path) -> None:
    one = toy_entry("CE", "ce")
    go(toy_grid(one), tmp_path, 0)
    pretend_other_code(run_folder(tmp_path, one, 0))
    (record,) = go(toy_grid(one), tmp_path, 0)["runs"]
    assert [origin["commit"] for origin in record["origins"]] == ["other"]


def test_a_run_resumed_with_other_code_names_both(tmp_path: Path) -> None:
    one = toy_entry("CE", "ce")
    folder = run_folder(tmp_path, one, 0)
    add_origin(folder)
    pretend_other_code(folder)
    (record,) = go(toy_grid(one), tmp_path, 0)["runs"]
    commits = [origin["commit"] for origin in record["origins"]]
    assert commits == ["other", code_in_memory()["commit"]]


def test_the_time_of_an_interrupted_run_is_that_of_all_its_parts(tmp_path: Path) -> None:
    one = toy_entry("CE", "ce")
    go(toy_grid(one), tmp_path, 0)
    folder = run_folder(tmp_path, one, 0)
    *before, last = (folder / "log.jsonl").read_text().splitlines()
    # As if the first part had taken long: the log counts from the first start.
    slow = json.dumps(json.loads(last) | {"seconds": 9000.5})
    (folder / "log.jsonl").write_text("".join(f"{line}\n" for line in [*before, slow]))
    (folder / "result.json").unlink()
    (record,) = go(toy_grid(one), tmp_path, 0)["runs"]
    assert record["seconds"] == 9000.5


def test_rows_at_different_budgets_are_refused() -> None:
    more = Budget(TOY.data, TOY.backbone, {**TOY.train, "epochs": 2})
    with pytest.raises(ConfigError, match="'uPU' and 'CE' have different budgets on toy-images"):
        toy_grid(toy_entry("CE", "ce"), toy_entry("uPU", "upu", budget=more))


def test_missing_data_is_reported_before_the_first_run(tmp_path: Path) -> None:
    grid = toy_grid(toy_entry("CE", "ce"), toy_entry("CE", "ce", data="cifar10"))
    with pytest.raises(DataNotFound):
        run_grid(grid, folders_in(tmp_path), seeds=(0,), root=tmp_path, say=lambda line: None)
    assert list(tmp_path.rglob("result.json")) == []


def test_an_unknown_data_set_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--only takes one of toy-images; got 'digits'"):
        go(toy_grid(), tmp_path, 0, only="digits")
