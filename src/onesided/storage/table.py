"""A CSV file as people and spreadsheets write it, row by row, with faults told by line."""

import csv
import math
import os
import posixpath
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onesided.core.errors import DataError, DataNotFound
from onesided.data.read.files import Found
from onesided.storage.names import name_in_cell, original_name, printable

NAMING_COLUMNS = ("name", "id")
"""Columns that say what an item is called and are never features: a number that counts the
rows would give away how the table was put together."""

# Beyond 3.4e38 float32 holds infinity, which is as useless to a network as NaN.
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Row:
    """One line below the header, its cells by column."""

    line: int
    cells: dict[str, str]


class NotANumber(ValueError):
    """A cell that no network can be given; the message continues a sentence about it."""


@dataclass(frozen=True)
class Table:
    """A CSV file whose first line was read.

    Attributes:
        path: The file.
        headings: The columns' names as the file spells them.
        columns: The same in small letters, by which columns are known.
        delimiter: What separates cells.
    """

    path: Path
    headings: tuple[str, ...]
    columns: tuple[str, ...]
    delimiter: str

    @property
    def features(self) -> list[str]:
        """Columns that hold numbers to learn from, if this is no list of files."""
        return [column for column in self.columns if column not in ("label", *NAMING_COLUMNS)]

    def spelled(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return columns as the file spells them."""
        headings = dict(zip(self.columns, self.headings, strict=True))
        return tuple(headings[column] for column in columns)

    def fault(self, text: str, line: int | None = None) -> DataError:
        """Return the refusal of this table, or of one line of it."""
        where = "" if line is None else f", line {line}"
        return DataError(f"{printable(self.path.as_posix())}{where}: {printable(text)}")

    def rows(self) -> Iterator[Row]:
        """Yield the rows that are not empty."""
        reader = csv.reader(_text_lines(self.path), delimiter=self.delimiter)
        try:
            next(reader)
            for cells in reader:
                if not any(cell.strip() for cell in cells):
                    continue
                if len(cells) != len(self.columns):
                    raise self.fault(
                        f"{len(cells)} cells where the first line names "
                        f"{len(self.columns)} columns.",
                        reader.line_num,
                    )
                yield Row(reader.line_num, dict(zip(self.columns, cells, strict=True)))
        except csv.Error as error:
            raise self.fault(f"this is not CSV ({error}).", reader.line_num) from None

    def file_in(self, row: Row) -> tuple[Found, str]:
        """Return the file that a row lists, and how it is written there, escapes undone."""
        text = row.cells["path"]
        if not text.strip() or "\0" in text:
            raise self.fault("the path is empty or holds a zero byte.", row.line)
        path = self.path.parent / text
        # Our own tables write odd names by `printable` and `spreadsheet_safe`; they can be given
        # back as they are.
        if not os.path.lexists(path):
            text = original_name(name_in_cell(text))
            path = self.path.parent / text
        return Found(path, posixpath.normpath(text)), text

    def name_of(self, row: Row) -> str:
        """Return what a row of features is called: by its own column, or by its line."""
        naming = next((column for column in NAMING_COLUMNS if column in self.columns), None)
        return row.cells[naming] if naming else f"{self.path.name}:{row.line}"


def open_table(path: Path, needed: str | None) -> Table:
    """Read the first line; find the columns and what separates them.

    Args:
        path: The CSV file.
        needed: Column that must be there, if any.
    """
    if not path.is_file():
        raise DataNotFound(
            f"There is no table {printable(path.as_posix())}. Give a CSV file with the columns "
            "path and label."
        )
    lines = _text_lines(path)
    first = next(lines, "")
    lines.close()
    # Spreadsheets of half of Europe separate by semicolons and still say CSV.
    choices = {delimiter: _headings(first, delimiter) for delimiter in ",;\t"}
    columns = {mark: tuple(map(column_called, choices[mark])) for mark in choices}
    best = max(choices, key=lambda mark: (needed in columns[mark], len(columns[mark])))
    table = Table(path, choices[best], columns[best], best)
    if not first.strip():
        raise table.fault("the table is empty. Expected a first line such as: path,label")
    if needed is not None and needed not in table.columns:
        raise table.fault(
            f"there is no column '{needed}' (positive, unlabelled or negative). The first line "
            f"names: {', '.join(table.columns)}."
        )
    twice = [column for column in table.columns if table.columns.count(column) > 1]
    if twice:
        raise table.fault(f"two columns are called '{twice[0]}'. Rename or remove one.")
    return table


def number_in(row: Row, column: str) -> float:
    """Return the number in a cell, or raise `NotANumber`."""
    text = row.cells[column].strip()
    try:
        number = float(text)
    except ValueError:
        hint = " If this column lists image files, call it 'path'." if text else ""
        raise NotANumber(
            f"column '{column}' holds '{text}', which is not a number.{hint}"
        ) from None
    if not math.isfinite(number) or abs(number) > _LARGEST:
        raise NotANumber(
            f"column '{column}' holds '{text}'; only finite numbers can be learnt from. "
            "Fill the gap or remove the row."
        )
    return number


def column_called(heading: str) -> str:
    """Return the column that a heading means, whoever pads it or writes it in capitals."""
    return heading.strip().lower()


def _headings(line: str, delimiter: str) -> tuple[str, ...]:
    try:
        cells = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return (line,)  # thousands of columns, taken for one by another separator than theirs
    return tuple(cell.strip() for cell in cells)


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
