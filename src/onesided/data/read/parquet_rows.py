"""Rows of numbers in a Parquet file, for a trained model: any number of them, memory flat.

Numbers stay in the file until they are scored; a record holds a row's name, its number, and the
file's size and time, by which a change is noticed.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from onesided.core.config import nearest
from onesided.core.errors import DataError
from onesided.data.read.files import Found, stamp
from onesided.data.read.items import ItemChunk
from onesided.storage.names import printable, shown_path
from onesided.storage.parquet import ParquetColumn, ParquetFile, numbers_in
from onesided.storage.table import NAMING_COLUMNS, column_called

_ROW = struct.Struct(">Q")
NOT_LEARNT = ("label", *NAMING_COLUMNS)


def number_columns(file: ParquetFile) -> tuple[ParquetColumn, ...] | None:
    """Return the columns to learn from, if all of them hold numbers or lists of numbers."""
    columns = tuple(column for column in file.columns if column.name not in NOT_LEARNT)
    return columns if columns and all(one.kind != "other" for one in columns) else None


def naming_column(file: ParquetFile) -> ParquetColumn | None:
    """Return the column that names the rows, if there is one."""
    return next((file.column(name) for name in ("id", "name") if file.column(name)), None)


def parquet_items(
    file: ParquetFile,
    columns: tuple[ParquetColumn, ...],
    sample_shape: tuple[int, ...],
    model: str,
    *,
    feature_names: Sequence[str] = (),
    notify: Callable[[str], None] | None = None,
) -> "ParquetRows":
    """Return the rows for a model that takes this shape, its columns found by name."""
    if feature_names and all(column.kind == "number" for column in columns):
        columns = _by_name(file, columns, feature_names, model, notify)
    width = sum(column.width for column in columns)
    if (width,) != sample_shape:
        raise DataError(
            f"{model} takes samples of the shape {sample_shape}, and {shown_path(file.path)} holds "
            f"vectors of {width} numbers that do not fit."
        )
    return ParquetRows(file, columns)


def _by_name(
    file: ParquetFile,
    columns: tuple[ParquetColumn, ...],
    feature_names: Sequence[str],
    model: str,
    notify: Callable[[str], None] | None,
) -> tuple[ParquetColumn, ...]:
    known = {column.name: column for column in columns}
    wanted = [column_called(name) for name in feature_names]
    missing = [name for name in wanted if name not in known]
    left_over = [name for name in known if name not in wanted]
    if missing:
        raise DataError(
            f"{shown_path(file.path)}: there is no column '{printable(missing[0])}'. {model} was "
            f"trained with it.{nearest(missing[0], left_over)}"
        )
    if left_over and notify:
        names = ", ".join(known[name].heading for name in left_over)
        notify(printable(f"{file.path.name}: columns that were not used: {names}."))
    return tuple(known[name] for name in wanted)


@dataclass
class _Place:
    """Where reading has come to: rows that were read ahead, and the number of the first."""

    first: int = 0
    held: np.ndarray | None = None
    batches: Iterator[np.ndarray] | None = None


@dataclass(frozen=True)
class ParquetRows:
    """Rows of numbers; see `Items`. Chunks are read in order, and any other order works slowly."""

    file: ParquetFile
    columns: tuple[ParquetColumn, ...]
    place: _Place = field(default_factory=_Place, compare=False)
    noun: ClassVar[str] = "row"
    prefix: ClassVar[str] = ""

    @property
    def shown(self) -> str:
        """What messages call it."""
        return shown_path(self.file.path)

    def records(self, work: Path) -> Iterator[bytes]:
        """Yield each row: its name, its number, and what changes with the file."""
        mark = stamp(Found(self.file.path, self.file.path.name))
        naming, number = naming_column(self.file), 0
        if naming is None:
            for row in range(self.file.rows):
                yield b"%d\0%b%b" % (row, _ROW.pack(row), mark)
            return
        for batch in self.file.batches([naming]):
            for name in batch.column(0).to_pylist():
                text = str(name).encode("utf-8", "surrogateescape")
                if b"\0" in text:
                    raise DataError(f"{self.shown}: an id holds a zero byte. Rename it.")
                yield b"%b\0%b%b" % (text, _ROW.pack(number), mark)
                number += 1

    def read(self, records: Sequence[bytes]) -> ItemChunk:
        """Return the numbers of some rows; one with a gap or a short list is unreadable."""
        places = [record.partition(b"\0")[2][: _ROW.size] for record in records]
        rows = np.array([_ROW.unpack(place)[0] for place in places], np.int64)
        runs = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1) if len(rows) else []
        width = sum(column.width for column in self.columns)
        parts = [self._rows(int(run[0]), int(run[-1]) + 1) for run in runs]
        values = np.concatenate([np.empty((0, width), np.float32), *parts])
        sound = np.isfinite(values).all(axis=1)
        reasons = {
            int(index): f"cannot be used: row {rows[index] + 1} holds a gap, a list of another "
            "length, or a number beyond 3.4e38"
            for index in np.flatnonzero(~sound)
        }
        return ItemChunk(values[sound], reasons)

    def picture(self, record: bytes) -> np.ndarray | None:
        """Return None: numbers are nothing to see."""
        return None

    def _rows(self, first: int, end: int) -> np.ndarray:
        place = self.place
        if place.batches is None or first < place.first:
            found = self.file.batches(self.columns, skip=first)
            place.batches = (numbers_in(batch, self.columns) for batch in found)
            place.first, place.held = first, None
        parts: list[np.ndarray] = []
        while first < end:
            if place.held is None or not len(place.held):
                place.held = next(place.batches, None)
                if place.held is None:
                    raise DataError(f"{self.shown} ends early: it changed while it was read.")
            skipped = min(first - place.first, len(place.held))
            taken = place.held[skipped : skipped + end - first]
            place.first += skipped + len(taken)
            place.held = place.held[skipped + len(taken) :]
            first += len(taken)
            parts.append(taken)
        return np.concatenate(parts)
