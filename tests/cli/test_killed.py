"""A run that is killed without warning, however often, ends as if nothing had happened."""

import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from tests.processes import PATIENCE, ended, started

WORDS = [
    *("fit", "--data", "toy-images", "--method", "ncpu", "--epochs", "12"),
    *("--set", "backbone.width=0.125", "--set", "train.batch_size=16"),
    *("--set", "method.projector_width=16", "--set", "train.save_minutes=0.001"),
    *("--quiet", "--allow-degenerate"),
]


def start(folder: Path) -> BaseProcess:
    return started([*WORDS, "-o", str(folder)])


def wait_for_rows(log: Path, rows: int, process: BaseProcess) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.is_alive():
        if log.exists() and log.read_bytes().count(b"\n") >= rows:
            return
        time.sleep(0.01)


@pytest.mark.slow
def test_killed_three_times_a_run_ends_with_the_same_bytes(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert ended(start(whole)) == 0
    killed = 0
    for rows in (2, 5, 9):
        process = start(broken)
        wait_for_rows(broken / "log.jsonl", rows, process)
        process.kill()
        killed += ended(process) == -signal.SIGKILL
    assert killed == 3
    assert not (broken / "result.json").exists(), "a killed run does not look finished"
    assert ended(start(broken)) == 0
    for name in ("model.safetensors", "model.json", "scores.csv", "split.csv", "config.toml"):
        assert (whole / name).read_bytes() == (broken / name).read_bytes(), name
    assert not list(broken.glob(".*")), "no temporary file is left behind"
