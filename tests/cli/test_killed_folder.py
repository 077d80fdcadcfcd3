"""A run on image folders, killed twenty times without warning, ends as if nothing had happened.

Images are decoded into a file of the run, so that kills hit decoding, training, the writing
of results and the page alike.
"""

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from onesided.data.read import cache
from onesided.storage.together import pending
from tests.cli.pictures import draw_data
from tests.processes import PATIENCE, command, ended, started

EPOCHS = 12
WORDS = (
    *("--method", "ncpu", "--epochs", str(EPOCHS), "--device", "cpu", "--quiet"),
    *("--set", "backbone.width=0.125", "--set", "train.batch_size=16"),
    *("--set", "method.projector_width=16", "--set", "train.save_minutes=0.0001"),
    "--allow-degenerate",
)
IN_DECODING, IN_TRAINING, IN_PAGE = 3, 9, 2
FINISH = ("model.safetensors", "model.json", "scores.csv", "scores.npz", "scores.npz", "scores.csv")
SAME = ("model.safetensors", "model.json", "scores.csv", "scores.npz", "report.npz", "split.csv")


def decoding_into_a_file(words: Sequence[str]) -> None:
    """Run a command that thinks every folder worth a file, which is flushed often."""
    cache.WORTH_A_FILE, cache.SYNC_BYTES = 0, 2000
    command(words)


def kill_when(happened: Callable[[], bool], process: BaseProcess) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert process.is_alive(), "it ended before the moment came"
        assert time.monotonic() < deadline, "nothing happened for too long"
        time.sleep(0.0005)
    process.kill()


def after(seconds: float) -> bool:
    time.sleep(seconds)
    return True


def rows(run: Path) -> int:
    log = run / "log.jsonl"
    return log.read_bytes().count(b"\n") if log.exists() else 0


def decoded(run: Path) -> int:
    """Return how many bytes of pixels are decoded so far."""
    parts = list(run.glob("cache/*.part"))
    try:
        return (parts[0] / "pixels").stat().st_size if parts else 0
    except FileNotFoundError:
        return 0


def written(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


def moments(run: Path) -> Iterator[Callable[[], bool]]:
    """Yield when to kill: each is true from some moment of a command on."""
    chance = random.Random(20)
    for _ in range(IN_DECODING):
        pixels = chance.randrange(0, 90 * 192)
        # A machine that is busy elsewhere may decode all of it between two looks.
        yield lambda pixels=pixels: (  # type: ignore[misc]
            decoded(run) >= pixels or (run / "manifest.json").exists()
        )
    for epoch in sorted(chance.randrange(0, EPOCHS - 1) for _ in range(IN_TRAINING)):
        wait = chance.uniform(0, 0.03)
        yield lambda epoch=epoch, wait=wait: (  # type: ignore[misc]
            rows(run) >= epoch and (run / "last.pt").exists() and after(wait)
        )
    for name in FINISH:
        # Files that change together are prepared beside the others, or are there already.
        before = written(run / name)
        yield lambda name=name, before=before: (  # type: ignore[misc]
            (pending(run)[0] / name).exists() or written(run / name) > before
        )
    for _ in range(IN_PAGE):
        wait = chance.uniform(0, 0.2)
        yield lambda wait=wait: (  # type: ignore[misc]
            (run / "result.json").exists() and after(wait)
        )


def without_time(path: Path) -> list[dict[str, object]]:
    """Return the rows of a log, or a result, without what a clock said."""
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    content = [json.loads(line) for line in lines]
    return [{key: value for key, value in row.items() if key != "seconds"} for row in content]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork a process")
def test_killed_twenty_times_a_run_on_folders_ends_with_the_same_bytes(tmp_path: Path) -> None:
    data = draw_data(tmp_path / "data")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    folders = ["fit", "-p", str(data / "P"), "-u", str(data / "U"), *WORDS, "-o"]
    finished = {True: 0, False: 0}
    assert ended(started([*folders, str(whole)], decoding_into_a_file)) == 0
    for moment in moments(broken):
        process = started([*folders, str(broken)], decoding_into_a_file)
        kill_when(moment, process)
        assert ended(process) == -signal.SIGKILL
        finished[(broken / "result.json").exists()] += 1
    assert finished[False] >= 18 - len(FINISH), "a killed run does not look finished"
    assert ended(started([*folders, str(broken)], decoding_into_a_file)) == 0
    for name in SAME:
        assert (whole / name).read_bytes() == (broken / name).read_bytes(), name
    for name in ("result.json", "log.jsonl"):
        assert without_time(whole / name) == without_time(broken / name), name
    assert {path.name for path in broken.iterdir()} == {path.name for path in whole.iterdir()}
    assert not list(broken.glob(".*")), "no temporary file is left behind"
    assert len((broken / "report.html").read_bytes()) > 10_000
