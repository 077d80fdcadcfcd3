"""Data frames, texts and sparse matrices, turned into the rows that a run takes.

A frame is a table: numbers without gaps are vectors, anything else is encoded as in a run on a
CSV file. A list of strings is texts, unless the strings are files.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
from scipy import sparse

from onesided.core.errors import DataError
from onesided.data.columns.cells import NUMERIC, Column, WrongCell, cell_value, plain
from onesided.data.columns.kinds import RawTable, UnclearColumn, joined, read_columns
from onesided.data.read.text_folders import TEXT

MOST_BYTES = 2**30
"""Of a sparse matrix once it is dense, in single precision."""


def is_frame(samples: object) -> bool:
    """Whether this is a data frame of pandas or polars."""
    return hasattr(samples, "columns") and hasattr(samples, "to_numpy")


def is_raw(frame: Any) -> bool:  # noqa: ANN401 - pandas and polars are not needed to be installed
    """Whether a frame holds anything but numbers, or has gaps."""
    if hasattr(frame, "isna"):
        kinds = [getattr(kind, "kind", "O") for kind in frame.dtypes]
        return not set(kinds) <= set("biuf") or bool(frame.isna().to_numpy().any())
    array = frame.to_numpy()
    return array.dtype.kind not in "biuf" or bool(np.isnan(array.astype(np.float64)).any())


def holds_texts(samples: object) -> TypeGuard[Sequence[str]]:
    """Whether these are texts: a list, array or column of strings, with gaps maybe."""
    if isinstance(samples, str | bytes) or getattr(samples, "ndim", 1) != 1:
        return False
    if not isinstance(samples, Iterable) or is_frame(samples):
        return False
    cells = list(samples)
    words = sum(isinstance(cell, str) for cell in cells)
    return words > 0 and all(isinstance(cell, str) or _is_gap(cell) for cell in cells)


def _is_gap(cell: object) -> bool:
    try:
        return plain(cell) is None
    except WrongCell:
        return False


def dense(samples: Any) -> Any:  # noqa: ANN401 - whatever X is
    """Return a sparse matrix as an array, and anything else as it is; refuse a large one."""
    matrix: Any = samples
    if not sparse.issparse(samples):
        return matrix
    rows, columns = matrix.shape
    size = 4 * rows * columns
    if size > MOST_BYTES:
        raise DataError(
            f"X is a sparse matrix of {rows} x {columns}, which would be {size / 2**30:.1f} GB of "
            "numbers. Reduce it first, by a pipeline with TruncatedSVD; or give the texts "
            "themselves."
        )
    return matrix.toarray()


def read_frame(frame: Any) -> RawTable:  # noqa: ANN401
    """Return the columns of a frame with their kinds; a categorical column is a category."""
    cells = _cells(frame)
    kinds = {
        name: "category" for name in cells if str(frame[name].dtype).lower().startswith("categor")
    }
    try:
        table = read_columns(cells, kinds=kinds)  # type: ignore[arg-type]
    except UnclearColumn as error:
        row = "" if error.row is None else f"Row {error.row} of X: "
        raise DataError(f"{row}{error}") from None
    if not table.columns:
        raise DataError(f"No column of X is left to learn from. {' '.join(table.notices)}")
    return table


def read_texts(texts: Sequence[str]) -> RawTable:
    """Return texts as a table of one column."""
    return read_columns({TEXT.name: list(texts)}, kinds={TEXT.name: "text"})


def read_numbers(array: np.ndarray, names: Sequence[str]) -> RawTable:
    """Return an array of numbers with gaps as a table; columns without names are counted."""
    names = names or [f"x{index}" for index in range(array.shape[1])]
    columns = tuple(Column(name=str(name), kind="number") for name in names)
    return RawTable(columns, _numbers(columns, array), ())


def raw_rows(columns: Sequence[Column], samples: Any) -> np.ndarray:  # noqa: ANN401
    """Return samples as the raw rows that a model with these columns takes."""
    if is_frame(samples):
        cells = _cells(samples)
        missing = [column.name for column in columns if column.name not in cells]
        if missing:
            raise DataError(f"X has no column '{missing[0]}', which this model was trained with.")
        by_column = [cells[column.name] for column in columns]
    elif holds_texts(samples):
        if [column.kind for column in columns] != ["text"]:
            raise DataError(f"X holds texts, and this model was trained on {len(columns)} columns.")
        by_column = [list(samples)]
    else:
        array = np.asarray(samples)
        if array.dtype.kind in "biuf" and all(column.kind in NUMERIC for column in columns):
            return _numbers(columns, array)
        by_column = [array[:, index].tolist() for index in range(array.shape[1])]
    return joined(columns, [_values(*pair) for pair in zip(columns, by_column, strict=True)])


def _cells(frame: Any) -> Mapping[str, list[object]]:  # noqa: ANN401
    """Return the cells of each column, as Python's own values."""
    if len(set(map(str, frame.columns))) < len(frame.columns):
        raise DataError("Two columns of X have the same name. Rename or remove one.")
    return {str(name): list(frame[name].to_list()) for name in frame.columns}


def _values(column: Column, cells: Sequence[object]) -> list[object]:
    values: list[object] = []
    for row, cell in enumerate(cells):
        try:
            values.append(cell_value(column, plain(cell)))
        except WrongCell as error:
            raise DataError(f"Row {row} of X: {error}") from None
    return values


def _numbers(columns: Sequence[Column], array: np.ndarray) -> np.ndarray:
    numbers = array.astype(np.float64)
    with np.errstate(over="ignore"):
        wrong = np.argwhere(np.isinf(numbers.astype(np.float32)))
    if len(wrong):
        row, column = wrong[0]
        raise DataError(
            f"X holds {array[row, column]} in row {row}, column {column} ({columns[column].name}): "
            "only finite numbers can be learnt from. Make it a gap (NaN) or remove the row."
        )
    return numbers
