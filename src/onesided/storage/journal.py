"""Work that resumes after a kill: files that only grow."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onesided.core.errors import DataError
from onesided.storage.names import shown_path


class Journal:
    """JSON lines, of which the first says what the others belong to.

    A kill can damage the last line only, and an incomplete line is no entry. A file that
    belongs to something else has no entries, and is overwritten.
    """

    def __init__(self, path: Path, belongs_to: Mapping[str, object]) -> None:
        self.path = path
        self._header = _line(belongs_to)

    def entries(self) -> Iterator[Any]:
        """Yield the entries, a line at a time."""
        for line in self._lines():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                raise self.damaged(str(error)) from None

    def damaged(self, reason: str) -> DataError:
        """Return the error for a damaged file."""
        return DataError(
            f"{shown_path(self.path)} is damaged ({reason}). Delete it, and give the "
            "same command again; the work starts from the beginning."
        )

    @contextmanager
    def writing(self) -> Iterator[Callable[[object], None]]:
        """Give a function that appends an entry, on disk before it returns."""
        length = sum(map(len, self._lines()))
        self.path.touch()
        with self.path.open("r+b") as file:
            is_ours = file.readline() == self._header
            file.seek(len(self._header) + length if is_ours else 0)
            file.truncate()
            if not is_ours:
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
