"""People's own vectors: .npy, .npz and Parquet files, with or without ids and labels.

| file | vectors | ids | labels |
|---|---|---|---|
| `.npy` | the array (N, D) | row numbers | none |
| `.npz` | the array `features`, or the only one of two axes | `id` or `name` | `label` |
| `.parquet` | columns of numbers, and columns of lists of numbers | `id` or `name` | `label` |

Labels are the words of every table: positive, unlabelled, negative. `onesided embed` writes these
files.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from onesided.core.errors import DataError, DataNotFound, first_line
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.data.problem.samples import Samples
from onesided.data.read.arrays import checked_values
from onesided.data.read.folder import CLASS_NAMES, OneSided
from onesided.data.read.items import ItemChunk
from onesided.data.read.parquet_rows import naming_column, number_columns
from onesided.storage.arrays import read_arrays
from onesided.storage.labels import NAMES, NotALabel, label_in
from onesided.storage.names import shown_path
from onesided.storage.parquet import (
    ParquetFile,
    check_lengths,
    is_parquet,
    numbers_in,
    open_parquet,
)

ENDINGS = (".npy", ".npz", ".parquet")
IDS, LABEL = ("id", "name"), "label"


@dataclass(frozen=True)
class VectorFile:
    """The content of a file of vectors.

    Attributes:
        path: The file.
        values: Vectors (N, D).
        names: Id of each row; its number where the file has none.
        labels: POSITIVE, UNKNOWN or NEGATIVE for each row, if the file says so.
        feature_names: Of the numbers, where columns have names.
    """

    path: Path
    values: np.ndarray
    names: tuple[str, ...]
    labels: np.ndarray | None = None
    feature_names: tuple[str, ...] = ()


def is_vector_file(path: Path | None) -> bool:
    """Return whether a path is that of a file of vectors, by its ending."""
    return path is not None and path.suffix.lower() in ENDINGS


def read_vector_file(path: Path) -> VectorFile:
    """Return the content of a file of vectors; nothing in it is executed."""
    if not path.is_file():
        raise DataNotFound(f"There is no file {shown_path(path)}. Check its name.")
    if is_parquet(path):
        return _parquet(path)
    try:
        columns = _arrays(path)
    except (OSError, ValueError, EOFError) as error:
        raise _fault(path, f"it cannot be read as vectors ({first_line(error)})") from None
    try:
        values = checked_values(_matrix(path, columns))
    except DataError as error:
        raise _fault(path, str(error).rstrip(".")) from None
    ids = next((columns[name] for name in IDS if name in columns), range(len(values)))
    labels = _labels(path, columns[LABEL], len(values)) if LABEL in columns else None
    return VectorFile(path, values, _names(path, ids, len(values)), labels)


def _names(path: Path, ids: Iterable[object], rows: int) -> tuple[str, ...]:
    names = tuple(map(str, ids))
    if len(names) != rows:
        raise _fault(path, f"it has {rows} vectors and {len(names)} ids")
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise _fault(path, f"two rows are called '{twice}'; names must differ")
    return names


def read_vector_table(path: Path) -> OneSided:
    """Return vectors with a label each, as people's own data."""
    file = read_vector_file(path)
    if file.labels is None:
        raise _fault(path, "it has no labels; add a column 'label', or give two files, -p and -u")
    for label in (POSITIVE, UNKNOWN):
        if label not in file.labels:
            raise _fault(path, f"no row is {NAMES[label]}; both sides are needed")
    return _one_sided(file.values, file.labels, file.names, file.feature_names)


def read_vector_files(positives: Path, unlabelled: Path, negatives: Path | None = None) -> OneSided:
    """Return the vectors of two or three files, one for each label, as people's own data."""
    given = {POSITIVE: positives, UNKNOWN: unlabelled, NEGATIVE: negatives}
    files = {label: read_vector_file(path) for label, path in given.items() if path is not None}
    first, *others = files.values()
    for file in others:
        if file.values.shape[1] != first.values.shape[1]:
            raise _fault(
                file.path,
                f"its vectors have {file.values.shape[1]} numbers, and those of "
                f"{shown_path(first.path)} have {first.values.shape[1]}",
            )
        if file.feature_names != first.feature_names:
            raise _fault(file.path, f"its columns are not those of {shown_path(first.path)}")
    labels = np.concatenate([np.full(len(one.values), label) for label, one in files.items()])
    # The same row number, or id, may be in each file.
    names = tuple(f"{NAMES[label]}/{name}" for label, one in files.items() for name in one.names)
    values = np.concatenate([one.values for one in files.values()])
    return _one_sided(values, labels.astype(np.int64), names, first.feature_names)


@dataclass(frozen=True)
class VectorItems:
    """The rows of a file of vectors, for a trained model; see `Items`."""

    file: VectorFile
    noun: ClassVar[str] = "row"
    prefix: ClassVar[str] = ""

    @property
    def shown(self) -> str:
        """What messages call it."""
        return shown_path(self.file.path)

    def records(self, work: Path) -> Iterator[bytes]:
        """Yield each row: its name and its numbers."""
        for name, vector in zip(self.file.names, self.file.values, strict=True):
            if "\0" in name:
                raise _fault(self.file.path, "an id holds a zero byte")
            yield name.encode("utf-8", "surrogateescape") + b"\0" + vector.astype("<f4").tobytes()

    def read(self, records: Sequence[bytes]) -> ItemChunk:
        """Return the numbers of some rows."""
        numbers = b"".join(record.partition(b"\0")[2] for record in records)
        return ItemChunk(np.frombuffer(numbers, "<f4").reshape(len(records), -1), {})

    def picture(self, record: bytes) -> np.ndarray | None:
        """Return None: numbers are nothing to see."""
        return None


def _one_sided(
    values: np.ndarray, labels: np.ndarray, names: tuple[str, ...], features: tuple[str, ...]
) -> OneSided:
    samples = Samples(
        values=values,
        classes=labels,
        names=names,
        class_names=CLASS_NAMES,
        kind="vector",
        feature_names=features,
    )
    return OneSided(samples, labels == POSITIVE, duplicates=0, notices=())


def _arrays(path: Path) -> dict[str, Any]:
    """Return the arrays of an .npy or .npz file by name; of an .npy file it is `features`."""
    return {name or "features": array for name, array in read_arrays(path).items()}


def _parquet(path: Path) -> VectorFile:
    """Return the vectors of a Parquet file; beside them only one batch is in memory."""
    file = open_parquet(path)
    columns = number_columns(file)
    if columns is None:
        words = [one.name for one in file.columns if one.kind == "other"]
        wrong = next((word for word in words if word not in (*IDS, LABEL)), None)
        told = f"column '{wrong}' holds no numbers" if wrong else "it has no column of numbers"
        raise _fault(path, f"{told} beside the columns {', '.join((*IDS, LABEL))}")
    values = np.empty((file.rows, sum(column.width for column in columns)), np.float32)
    done = 0
    try:
        for batch in file.batches(columns):
            check_lengths(batch, columns)
            numbers = checked_values(numbers_in(batch, columns))
            values[done : done + len(numbers)] = numbers
            done += len(numbers)
    except DataError as error:
        raise _fault(path, f"rows from {done + 1} on: {str(error).rstrip('.')}") from None
    naming, label = naming_column(file), file.column(LABEL)
    ids: Iterable[object] = range(file.rows)
    if naming is not None:
        ids = (one for batch in file.batches([naming]) for one in batch.column(0).to_pylist())
    labels = None
    if label is not None:
        words = [one for batch in file.batches([label]) for one in batch.column(0).to_pylist()]
        labels = _labels(path, words, file.rows)
    single = all(column.kind == "number" for column in columns)
    names = tuple(column.name for column in columns) if single else ()
    return VectorFile(path, values, _names(path, ids, file.rows), labels, names)


def holds_vectors(path: Path | None) -> bool:
    """Return whether a path is that of a file of vectors; a Parquet file may hold other things."""
    if path is None or not is_vector_file(path):
        return False
    if not is_parquet(path) or not path.is_file():
        return True
    return _is_of_numbers(open_parquet(path))


def _is_of_numbers(file: ParquetFile) -> bool:
    return file.column("path") is None and (
        number_columns(file) is not None or set(file.names) <= {*IDS, LABEL}
    )


def _matrix(path: Path, columns: dict[str, Any]) -> np.ndarray:
    """Return all numbers of a file of arrays."""
    parts = {name: values for name, values in columns.items() if name not in (*IDS, LABEL)}
    wide = [name for name, values in parts.items() if values.ndim == 2]
    chosen = "features" if "features" in wide else wide[0] if len(wide) == 1 else None
    if chosen is None:
        shapes = {name: values.shape for name, values in parts.items()}
        raise _fault(path, f"expected one array (N, D), called features; it holds {shapes}")
    matrix: np.ndarray = parts[chosen]
    return matrix


def _labels(path: Path, words: Sequence[object], rows: int) -> np.ndarray:
    if len(words) != rows:
        raise _fault(path, f"it has {rows} vectors and {len(words)} labels")
    try:
        return np.array([label_in(str(word), among=NAMES) for word in words], np.int64)
    except NotALabel as error:
        raise _fault(path, str(error).rstrip(".")) from None


def _fault(path: Path, problem: str) -> DataError:
    return DataError(f"{shown_path(path)}: {problem}. See onesided fit --help.")
