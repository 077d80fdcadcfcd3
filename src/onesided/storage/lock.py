"""One process at a time, on every system; when a holder dies, the system lets the next one in."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from onesided.core.errors import OnesidedError

LOCK = ".lock"
"""The lock file of a folder; it is there as long as somebody is inside, or was killed there."""
NO_LOCKS = frozenset(
    # Disks that cannot lock.
    {errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
    # Disks that take no lock file. They take no other file either, which is told where it is
    # written; where nothing is to be written the work is done.
    | {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}
)


@contextmanager
def alone(path: Path, otherwise: OnesidedError | None = None) -> Iterator[None]:
    """Let one process at a time into the block; a disk that cannot lock is worked on all the same.

    Args:
        path: Lock file, or a folder that exists, which has `LOCK` in it meanwhile.
        otherwise: Raised where another process is inside; None waits for it.
    """
    file = path / LOCK if path.is_dir() else path
    # A disk that cannot lock has lock files that outlive a kill at best: better none.
    lock = FileLock(file, blocking=otherwise is None, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        assert otherwise is not None
        raise otherwise from None
    except OSError as error:
        # Better unguarded, as work was before there were locks, than none on such disks.
        if error.errno not in NO_LOCKS:
            raise
    try:
        yield
    finally:
        if lock.is_locked:
            _remove(file)
            lock.release()


def _remove(file: Path) -> None:
    """Remove the lock file while it is held: who waits for it sees that, and makes a new one."""
    try:
        file.unlink(missing_ok=True)
    except PermissionError:
        return  # Windows: an open file stays until it is released
