"""The body of a request to samples that a model takes, or one sentence about what is wrong."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from onesided.core.errors import DataError
from onesided.data.read.files import Unreadable
from onesided.data.read.picture import decode
from onesided.run.opened import Opened

IMAGE_TYPES = ("application/octet-stream", "image/png", "image/jpeg", "image/tiff", "image/webp")
JSON = "application/json"
MOST_ROWS = 10_000
"""Rows of one request."""
LARGEST = float(np.finfo(np.float32).max)


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
    """Return the vectors of a JSON body: {"rows": [[1, 2], ...]}, or objects by column."""
    _check_marks(body, model)
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise DataError('The body is no JSON. Expected {"rows": [[1, 2, ...], ...]}.') from None
    rows = content.get("rows") if isinstance(content, dict) else None
    if not isinstance(rows, list) or not 1 <= len(rows) <= MOST_ROWS or len(content) > 1:
        raise _other_rows(model)
    return np.array([_numbers(row, number, model) for number, row in enumerate(rows)], np.float32)


def _other_rows(model: Opened) -> DataError:
    return DataError(
        f'Expected {{"rows": [...]}} with 1 to {MOST_ROWS} rows of '
        f"{model.sample_shape[0]} numbers, and nothing else."
    )


def _check_marks(body: bytes, model: Opened) -> None:
    """Refuse more brackets or commas than so many rows have, before they become objects.

    Sixteen megabytes of empty lists are a gigabyte of memory, and seconds in which nobody else is
    answered.
    """
    names = "".join(model.feature_names).encode()

    def most(marks: bytes, each: int) -> bool:
        inside = sum(names.count(mark) for mark in marks)
        found = sum(body.count(mark) for mark in marks)
        return found <= MOST_ROWS * (each + inside) + 2

    if not (most(b"[{", 1) and most(b",", model.sample_shape[0])):
        raise _other_rows(model)


def _numbers(row: object, number: int, model: Opened) -> Sequence[float]:
    width, names = model.sample_shape[0], model.feature_names
    if isinstance(row, Mapping) and names:
        if row.keys() != set(names):
            wrong = sorted(map(str, row.keys() ^ set(names)))[0][:80]
            raise DataError(f"Row {number}: its columns are not the model's; see '{wrong}'.")
        row = [row[name] for name in names]
    if not isinstance(row, list) or len(row) != width:
        raise DataError(f"Row {number}: expected a list of {width} numbers.")
    for cell in row:
        if not isinstance(cell, int | float) or isinstance(cell, bool):
            raise DataError(f"Row {number}: expected numbers, and it holds something else.")
        if not abs(cell) <= LARGEST:
            raise DataError(f"Row {number}: NaN, infinity, and numbers beyond 3.4e38 are no input.")
    return row
