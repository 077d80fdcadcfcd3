"""A run that is killed without warning, however often, ends as if nothing had happened."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

WORDS = [
    *("fit", "--data", "toy-images", "--method", "ncpu", "--epochs", "12"),
    *("--set", "backbone.width=0.125", "--set", "train.batch_size=16"),
    *("--set", "method.projector_width=16", "--set", "train.save_minutes=0.001"),
    *("--quiet", "--allow-degenerate"),
]
PATIENCE = 300  # seconds; a loaded machine needs several for the imports alone


def start(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "onesided", *WORDS, "-o", str(folder)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def wait_for_rows(log: Path, rows: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        if log.exists() and log.read_bytes().count(b"\n") >= rows:
            return
        time.sleep(0.01)


@pytest.mark.slow
def test_killed_three_times_a_run_ends_with_the_same_bytes(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert start(whole).wait(PATIENCE) == 0
    killed = 0
    for rows in (2, 5, 9):
        process = start(broken)
        wait_for_rows(broken / "log.jsonl", rows, process)
        process.send_signal(signal.SIGKILL)
        killed += process.wait(PATIENCE) == -signal.SIGKILL
    assert killed == 3
    assert not (broken / "result.json").exists(), "a killed run does not look finished"
    assert start(broken).wait(PATIENCE) == 0
    for name in ("model.safetensors", "model.json", "scores.csv", "split.csv", "config.toml"):
        assert (whole / name).read_bytes() == (broken / name).read_bytes(), name
    assert not list(broken.glob(".*")), "no temporary file is left behind"
