"""Ray as the engine: the same rows and scores as one process, also after a worker was killed."""

import csv
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from onesided.core.errors import ConfigError
from onesided.jobs.rank import rank
from onesided.run.ray_engine import RayEngine, engine_named
from onesided.storage.sorting import read_records, record_offsets, write_records
from tests.cli.command import assert_refused, call

CHUNK = 1024


def test_places_of_chunks_are_those_of_their_first_records(tmp_path: Path) -> None:
    records = [bytes(number % 7) for number in range(50)]
    write_records(tmp_path / "listing", records)
    for number, offset in enumerate(record_offsets(tmp_path / "listing", 8)):
        assert list(read_records(tmp_path / "listing", offset)) == records[8 * number :]
    assert number == 6


def test_engines_that_cannot_be_are_refused(trained: Path, data: Path) -> None:
    with pytest.raises(ConfigError, match="expected local or ray"):
        engine_named("spark", workers=2, address=None)
    with pytest.raises(ConfigError, match="workers is 0"):
        RayEngine(0)
    refused = call("rank", trained, data / "U", "--address", "auto")
    assert_refused(refused, "add --engine ray")


def rows_of(path: Path) -> list[tuple[str, str, str, str]]:
    with path.open(newline="") as file:
        return [tuple(row) for row in csv.reader(file)]  # type: ignore[misc]


def table(path: Path, rows: int) -> Path:
    random = np.random.default_rng(0)
    positive = np.arange(rows) % 5 == 0
    numbers = random.standard_normal((rows, 3)) + positive[:, None]
    lines = ["id,a,b,c,label"]
    for row, (a, b, c) in enumerate(numbers):
        label = "positive" if positive[row] else "unlabelled"
        # A gap here and there: such rows are listed as skipped.
        lines.append(f"i{row},{a},{b},{'' if row and row % 999 == 0 else c},{label}")
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ray")
    words = ("--method", "forest", "-o", folder / "run", "-q", "--allow-degenerate")
    fitted = call("fit", "--table", table(folder / "training.csv", 300), *words)
    assert fitted.exit_code == 0, fitted.err
    return folder / "run"


@pytest.mark.slow
def test_two_workers_give_the_rows_and_scores_of_one_process(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="pip install 'onesided[ray]'")
    items = table(tmp_path / "items.csv", 6 * CHUNK)
    one = rank(run, items, tmp_path / "one.csv")
    two = rank(run, items, tmp_path / "two.csv", engine="ray", workers=2)
    assert rows_of(tmp_path / "one.csv") == rows_of(tmp_path / "two.csv")
    assert (one.items, one.skipped) == (two.items, two.skipped)
    assert rows_of(tmp_path / "one.skipped.csv") == rows_of(tmp_path / "two.skipped.csv")


@pytest.mark.slow
def test_a_killed_worker_costs_no_row_and_doubles_none(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="pip install 'onesided[ray]'")
    items = table(tmp_path / "items.csv", 20 * CHUNK)
    rank(run, items, tmp_path / "one.csv")
    killed: list[int] = []
    ended = threading.Event()

    def kill_one() -> None:
        while not killed and not ended.is_set():
            killed.extend(scorers()[:1])
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)

    killer = threading.Thread(target=kill_one)
    killer.start()
    try:
        rank(run, items, tmp_path / "two.csv", engine="ray", workers=2)
    finally:
        ended.set()
        killer.join()
    assert killed, "the ranking ended before a worker could be killed"
    assert rows_of(tmp_path / "one.csv") == rows_of(tmp_path / "two.csv")


def scorers() -> list[int]:
    """Return the processes below this one that are Ray's workers at work on a chunk."""
    found = []
    for status in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = status.read_bytes()
        except OSError:
            continue  # it ended meanwhile
        if (
            words.startswith(b"ray::")
            and b"_ChunkWorker" in words
            and _is_below(int(status.parent.name))
        ):
            found.append(int(status.parent.name))
    return sorted(found)


def _is_below(pid: int) -> bool:
    """Whether a process descends from this one, so that nobody else's is killed."""
    while pid > 1:
        if pid == os.getpid():
            return True
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        except OSError:
            return False
        pid = int(stat.rpartition(")")[2].split()[1])
    return False


@pytest.mark.slow
def test_ray_resumes_what_one_process_began(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="pip install 'onesided[ray]'")
    items = table(tmp_path / "items.csv", 5 * CHUNK)
    rank(run, items, tmp_path / "one.csv")
    with monkeypatch.context() as patched:
        from onesided.run import rank as module

        entries = iter(range(2))
        true = module.entry_of

        def stops(*given: object) -> object:
            next(entries)  # StopIteration at the third chunk
            return true(*given)  # type: ignore[arg-type]

        patched.setattr(module, "entry_of", stops)
        with pytest.raises((StopIteration, RuntimeError)):
            rank(run, items, tmp_path / "two.csv")
    assert (tmp_path / "two.csv.partial").is_dir()
    rank(run, items, tmp_path / "two.csv", engine="ray", workers=2)
    assert rows_of(tmp_path / "one.csv") == rows_of(tmp_path / "two.csv")
    assert not (tmp_path / "two.csv.partial").exists()
