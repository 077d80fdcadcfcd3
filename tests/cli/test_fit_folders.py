import csv
import json
import os
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from onesided.metrics.registry import ASSUMPTIONS
from tests.cli.command import TINY, call, contents, fit
from tests.cli.pictures import BLUE, RED, draw, draw_data

FILES = {
    *("config.toml", "manifest.json", "split.csv", "log.jsonl", "last.pt"),
    *("model.safetensors", "model.json", "result.json", "scores.csv", "report.html"),
}


def result_of(run: Path) -> dict[str, Any]:
    content = json.loads((run / "result.json").read_text())
    assert isinstance(content, dict)
    return content


def test_a_run_leaves_every_file_that_was_promised_and_no_half_written_one(trained: Path) -> None:
    names = set(contents(trained))
    assert names >= FILES
    assert not any(name.startswith(".") for name in names)


def test_the_result_says_what_was_done(trained: Path) -> None:
    result = result_of(trained)
    expected = {"method": "ce", "data": "folders", "seed": 0, "epochs": 1, "device": "cpu"}
    assert {key: result[key] for key in expected} == expected
    assert result["test"] is None
    assert (result["n_positive"], result["n_unlabelled"]) == (24, 48)
    assert result["skipped"] == []


def test_every_item_has_a_role(trained: Path) -> None:
    with (trained / "split.csv").open(newline="") as file:
        roles = {row["item"]: row["role"] for row in csv.DictReader(file)}
    assert len(roles) == 90
    assert {role for item, role in roles.items() if item.startswith("P/")} == {
        "train-positive",
        "held-out-positive",
    }


def test_the_same_command_on_a_finished_run_changes_nothing(shared_data: Path, run: Path) -> None:
    before = contents(run)
    written = {path: path.stat().st_mtime_ns for path in run.iterdir()}
    outcome = fit(shared_data, run)
    assert outcome.exit_code == 0
    assert contents(run) == before
    assert {path: path.stat().st_mtime_ns for path in run.iterdir()} == written


def test_a_lost_report_is_written_again(shared_data: Path, run: Path) -> None:
    page = (run / "report.html").read_bytes()
    (run / "report.html").unlink()
    assert fit(shared_data, run).exit_code == 0
    assert (run / "report.html").read_bytes() == page


def test_config_of_a_run_repeats_it_elsewhere(tmp_path: Path, trained: Path) -> None:
    again = tmp_path / "again"
    words = ("--config", trained / "config.toml", "-o", again, "--quiet", "--allow-degenerate")
    assert call("fit", *words).exit_code == 0
    for name in ("config.toml", "split.csv", "scores.csv", "model.safetensors", "model.json"):
        assert (again / name).read_bytes() == (trained / name).read_bytes(), name


def test_a_config_file_gives_way_to_flags(tmp_path: Path, shared_data: Path, trained: Path) -> None:
    # Other data and another method than the file's: what belongs to the old ones is left out.
    table = tmp_path / "numbers.csv"
    rows = [
        f"{word},{number / 7},{number % 5}"
        for word in ("positive", "unlabelled")
        for number in range(20)
    ]
    table.write_text("\n".join(["label,a,b", *rows]))
    words = ("--config", trained / "config.toml", "--table", table, "--method", "ncpu")
    outcome = call("fit", *words, "-o", tmp_path / "run", "--json", "--allow-degenerate")
    result = json.loads(outcome.out)
    assert (result["method"], result["data"], result["epochs"]) == ("ncpu", "table", 1)


def test_json_is_one_object_and_the_only_output(shared_data: Path, run: Path) -> None:
    outcome = fit(shared_data, run, "--json")
    assert json.loads(outcome.out) == result_of(run)
    assert outcome.err == ""


def test_quiet_keeps_the_result_and_drops_the_rest(shared_data: Path, run: Path) -> None:
    words = ("-p", shared_data / "P", "-u", shared_data / "U", "-o", run, "--allow-degenerate")
    chatty, quiet = call("fit", *words, *TINY), call("fit", *words, *TINY, "--quiet")
    assert "Data: 24 positives, 48 unlabelled, 18 held out" in chatty.err
    assert "1 epoch of batches of 16" in chatty.err
    assert "Data:" not in quiet.err
    assert quiet.out == chatty.out
    assert f"Report: {run / 'report.html'}\n" in quiet.out


def test_a_degenerate_model_rings_until_it_is_accepted(tmp_path: Path) -> None:
    # With twelve of some fifty red images labelled, whoever takes the others for negatives, at
    # their natural share of every batch, finds no image more likely positive than not.
    data = draw_data(tmp_path, positives=12, unlabelled=100)
    run = tmp_path / "run"
    folders = ("-p", data / "P", "-u", data / "U", "-o", run)
    choices = ("method.balance=plain", "train.learning_rate=0.1", "train.batching=mixed",
               "train.schedule=cosine", "train.nesterov=false")  # fmt: skip
    learning = [word for choice in choices for word in ("--set", choice)]
    words = (*folders, *TINY, *learning, "--epochs", "4", "--quiet")
    refused = call("fit", *words)
    assert refused.exit_code == 3
    assert "Degenerate model: Of the 20 unlabelled items" in refused.err
    assert "--allow-degenerate" in refused.err
    assert set(contents(run)) >= FILES
    accepted = call("fit", *words, "--allow-degenerate")
    assert accepted.exit_code == 0
    assert "Warning: Of the 20 unlabelled items" in accepted.err
    for_machines = call("fit", *words, "--json")
    assert for_machines.exit_code == 3
    assert json.loads(for_machines.out)["pu"]["degenerate"] in refused.err
    assert "the model calls 0 positive, which is nothing" in call("evaluate", run).err
    ranked = call("rank", run, data / "U", "-o", tmp_path / "ranked.csv")
    assert ranked.exit_code == 0
    assert "Warning: Of the 20 unlabelled items" in ranked.err


def test_ncpu_trains_on_folders_and_tells_that_it_needs_no_prior(
    tmp_path: Path, shared_data: Path
) -> None:
    words = ("-p", shared_data / "P", "-u", shared_data / "U", "-o", tmp_path / "run", *TINY)
    outcome = call("fit", *words, "--method", "ncpu", "--prior", "0.4", "--allow-degenerate")
    assert outcome.exit_code == 0
    assert "NcPU needs no prior; 0.4 serves the estimates only." in outcome.err
    prior = result_of(tmp_path / "run")["pu"]["figures"]["prior"]
    assert (prior["value"], prior["assumes"], prior["bias"]) == (0.4, ["given"], None)
    assert ASSUMPTIONS["given"].text in " ".join(outcome.out.split())


def test_negatives_and_a_test_folder_are_reported_on(tmp_path: Path, data: Path) -> None:
    for number in range(12):
        draw(data / "N" / f"{number}.png", 2000 + number, BLUE)
        draw(data / "T" / "positive" / f"{number}.png", 3000 + number, RED, side=20)
        draw(data / "T" / "negative" / f"{number}.png", 4000 + number, BLUE)
    (data / "T" / "negative" / "broken.png").write_bytes(b"no image")
    run = tmp_path / "run"
    outcome = fit(data, run, "-n", data / "N", "--test", data / "T", "--epochs", "5")
    assert outcome.exit_code == 0, outcome.err
    result = result_of(run)
    assert isinstance(result["test"], dict)
    assert result["test"]["auc"] > 0.9
    assert isinstance(result["known_negatives"], dict)
    assert result["known_negatives"]["count"] == 2, "a fifth is held out, CE learns from the rest"
    assert [name for name, _ in result["skipped"]] == ["T/negative/broken.png"]


def test_a_table_lists_images_as_well_as_folders_do(tmp_path: Path, shared_data: Path) -> None:
    rows = [f"P/{path.name},positive" for path in (shared_data / "P").iterdir()]
    rows += [f"U/{path.name},unlabelled" for path in (shared_data / "U").iterdir()]
    folder = Path(shutil.copytree(shared_data, tmp_path / "data"))
    table = folder / "items.csv"
    table.write_text("\n".join(["path,label", *rows]))
    outcome = call(
        "fit", "--table", table, "-o", tmp_path / "run", *TINY, "--json", "--allow-degenerate"
    )
    result = json.loads(outcome.out)
    assert (result["n_positive"], result["n_unlabelled"]) == (24, 48)


def test_ctrl_c_saves_and_the_same_command_reaches_the_same_bits(
    tmp_path: Path, shared_data: Path
) -> None:
    words = ("--epochs", "15")
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    assert fit(shared_data, straight, *words).exit_code == 0

    watcher = threading.Thread(target=_interrupt_after_first_epoch, args=(broken,))
    watcher.start()
    stopped = fit(shared_data, broken, *words)
    watcher.join()
    assert stopped.exit_code == 130
    assert "the same command resumes there" in stopped.err
    assert not (broken / "result.json").exists()

    assert fit(shared_data, broken, *words).exit_code == 0
    for name in ("scores.csv", "model.safetensors"):
        assert (broken / name).read_bytes() == (straight / name).read_bytes()
    logs = [
        [json.loads(line)["loss"] for line in (run / "log.jsonl").read_text().splitlines()]
        for run in (straight, broken)
    ]
    assert logs[0] == logs[1]
    assert len(logs[0]) == 15


def _interrupt_after_first_epoch(run: Path) -> None:
    deadline = time.monotonic() + 60
    while not (run / "last.pt").exists():
        assert time.monotonic() < deadline
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)


def test_scores_are_probabilities_in_order(trained: Path) -> None:
    with (trained / "scores.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    scores = np.array([float(row["score"]) for row in rows])
    assert (np.diff(scores) <= 0).all()
    assert [row["rank"] for row in rows] == [str(place) for place in range(1, len(rows) + 1)]
    assert [row["decision"] == "positive" for row in rows] == (scores > 0.5).tolist()


def test_a_way_to_find_a_prior_that_nobody_needs_is_told_to_be_unused(
    tmp_path: Path, shared_data: Path
) -> None:
    words = ("-p", shared_data / "P", "-u", shared_data / "U", "-o", tmp_path / "run", *TINY)
    outcome = call("fit", *words, "--prior", "km2", "--allow-degenerate")
    assert outcome.exit_code == 0
    assert "CE needs no prior, so km2 is not looked for" in outcome.err
