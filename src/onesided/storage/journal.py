"""Work that goes on after a kill: files that only grow, and one process at a time."""

import errno
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from onesided.core.errors import DataError, OnesidedError
from onesided.storage.names import printable

NO_LOCKS = (errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""What file systems say that cannot lock; NFS, the first of them of a folder."""


class Journal:
    """JSON lines, of which the first says what the others belong to.

    A kill can tear the last line at most, and a torn line is no entry. A file that
    belongs to something else has no entries, and is begun anew when written.
    """

    def __init__(self, path: Path, belongs_to: Mapping[str, object]) -> None:
        self.path = path
        self._header = _line(belongs_to)

    def entries(self) -> Iterator[Any]:
        """Yield what was appended, a line at a time."""
        for line in self._lines():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                raise self.damaged(str(error)) from None

    def damaged(self, reason: str) -> DataError:
        """Return the refusal of this file for a reason."""
        return DataError(
            f"{printable(self.path.as_posix())} is damaged ({reason}). Delete it, and give the "
            "same command again; the work starts anew."
        )

    @contextmanager
    def writing(self) -> Iterator[Callable[[object], None]]:
        """Give a function that appends an entry, on disk before it returns."""
        length = sum(map(len, self._lines()))
        self.path.touch()
        with self.path.open("r+b") as file:
            if file.readline() == self._header:
                file.seek(len(self._header) + length)
                file.truncate()
            else:
                file.seek(0)
                file.truncate()
                file.write(self._header)

            def append(entry: object) -> None:
                file.write(_line(entry))
                file.flush()
                os.fsync(file.fileno())

            yield append

    def _lines(self) -> Iterator[bytes]:
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return
        with file:
            if file.readline() == self._header:
                yield from (line for line in file if line.endswith(b"\n"))


@contextmanager
def alone(path: Path, otherwise: OnesidedError | None = None) -> Iterator[None]:
    """Let one process at a time into the block; the system tells when a holder dies.

    Args:
        path: Lock file, made where it is missing, or a folder, which gets no file for it.
        otherwise: Raised where another process is inside; None waits for it.
    """
    if sys.platform == "win32":  # no such lock; people there do not start one command twice
        yield
        return
    import fcntl

    with ExitStack() as opened:
        if path.is_dir():
            file = os.open(path, os.O_RDONLY)
            opened.callback(os.close, file)
        else:
            file = opened.enter_context(path.open("ab")).fileno()
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (fcntl.LOCK_NB if otherwise else 0))
        except BlockingIOError:
            assert otherwise is not None
            raise otherwise from None
        except OSError as error:
            # Better unguarded, as work was before there were locks, than none on such disks.
            if error.errno not in NO_LOCKS:
                raise
        yield


def _line(entry: object) -> bytes:
    return json.dumps(entry, allow_nan=False).encode() + b"\n"
