"""Items that a trained model scores: a folder or a table, as a stream of any length.

An item is a record of bytes: its name, a zero byte, and what is needed to read it or to
notice that it changed. Records lie on disk; only those of one chunk are in memory.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np

from onesided.core.config import nearest
from onesided.core.errors import DataError
from onesided.data.columns.cells import Column, WrongCell, cell_value, plain, shown_row
from onesided.data.columns.kinds import in_words, joined
from onesided.data.read.files import (
    ACCEPTED_ENDINGS,
    Found,
    Unreadable,
    folder_prefix,
    listed_file,
    stamp,
    stream_files,
    stream_images,
)
from onesided.data.read.images import decode_chunk
from onesided.data.read.picture import decode, read_header
from onesided.data.read.texts import TEXT_ENDING, read_text
from onesided.storage.names import printable, shown_path
from onesided.storage.sorting import sorted_on_disk
from onesided.storage.table import (
    NotANumber,
    Row,
    Table,
    column_called,
    number_in,
    open_table,
)

PICTURE_SIDE = 256
"""Pixels of the longer side of a picture for people."""

_NUMBERS, _REASON = b"n", b"r"


@dataclass(frozen=True)
class ItemChunk:
    """Some items, read.

    Attributes:
        values: Of the readable ones, in order.
        reasons: Why others, by their index in the chunk, are unreadable; continues a
            sentence that starts with the item's name.
    """

    values: np.ndarray
    reasons: Mapping[int, str]


class Items(Protocol):
    """A source of items; the order of its records depends on the items alone."""

    @property
    def shown(self) -> str:
        """What messages call it."""

    @property
    def noun(self) -> str:
        """What messages call one item: image, row or text."""

    @property
    def prefix(self) -> str:
        """What goes before the names of items in a ranking: the name of their folder."""

    def records(self, work: Path) -> Iterator[bytes]:
        """Yield a record for each item; `work` is a folder for temporary files."""

    def read(self, records: Sequence[bytes]) -> ItemChunk:
        """Read the items of some records."""

    def picture(self, record: bytes) -> np.ndarray | str | None:
        """Return an item as people see it: (C, H, W), a text, or None for mere numbers."""


def open_items(
    path: Path,
    sample_shape: tuple[int, ...],
    model: str,
    *,
    feature_names: Sequence[str] = (),
    columns: Sequence[Column] = (),
    notify: Callable[[str], None] | None = None,
) -> Items:
    """Return the items of a folder or table, for a model that takes this shape.

    Args:
        path: A folder of images or texts, or a CSV file with a column `path` or with the columns
            that the model was trained on.
        sample_shape: (C, H, W) of an image or (D,) of a vector.
        model: What messages call the model.
        feature_names: Names of the model's features; a table's columns are then found by
            name, in any order. Without names only their number is checked.
        columns: Columns of a model that takes raw rows of a table.
        notify: Called with each sentence that a person should know.
    """
    takes = f"{model} was trained on {_in_words(sample_shape, columns)}"
    if path.suffix.lower() in ACCEPTED_ENDINGS and path.is_file():
        raise DataError(f"{shown_path(path)} is one image. Give the folder that holds it.")
    if not path.is_file() and path.suffix.lower() not in (".csv", ".tsv", ".parquet"):
        if [column.kind for column in columns] == ["text"]:
            return _Texts(path)
        if len(sample_shape) != 3:
            raise DataError(f"{takes}; it cannot rank a folder of images.")
        return _Files(path, sample_shape)
    table = open_table(path, needed=None)
    if "path" in table.columns:
        if len(sample_shape) != 3:
            raise DataError(f"{takes}; it cannot rank the files that {shown_path(path)} lists.")
        return _ListedFiles(path.parent, sample_shape, table)
    if columns:
        return _RawRows(table, _columns_by_name(table, feature_names, model, notify), columns)
    if feature_names and len(sample_shape) == 1:
        return _FeatureTable(table, _columns_by_name(table, feature_names, model, notify))
    if (len(table.features),) != sample_shape:
        named = f"{len(table.features)} columns of numbers ({', '.join(table.features)})"
        raise DataError(
            f"{takes}; {shown_path(path)} has no column 'path', but {printable(named)}."
        )
    return _FeatureTable(table, tuple(table.features))


def _in_words(sample_shape: tuple[int, ...], columns: Sequence[Column]) -> str:
    if len(sample_shape) == 3:
        return "images"
    return in_words(columns) if columns else f"vectors of {sample_shape[0]} numbers"


def _columns_by_name(
    table: Table,
    feature_names: Sequence[str],
    model: str,
    notify: Callable[[str], None] | None,
) -> tuple[str, ...]:
    """Return the columns that a model knows, in its order; others are reported and left out."""
    wanted = {column_called(name): name for name in feature_names}
    if len(wanted) < len(feature_names):
        raise table.fault(
            f"{model} was trained on columns whose names differ in capitals or spaces alone, which "
            "no table can have. Score them in Python, as it was trained."
        )
    missing = [column for column in wanted if column not in table.columns]
    left_over = [column for column in table.features if column not in wanted]
    if missing:
        count = f" ({len(missing)} columns are missing)" if missing[1:] else ""
        names = f" The first line names: {', '.join(table.columns)}."
        raise table.fault(
            f"there is no column '{wanted[missing[0]]}'{count}. {model} was trained with it."
            f"{nearest(missing[0], left_over) if left_over else names}"
        )
    if left_over and notify:
        unused = ", ".join(table.spelled(left_over))
        notify(printable(f"{table.path.name}: columns that were not used: {unused}."))
    return tuple(wanted)


def name_of(record: bytes) -> str:
    """Return what the item of a record is called."""
    return os.fsdecode(record.partition(b"\0")[0])


@dataclass(frozen=True)
class _Files:
    """Image files below a folder; see `Items`."""

    folder: Path
    sample_shape: tuple[int, ...]
    noun: ClassVar[str] = "image"

    @property
    def prefix(self) -> str:
        return folder_prefix(self.folder)

    @property
    def shown(self) -> str:
        return shown_path(self.folder)

    def records(self, work: Path) -> Iterator[bytes]:
        """Yield all images below the folder, sorted by the bytes of their names."""
        found = stream_images(self.folder, Counter())
        # A zero byte sorts before all others, so the order is that of the names.
        return sorted_on_disk(
            (os.fsencode(file.name) + b"\0" + stamp(file) for file in found), work
        )

    def read(self, records: Sequence[bytes]) -> ItemChunk:
        found = [Found(self._path(record), name_of(record)) for record in records]
        channels, height, width = self.sample_shape
        size = (height, width)
        return ItemChunk(*decode_chunk(found, channels=channels, size=size, what=self.shown))

    def picture(self, record: bytes) -> np.ndarray | str | None:
        """Return an image in its own proportions, no larger than a page shows it."""
        path = self._path(record)
        try:
            header = read_header(path)
            scale = min(1.0, PICTURE_SIDE / max(header.height, header.width))
            size = max(1, round(scale * header.height)), max(1, round(scale * header.width))
            return decode(path, size=size)
        except Unreadable:
            return None  # it was readable a moment ago, when it got its score

    def _path(self, record: bytes) -> Path:
        return self.folder / name_of(record)


@dataclass(frozen=True)
class _ListedFiles(_Files):
    """The image files that a table lists, in its order."""

    table: Table

    @property
    def prefix(self) -> str:
        return ""

    @property
    def shown(self) -> str:
        return shown_path(self.table.path)

    def records(self, work: Path) -> Iterator[bytes]:
        for row in self.table.rows():
            file, text = listed_file(self.table, row)
            yield b"\0".join((os.fsencode(file.name), os.fsencode(text), stamp(file)))

    def _path(self, record: bytes) -> Path:
        return self.folder / os.fsdecode(record.split(b"\0")[1])


@dataclass(frozen=True)
class _FeatureTable:
    """Rows of numbers, in their order; a row with a gap is unreadable."""

    table: Table
    columns: tuple[str, ...]
    noun: ClassVar[str] = "row"
    prefix: ClassVar[str] = ""

    @property
    def shown(self) -> str:
        return shown_path(self.table.path)

    def records(self, work: Path) -> Iterator[bytes]:
        for row in self.table.rows():
            name = self.table.name_of(row)
            if "\0" in name:
                raise self.table.fault("the name holds a zero byte.", row.line)
            yield os.fsencode(name) + b"\0" + self._content(row)

    def _content(self, row: Row) -> bytes:
        try:
            numbers = [number_in(row, column) for column in self.columns]
        except NotANumber as error:
            return _REASON + f"cannot be used: line {row.line}, {error}".rstrip(".").encode()
        return _NUMBERS + np.array(numbers, "<f4").tobytes()

    def read(self, records: Sequence[bytes]) -> ItemChunk:
        contents = [record.partition(b"\0")[2] for record in records]
        numbers = b"".join(content[1:] for content in contents if content[:1] == _NUMBERS)
        return ItemChunk(
            np.frombuffer(numbers, "<f4").reshape(-1, len(self.columns)), _reasons(contents)
        )

    def picture(self, record: bytes) -> np.ndarray | str | None:
        return None


@dataclass(frozen=True)
class _RawRows(_FeatureTable):
    """Rows whose columns are of several kinds; a row with a cell of another kind is unreadable."""

    schema: Sequence[Column]

    def _content(self, row: Row) -> bytes:
        cells = zip(self.schema, self.columns, strict=True)
        try:
            values = [cell_value(column, plain(row.cells[place])) for column, place in cells]
        except WrongCell as error:
            return _REASON + f"cannot be used: line {row.line}, {error}".rstrip(".").encode()
        return _NUMBERS + json.dumps(values).encode()

    def read(self, records: Sequence[bytes]) -> ItemChunk:
        contents = [record.partition(b"\0")[2] for record in records]
        rows = [json.loads(content[1:]) for content in contents if content[:1] == _NUMBERS]
        return ItemChunk(joined(self.schema, list(zip(*rows, strict=True))), _reasons(contents))

    def picture(self, record: bytes) -> np.ndarray | str | None:
        return shown_row(self.schema, json.loads(record.partition(b"\0")[2][1:]))


@dataclass(frozen=True)
class _Texts:
    """Text files below a folder; see `Items`."""

    folder: Path
    noun: ClassVar[str] = "text"

    @property
    def prefix(self) -> str:
        return folder_prefix(self.folder)

    @property
    def shown(self) -> str:
        return shown_path(self.folder)

    def records(self, work: Path) -> Iterator[bytes]:
        """Yield all texts below the folder, sorted by the bytes of their names."""
        found = stream_files(self.folder, Counter(), accepted=(TEXT_ENDING,), noun="text")
        return sorted_on_disk(
            (os.fsencode(file.name) + b"\0" + stamp(file) for file in found), work
        )

    def read(self, records: Sequence[bytes]) -> ItemChunk:
        texts: list[str] = []
        reasons: dict[int, str] = {}
        for index, record in enumerate(records):
            try:
                texts.append(read_text(self.folder / name_of(record)))
            except Unreadable as error:
                reasons[index] = error.reason
        return ItemChunk(np.array(texts, object)[:, None], reasons)

    def picture(self, record: bytes) -> np.ndarray | str | None:
        try:
            return read_text(self.folder / name_of(record))
        except Unreadable:
            return None  # it was readable a moment ago, when it got its score


def _reasons(contents: Sequence[bytes]) -> dict[int, str]:
    return {
        index: content[1:].decode()
        for index, content in enumerate(contents)
        if content[:1] == _REASON
    }
