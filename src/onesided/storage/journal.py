"""Work that resumes after a kill: files that only grow."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onesided.core.errors import DataError
from onesided.storage.names import shown_path
from onesided.storage.own_file import open_own, why


class Journal:
    """JSON lines, of which the first says what the others belong to.

    A kill can damage the last line only, and an incomplete line is no entry. A file that
    belongs to something else has no entries, and is overwritten. Every line ends with its
    checksum: a flipped bit in a stored score would else be a score like any other.
    """

    def __init__(self, path: Path, belongs_to: Mapping[str, object]) -> None:
        self.path = path
        self._header = line_of(belongs_to)

    def entries(self) -> Iterator[Any]:
        """Yield the entries, a line at a time."""
        for line in self._lines():
            try:
                yield entry_in(line)
            except ValueError as error:
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
                file.write(line_of(entry))
                file.flush()
                os.fsync(file.fileno())

            yield append

    def _lines(self) -> Iterator[bytes]:
        try:
            file = open_own(self.path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise self.damaged(why(error)) from None
        with file:
            if file.readline() == self._header:
                yield from (line for line in file if line.endswith(b"\n"))


def line_of(entry: object) -> bytes:
    """Return the line of an entry, with its checksum."""
    text = json.dumps(entry, allow_nan=False).encode()
    return text + b"\t" + _checksum(text)


def entry_in(line: bytes) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """Undo `line_of`; raise ValueError where the line was changed."""
    entry, _, checksum = line.rpartition(b"\t")
    if checksum != _checksum(entry):
        raise ValueError("a line does not have its checksum")
    return json.loads(entry)


def _checksum(text: bytes) -> bytes:
    # Half of SHA-256: damage is found, and lines stay short.
    return hashlib.sha256(text).hexdigest()[:32].encode() + b"\n"
