"""People's own table: image files with their labels, or features with their labels.

A CSV file in UTF-8 whose first line names the columns. `label` is one of the words
positive, unlabelled, negative. With a column `path` the table lists image files, relative
to the table's own folder; without one, every column but `label`, `name` and `id` is a
feature.
"""

import csv
import math
import os
import posixpath
from array import array
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from onesided.core.errors import DataError, DataNotFound
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.data.dataset import Scenario
from onesided.data.files import Found, original_name, printable
from onesided.data.folder import CLASS_NAMES, WORDS, Group, OneSided, read_groups
from onesided.data.images import Allocate, Progress, decode_all
from onesided.data.samples import ImageKind, Samples

LABELS = {
    "positive": POSITIVE,
    "unlabelled": UNKNOWN,
    "unlabeled": UNKNOWN,
    "negative": NEGATIVE,
}
"""Words of the column `label`; the American spelling is understood too."""
NAMING_COLUMNS = ("name", "id")
"""Columns that say what an item is called and are never features: a number that counts the
rows would give away how the table was put together."""

# Beyond 3.4e38 float32 holds infinity, which is as useless to a network as NaN.
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class _Row:
    """One line below the header, its cells by column."""

    line: int
    cells: dict[str, str]
    label: int


@dataclass(frozen=True)
class _Table:
    path: Path
    columns: tuple[str, ...]
    delimiter: str

    def fault(self, text: str, line: int | None = None) -> DataError:
        where = "" if line is None else f", line {line}"
        return DataError(f"{printable(self.path.as_posix())}{where}: {printable(text)}")


def read_table(
    path: Path,
    *,
    size: tuple[int, int] | None = None,
    tolerate: float = 0.05,
    scenario: Scenario = "single-set",
    kind: ImageKind = "photograph",
    progress: Progress | None = None,
    into: Allocate | None = None,
) -> OneSided:
    """Read a table of image files, or of features, with a label for each row.

    Args:
        path: The CSV file.
        size: Height and width of the run; None chooses from all images together.
        tolerate: Share of the files of each label that may be missing or unreadable.
        scenario: Decides about files whose content is both labelled and unlabelled.
        kind: Which augmentation suits the images; features are always vectors.
        progress: Called with how much is done and how much there is.
        into: Provides the array for the pixels; see `decode_all`.
    """
    table = _open_table(path)
    if "path" not in table.columns:
        return _read_features(table)
    groups = _group_files(table)
    decode = partial(decode_all, size=size, progress=progress, into=into)
    read = read_groups(groups, decode, tolerate=tolerate, scenario=scenario, kind=kind)
    unused = [column for column in table.columns if column not in ("path", "label")]
    if not unused:
        return read
    notice = f"{printable(path.name)}: columns that were not used: {', '.join(unused)}."
    return replace(read, notices=(notice, *read.notices))


def _open_table(path: Path) -> _Table:
    """Read the first line; find the columns and what separates them."""
    if not path.is_file():
        raise DataNotFound(
            f"There is no table {printable(path.as_posix())}. Give a CSV file with the columns "
            "path and label."
        )
    lines = _text_lines(path)
    first = next(lines, "")
    lines.close()
    # Spreadsheets of half of Europe separate by semicolons and still say CSV.
    for delimiter in ",;\t":
        columns = _columns(first, delimiter)
        if "label" in columns:
            break
    else:
        columns, delimiter = _columns(first, ","), ","
    table = _Table(path, columns, delimiter)
    if not first.strip():
        raise table.fault("the table is empty. Expected a first line such as: path,label")
    if "label" not in columns:
        raise table.fault(
            f"there is no column 'label' (positive, unlabelled or negative). The first line "
            f"names: {', '.join(columns)}."
        )
    twice = [column for column in columns if columns.count(column) > 1]
    if twice:
        raise table.fault(f"two columns are called '{twice[0]}'. Rename or remove one.")
    return table


def _columns(line: str, delimiter: str) -> tuple[str, ...]:
    cells = next(csv.reader([line], delimiter=delimiter), [])
    return tuple(cell.strip().lower() for cell in cells)


def _text_lines(path: Path) -> Generator[str, None, None]:
    """Yield the lines of a UTF-8 file, with or without a byte order mark."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from file
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise DataError(
            f"{printable(path.as_posix())} is not UTF-8 text (it holds the byte 0x{byte:02x}). "
            "Save it as 'CSV UTF-8'; other bytes in file names are written \\xNN."
        ) from None


def _rows(table: _Table) -> Iterator[_Row]:
    reader = csv.reader(_text_lines(table.path), delimiter=table.delimiter)
    try:
        next(reader)
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(table.columns):
                raise table.fault(
                    f"{len(cells)} cells where the first line names {len(table.columns)} columns.",
                    reader.line_num,
                )
            named = dict(zip(table.columns, cells, strict=True))
            yield _Row(reader.line_num, named, _label(table, named["label"], reader.line_num))
    except csv.Error as error:
        raise table.fault(f"this is not CSV ({error}).", reader.line_num) from None


def _label(table: _Table, text: str, line: int) -> int:
    word = text.strip().lower()
    if word in LABELS:
        return LABELS[word]
    hint = ""
    if word.lstrip("-+").replace(".", "").isdigit():
        hint = " Numbers are refused because 0 means negative to some and unlabelled to others."
    raise table.fault(f"the label '{text}' is none of positive, unlabelled, negative.{hint}", line)


def _group_files(table: _Table) -> list[Group]:
    first_line: dict[str, int] = {}
    found: dict[int, list[Found]] = {}
    for row in _rows(table):
        if not row.cells["path"].strip() or "\0" in row.cells["path"]:
            raise table.fault("the path is empty or holds a zero byte.", row.line)
        file = _locate(table.path.parent, row.cells["path"])
        if file.name in first_line:
            raise table.fault(
                f"{file.name} is listed already in line {first_line[file.name]}. List it once.",
                row.line,
            )
        first_line[file.name] = row.line
        found.setdefault(row.label, []).append(file)
    _check_both_sides(table, set(found))
    shown = printable(table.path.as_posix())
    order = [label for label in WORDS if label in found]
    return [Group(label, f"{shown} ({WORDS[label]})", found[label]) for label in order]


def _locate(folder: Path, text: str) -> Found:
    path = folder / text
    # Our own tables write odd names by `printable`; they can be given back as they are.
    if "\\" in text and not os.path.lexists(path):
        text = original_name(text)
        path = folder / text
    return Found(path, posixpath.normpath(text))


def _check_both_sides(table: _Table, labels: set[int]) -> None:
    for label in (POSITIVE, UNKNOWN):
        if label not in labels:
            seen = ", ".join(WORDS[other] for other in WORDS if other in labels) or "no rows"
            raise table.fault(f"no row is {WORDS[label]}; found {seen}. Both sides are needed.")


def _read_features(table: _Table) -> OneSided:
    naming = next((column for column in NAMING_COLUMNS if column in table.columns), None)
    aside = ("label", *NAMING_COLUMNS)
    features = [column for column in table.columns if column not in aside]
    if not features:
        raise table.fault(
            "there is neither a column 'path' nor any column of numbers beside the label. "
            f"The first line names: {', '.join(table.columns)}."
        )
    labels, names, numbers = [], [], array("f")
    for row in _rows(table):
        labels.append(row.label)
        names.append(row.cells[naming] if naming else f"{table.path.name}:{row.line}")
        numbers.extend(_number(table, row, column) for column in features)
    _check_both_sides(table, set(labels))
    _check_unique(table, names)
    classes = np.array(labels, np.int64)
    samples = Samples(
        values=np.array(numbers, np.float32).reshape(len(labels), len(features)),
        classes=classes,
        names=tuple(names),
        class_names=CLASS_NAMES,
        kind="vector",
    )
    return OneSided(samples, classes == POSITIVE, duplicates=0, notices=())


def _number(table: _Table, row: _Row, column: str) -> float:
    text = row.cells[column].strip()
    try:
        number = float(text)
    except ValueError:
        hint = " If this column lists image files, call it 'path'." if text else ""
        raise table.fault(
            f"column '{column}' holds '{text}', which is not a number.{hint}", row.line
        ) from None
    if not math.isfinite(number) or abs(number) > _LARGEST:
        raise table.fault(
            f"column '{column}' holds '{text}'; only finite numbers can be learnt from. "
            "Fill the gap or remove the row.",
            row.line,
        )
    return number


def _check_unique(table: _Table, names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise table.fault(f"two rows are called '{name}'. Names must differ.")
        seen.add(name)
