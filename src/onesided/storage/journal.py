"""Work that goes on after a kill: files that only grow."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onesided.core.errors import DataError
from onesided.storage.names import printable


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


def _line(entry: object) -> bytes:
    return json.dumps(entry, allow_nan=False).encode() + b"\n"
