import errno
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import pytest

from onesided.core.errors import OnesidedError
from onesided.storage.lock import LOCK, alone

BUSY = OnesidedError("busy")


@pytest.fixture
def holder(tmp_path: Path) -> subprocess.Popen[str]:
    """Return a process that holds the folder `tmp_path`."""
    hold = (
        "import sys, time; from pathlib import Path; from onesided.storage.lock import alone\n"
        "with alone(Path(sys.argv[1])): print('inside', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", hold, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "inside\n"
    return process


def test_a_second_process_is_refused_until_the_first_dies(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    with pytest.raises(OnesidedError, match="busy"), alone(tmp_path, otherwise=BUSY):
        pass
    holder.kill()
    holder.wait()
    assert (tmp_path / LOCK).exists(), "a killed process cleans up nothing"
    with alone(tmp_path, otherwise=BUSY):
        pass
    assert not list(tmp_path.iterdir())


def test_who_has_no_other_choice_waits(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    def wait() -> None:
        with alone(tmp_path):
            pass

    with ThreadPoolExecutor(1) as another:
        waiting = another.submit(wait)
        time.sleep(0.3)
        assert not waiting.done()
        holder.kill()
        holder.wait()
        waiting.result(timeout=30)


def test_of_many_that_wait_one_at_a_time_is_inside(tmp_path: Path) -> None:
    # The file is removed after each use; a removed file must not count as the lock.
    inside, most = [0], [0]

    def work() -> None:
        for _ in range(20):
            with alone(tmp_path / "lock"):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.001)
                inside[0] -= 1

    with ThreadPoolExecutor(4) as workers:
        for done in [workers.submit(work) for _ in range(4)]:
            done.result()
    assert most == [1]
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="there locks are no matter of the disk")
@pytest.mark.parametrize(
    ("reason", "works"), [(errno.EBADF, True), (errno.ENOSYS, True), (errno.EIO, False)]
)
def test_a_disk_that_cannot_lock_is_worked_on_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: int, works: bool
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(reason, "no")

    monkeypatch.setattr("fcntl.flock", refuse)
    with nullcontext() if works else pytest.raises(OSError, match="no"), alone(tmp_path):
        pass


def test_a_folder_that_takes_no_file_is_worked_in_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "no")

    monkeypatch.setattr("os.open", refuse)
    with alone(tmp_path, otherwise=BUSY):
        pass
