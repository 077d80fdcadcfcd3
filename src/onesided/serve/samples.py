"""The body of a request to samples that a model takes, or one sentence about what is wrong."""

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from onesided.core.errors import DataError
from onesided.data.columns.cells import (
    LARGEST,
    Cell,
    Column,
    ColumnKind,
    WrongCell,
    cell_value,
    plain,
)
from onesided.data.columns.kinds import in_words, joined
from onesided.data.read.files import Unreadable
from onesided.data.read.picture import decode
from onesided.run.opened import Opened

IMAGE_TYPES = ("application/octet-stream", "image/png", "image/jpeg", "image/tiff", "image/webp")
JSON = "application/json"
MOST_ROWS = 10_000
"""Rows of one request."""
CELLS: Mapping[ColumnKind, tuple[type, ...]] = {
    "number": (float, int),
    "boolean": (bool,),
    "date": (str,),
    "category": (str, float, int),
    "text": (str,),
}
"""What JSON may hold in a column of each kind, beside null."""
# The end of the last string may be missing: a body of quotes is then read once, not once for each.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)


def image_in(body: bytes, model: Opened) -> np.ndarray:
    """Return the one image of a body, (1, C, H, W), read as `rank` reads files."""
    channels, height, width = model.sample_shape
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "image"
        path.write_bytes(body)
        try:
            return decode(path, channels=channels, size=(height, width))[None]
        except Unreadable as error:
            raise DataError(f"The image {error.reason}.") from None


def rows_in(body: bytes, model: Opened) -> np.ndarray:
    """Return the rows of a JSON body: {"rows": [[1, 2], ...]}, or objects by column."""
    _check_marks(body, model)
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise DataError('The body is no JSON. Expected {"rows": [[1, 2, ...], ...]}.') from None
    rows = content.get("rows") if isinstance(content, dict) else None
    if not isinstance(rows, list) or not 1 <= len(rows) <= MOST_ROWS or len(content) > 1:
        raise _other_rows(model)
    if model.columns:
        cells = [_cells(row, number, model.columns) for number, row in enumerate(rows)]
        return joined(model.columns, list(zip(*cells, strict=True)))
    return np.array([_numbers(row, number, model) for number, row in enumerate(rows)], np.float32)


def _other_rows(model: Opened) -> DataError:
    what = in_words(model.columns) if model.columns else f"{model.sample_shape[0]} numbers"
    return DataError(
        f'Expected {{"rows": [...]}} with 1 to {MOST_ROWS} rows of {what}, and nothing else.'
    )


def _check_marks(body: bytes, model: Opened) -> None:
    """Refuse more brackets or commas than so many rows have, before they become objects.

    Sixteen megabytes of empty lists are a gigabyte of memory, and seconds in which nobody else is
    answered.
    """
    outside = _STRING.sub(b"", body)
    cells = MOST_ROWS * (len(model.columns) or model.sample_shape[0])
    most = ((b"[", MOST_ROWS + 1), (b"{", MOST_ROWS + 1), (b",", cells))
    if any(outside.count(mark) > limit for mark, limit in most):
        raise _other_rows(model)


def _by_column(row: Mapping[str, object], number: int, names: Sequence[str]) -> list[object]:
    """Return the cells of an object, in the model's order of columns."""
    if row.keys() != set(names):
        wrong = sorted(map(str, row.keys() ^ set(names)))[0][:80]
        raise DataError(f"Row {number}: its columns are not the model's; see '{wrong}'.")
    return [row[name] for name in names]


def _cells(row: object, number: int, columns: Sequence[Column]) -> list[Cell]:
    """Return a row of cells of several kinds; null is a gap."""
    names = [column.name for column in columns]
    if not isinstance(row, Mapping):
        raise DataError(f"Row {number}: expected an object with the columns {', '.join(names)}.")
    try:
        pairs = zip(columns, _by_column(row, number, names), strict=True)
        return [_cell(column, cell) for column, cell in pairs]
    except WrongCell as error:
        raise DataError(f"Row {number}: {error}") from None


def _cell(column: Column, cell: object) -> Cell:
    expected = CELLS[column.kind]
    if cell is not None and type(cell) not in expected:
        raise WrongCell(f"column '{column.name}' takes {_named(expected)}, or null for a gap.")
    if isinstance(cell, str) and not _is_text(cell):
        raise WrongCell(f"column '{column.name}' holds half a character, or a zero byte.")
    read = plain(cell)
    if column.kind == "date" and read is None and cell is not None:
        raise WrongCell(f"column '{column.name}' takes a date, or null for a gap.")
    return cell_value(column, read)


def _named(kinds: Sequence[type]) -> str:
    words = {str: "a string", bool: "true or false", float: "a number"}
    return " or ".join(words[kind] for kind in kinds if kind in words)


def _is_text(cell: str) -> bool:
    """Whether a string is text: JSON may hold half of a pair of surrogates."""
    return "\0" not in cell and not any("\ud800" <= mark <= "\udfff" for mark in cell)


def _numbers(row: object, number: int, model: Opened) -> Sequence[float]:
    width, names = model.sample_shape[0], model.feature_names
    if isinstance(row, Mapping) and names:
        row = _by_column(row, number, names)
    if not isinstance(row, list) or len(row) != width:
        raise DataError(f"Row {number}: expected a list of {width} numbers.")
    for cell in row:
        if not isinstance(cell, int | float) or isinstance(cell, bool):
            raise DataError(f"Row {number}: expected numbers, and it holds something else.")
        if not abs(cell) <= LARGEST:
            raise DataError(f"Row {number}: NaN, infinity, and numbers beyond 3.4e38 are no input.")
    return row
