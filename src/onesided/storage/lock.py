"""One process at a time, on every system; the system frees the lock when its holder dies."""

import errno
import glob
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from onesided.core.errors import FolderTaken, OnesidedError
from onesided.storage.atomic import remove_half_written
from onesided.storage.names import shown_path

LOCK = ".lock"
"""The lock file of a folder; it is there while a process holds it, or after a kill."""
NO_LOCKS = frozenset(
    # Disks that cannot lock.
    {errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
    # Disks that take no lock file. They take no other file either: writing one raises, and
    # work that writes none is done.
    | {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}
)


@contextmanager
def alone(path: Path, otherwise: OnesidedError | None = None) -> Iterator[None]:
    """Let one process at a time into the block; on a disk that cannot lock, let all in.

    Args:
        path: Lock file, or a folder that exists, which holds `LOCK` during the block.
        otherwise: Raised where another process is inside; None waits for it.
    """
    file = path / LOCK if path.is_dir() else path
    # On a disk that cannot lock, a soft lock file would outlive a kill: none is better.
    lock = FileLock(file, blocking=otherwise is None, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        assert otherwise is not None
        raise otherwise from None
    except OSError as error:
        # Such disks are used without a lock rather than not at all.
        if error.errno not in NO_LOCKS:
            raise
    try:
        yield
    finally:
        if lock.is_locked:
            # Removed while it is held: a waiting process notices, and makes a new one.
            # Windows refuses: an open file stays until it is released.
            with suppress(PermissionError):
                file.unlink(missing_ok=True)
            lock.release()


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Lock a folder that exists; raise where another command is at work in it."""
    taken = FolderTaken(
        f"Another command is at work in {folder}. Wait for it, or choose another folder."
    )
    with alone(folder, taken):
        yield


@contextmanager
def writing_alone(output: Path) -> Iterator[None]:
    """Let one command at a time write a file, and remove what a killed one left of it."""
    busy = OnesidedError(f"Another command is writing {shown_path(output)}. Wait for it to end.")
    with alone(output.with_name(f"{output.name}.lock"), otherwise=busy):
        remove_half_written(output.parent, [glob.escape(output.name)])
        yield
