"""Parquet files in batches, by pyarrow: tables larger than memory, in and out.

| column | becomes |
|---|---|
| numbers, booleans, decimals | one number |
| lists of numbers, all of one length | as many numbers |
| anything else | text, as in a CSV file |
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float32

from onesided.core.errors import DataError, first_line
from onesided.storage.atomic import replacing_by_name
from onesided.storage.names import shown_path
from onesided.storage.optional import library
from onesided.storage.table import Row, Table, column_called

ENDING = ".parquet"
BATCH_ROWS = 2**16
"""Rows in memory at a time; fewer of wide ones."""
BATCH_NUMBERS = 2**23
Kind = Literal["number", "vector", "other"]


def is_parquet(path: Path) -> bool:
    """Return whether a path is that of a Parquet file, by its ending."""
    return path.suffix.lower() == ENDING


@dataclass(frozen=True)
class ParquetColumn:
    """A column: its name in the file, the same in small letters, its kind, and its width."""

    heading: str
    name: str
    kind: Kind
    width: int  # numbers in a cell


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file whose schema was read.

    Attributes:
        path: The file.
        rows: How many it has.
        columns: In their order.
    """

    path: Path
    rows: int
    columns: tuple[ParquetColumn, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in small letters."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> ParquetColumn | None:
        """Return the column of this name in small letters, if there is one."""
        return next((column for column in self.columns if column.name == name), None)

    def batches(self, columns: Sequence[ParquetColumn], *, skip: int = 0) -> Iterator[Any]:
        """Yield record batches of some columns, from row `skip` on; a few thousand rows each."""
        width = sum(column.width for column in columns)
        rows = max(1, min(BATCH_ROWS, BATCH_NUMBERS // max(1, width)))
        wanted = [column.heading for column in columns]
        with _reading(self.path) as file:
            left = skip
            for group in range(file.metadata.num_row_groups):
                if left >= file.metadata.row_group(group).num_rows:
                    left -= file.metadata.row_group(group).num_rows
                    continue
                # One group at a time: given several, pyarrow keeps what it has read of all.
                for batch in file.iter_batches(rows, row_groups=[group], columns=wanted):
                    if left < len(batch):
                        yield batch.slice(left)
                    left = max(0, left - len(batch))


def open_parquet(path: Path) -> ParquetFile:
    """Read the schema, and what is wide of it."""
    with _reading(path) as file:
        types = library("pyarrow.types", f"Reading {shown_path(path)}")
        columns = tuple(_column(types, field, file) for field in file.schema_arrow)
        found = ParquetFile(path, file.metadata.num_rows, columns)
    twice = [name for name in found.names if found.names.count(name) > 1]
    if twice:
        raise DataError(f"{shown_path(path)}: two columns are called '{twice[0]}'. Rename one.")
    return found


def numbers_in(batch: Any, columns: Sequence[ParquetColumn]) -> Float32[np.ndarray, "n width"]:  # noqa: ANN401
    """Return the numbers of a batch, NaN for gaps and for lists of another length."""
    pyarrow = library("pyarrow", "Reading Parquet")
    values = np.empty((len(batch), sum(column.width for column in columns)), np.float32)
    start = 0
    for column in columns:
        cells = batch.column(column.heading)
        if column.kind == "number":
            numbers = cells.cast(pyarrow.float64(), safe=False).cast(pyarrow.float32(), safe=False)
            values[:, start] = numbers.to_numpy(zero_copy_only=False)
        else:
            values[:, start : start + column.width] = _lists(pyarrow, cells, column)
        start += column.width
    return values


def _lists(pyarrow: Any, cells: Any, column: ParquetColumn) -> np.ndarray:  # noqa: ANN401
    fits = _lengths(cells) == column.width
    values = np.full((len(cells), column.width), np.nan, np.float32)
    flat = cells.filter(pyarrow.array(fits)).flatten().cast(pyarrow.float32(), safe=False)
    values[fits] = flat.to_numpy(zero_copy_only=False).reshape(-1, column.width)
    return values


def check_lengths(batch: Any, columns: Sequence[ParquetColumn]) -> None:  # noqa: ANN401
    """Refuse lists of different lengths: who learns from them should know."""
    for column in columns:
        if column.kind != "vector":
            continue
        lengths = _lengths(batch.column(column.heading))
        if (lengths[~np.isnan(lengths)] != column.width).any():
            raise DataError(
                f"the lists of column '{column.heading}' have different lengths. Give lists of one "
                "length."
            )


def _lengths(cells: Any) -> np.ndarray:  # noqa: ANN401 - of a library
    """Return the length of each list, NaN for a gap."""
    compute = library("pyarrow.compute", "Reading Parquet")
    lengths: np.ndarray = compute.list_value_length(cells).to_numpy(zero_copy_only=False)
    return lengths.astype(np.float64)


def _column(types: Any, field: Any, file: Any) -> ParquetColumn:  # noqa: ANN401 - of a library
    kind: Kind = "other"
    width = 1
    if _is_number(types, field.type):
        kind = "number"
    elif types.is_fixed_size_list(field.type) and _is_number(types, field.type.value_type):
        kind, width = "vector", field.type.list_size
    elif (types.is_list(field.type) or types.is_large_list(field.type)) and _is_number(
        types, field.type.value_type
    ):
        kind = "vector"
        first = next(file.iter_batches(1024, columns=[field.name]), None)
        lists = [] if first is None else first.column(0).drop_null()
        width = len(lists[0]) if len(lists) else 0
    return ParquetColumn(field.name, column_called(field.name), kind, width)


def _is_number(types: Any, kind: Any) -> bool:  # noqa: ANN401 - of a library
    is_one = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(test(kind) for test in is_one)


@contextmanager
def _reading(path: Path) -> Iterator[Any]:
    parquet = library("pyarrow.parquet", f"Reading {shown_path(path)}")
    try:
        with parquet.ParquetFile(str(path), pre_buffer=False) as file:
            yield file
    except DataError:
        raise
    except (OSError, ValueError, EOFError) as error:  # pyarrow's errors are of these kinds
        raise DataError(
            f"{shown_path(path)}: it cannot be read as Parquet ({first_line(error)}). Restore it."
        ) from None


@dataclass(frozen=True)
class ParquetTable(Table):
    """A Parquet file read as a CSV file is: all cells as text. `line` counts rows from 1."""

    def rows(self) -> Iterator[Row]:
        """Yield the rows."""
        file = open_parquet(self.path)
        line = 0
        for batch in file.batches(file.columns):
            for cells in zip(*(map(_text, column.to_pylist()) for column in batch), strict=True):
                line += 1
                yield Row(line, dict(zip(self.columns, cells, strict=True)))


def _text(cell: object) -> str:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    return repr(cell) if isinstance(cell, float) else str(cell)


def parquet_table(path: Path) -> ParquetTable:
    """Return a Parquet file as a table of texts."""
    headings = tuple(column.heading for column in open_parquet(path).columns)
    return ParquetTable(path, headings, tuple(map(column_called, headings)), ",")


def write_parquet(
    path: Path,
    columns: Mapping[str, Literal["text", "number", "count"]],
    rows: Iterable[Sequence[object]],
) -> None:
    """Write a Parquet file of any length, a batch at a time, complete or not at all."""
    pyarrow = library("pyarrow", "Writing a Parquet file")
    parquet = library("pyarrow.parquet", "Writing a Parquet file")
    types = {"text": pyarrow.string(), "number": pyarrow.float64(), "count": pyarrow.int64()}
    python = {"text": str, "number": float, "count": int}
    schema = pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])
    rows = iter(rows)
    with (
        replacing_by_name(path) as temporary,
        parquet.ParquetWriter(str(temporary), schema) as writer,
    ):
        while batch := list(islice(rows, BATCH_ROWS)):
            cells = zip(columns.values(), zip(*batch, strict=True), strict=True)
            arrays = [list(map(python[kind], values)) for kind, values in cells]
            writer.write_table(pyarrow.table(arrays, schema=schema))
