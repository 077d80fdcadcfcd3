"""CSV as people and spreadsheets write it, with errors by line, and as we write it."""

import csv
import math
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onesided.core.errors import DataError, DataNotFound
from onesided.storage.names import printable, shown_path, spreadsheet_safe

NAMING_COLUMNS = ("name", "id")
"""Columns that name an item and are never features: a number that counts the rows would
reveal how the table was assembled."""

_SEPARATES = frozenset(',;|"\t\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029')
"""What some reader takes for the end of a cell or of a line."""
# Beyond 3.4e38 float32 holds infinity, which is as useless to a network as NaN.
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Row:
    """One line below the header, its cells by column."""

    line: int
    cells: dict[str, str]


class NotANumber(ValueError):
    """A cell that is no usable number; the message continues a sentence about it."""


@dataclass(frozen=True)
class Table:
    """A CSV file whose first line was read.

    Attributes:
        headings: The columns' names as the file spells them.
        columns: The same in small letters, as the code uses them.
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
        """Return an error about this table, or about one line of it."""
        where = "" if line is None else f", line {line}"
        return DataError(f"{shown_path(self.path)}{where}: {printable(text)}")

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
            too_long = "limit" in str(error)
            hint = " Close its quotes, or give long texts as files (-p, -u)." if too_long else ""
            raise self.fault(f"this is not CSV ({error}).{hint}", reader.line_num) from None

    def name_of(self, row: Row) -> str:
        """Return the name of a row of features: from its own column, or from its line."""
        naming = next((column for column in NAMING_COLUMNS if column in self.columns), None)
        return row.cells[naming] if naming else f"{self.path.name}:{row.line}"


def check_table(path: Path) -> None:
    """Refuse a table that is not there."""
    if not path.is_file():
        raise DataNotFound(
            f"There is no table {shown_path(path)}. Give a CSV file with the columns "
            "label, and path or others to learn from."
        )


def open_table(path: Path, needed: str | None) -> Table:
    """Read the first line; find the columns, of which one may be needed, and their separator.

    Of a Parquet file, the schema.
    """
    check_table(path)
    table = _parquet_table(path) if path.suffix.lower() == ".parquet" else _csv_table(path, needed)
    if needed is not None and needed not in table.columns:
        raise table.fault(
            f"there is no column '{needed}' (positive, unlabelled or negative). The first line "
            f"names: {', '.join(table.columns)}."
        )
    twice = [column for column in table.columns if table.columns.count(column) > 1]
    if twice:
        raise table.fault(f"two columns are called '{twice[0]}'. Rename or remove one.")
    return table


def _csv_table(path: Path, needed: str | None) -> Table:
    lines = _text_lines(path)
    first = next(lines, "")
    lines.close()
    mark = _separator(first, (needed,) if needed else ())
    headings = _headings(first, mark)
    table = Table(path, headings, tuple(map(column_called, headings)), mark)
    if not first.strip():
        raise table.fault("the table is empty. Expected a first line such as: path,label")
    return table


def _parquet_table(path: Path) -> Table:
    from onesided.storage.parquet import parquet_table  # it builds upon this module

    return parquet_table(path)


def decimal(text: str) -> float:
    """Return the number that a text is, or raise ValueError.

    1_5 is a name, though Python reads it as 15.
    """
    if "_" in text:
        raise ValueError(text)
    return float(text)


def number_in(row: Row, column: str) -> float:
    """Return the number in a cell, or raise `NotANumber`."""
    text = row.cells[column].strip()
    try:
        number = decimal(text)
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
    """Return the column that a heading means, also with spaces or capitals."""
    return heading.strip().lower()


def _headings(line: str, delimiter: str) -> tuple[str, ...]:
    try:
        cells = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return (line,)  # thousands of columns, read as one by a wrong separator
    return tuple(cell.strip() for cell in cells)


def _separator(first_line: str, needed: Sequence[str]) -> str:
    """Return the separator that finds the needed columns, or else the most columns."""

    # Spreadsheets of half of Europe separate by semicolons and still say CSV.
    def found(mark: str) -> tuple[bool, int]:
        columns = [column_called(heading) for heading in _headings(first_line, mark)]
        return set(needed) <= set(columns), len(columns)

    return max(",;\t", key=found)


def _text_lines(path: Path) -> Generator[str, None, None]:
    """Yield the lines of a UTF-8 file, with or without a byte order mark."""
    shown = shown_path(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from file
    except FileNotFoundError:
        raise DataNotFound(f"There is no file {shown}.") from None
    except OSError as error:
        raise DataError(f"{shown} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise DataError(
            f"{shown} is not UTF-8 text (it holds the byte 0x{byte:02x}). "
            "Save it as 'CSV UTF-8'; other bytes in file names are written \\xNN."
        ) from None


def read_rows(path: Path, columns: Sequence[str]) -> list[Row]:
    """Return the rows of a file that must have these columns; missing cells are empty."""
    lines = read_lines(path, columns)
    named = [column_called(heading) for heading in lines[0][1]] if lines else []
    missing = [column for column in columns if column not in named]
    if missing:
        raise DataError(
            f"{shown_path(path)} needs the column '{missing[0]}'; its first line names "
            f"{', '.join(filter(None, named)) or 'nothing'}."
        )
    empty = dict.fromkeys(filter(None, named), "")
    return [
        Row(line, empty | {name: cell for name, cell in zip(named, cells, strict=False) if name})
        for line, cells in lines[1:]
    ]


def read_lines(path: Path, needed: Sequence[str] = ()) -> list[tuple[int, list[str]]]:
    """Return the lines that are not empty, the first one too, each with its number.

    The separator is the one that finds the `needed` columns.
    """
    text = list(_text_lines(path))
    reader = csv.reader(text, delimiter=_separator(text[0] if text else "", needed))
    try:
        return [(reader.line_num, cells) for cells in reader if any(cells)]
    except csv.Error as error:
        raise DataError(f"{shown_path(path)} is not CSV ({error}).") from None


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return CSV whose first column is a name; see `named_lines`."""
    return csv_lines([columns]) + named_lines(rows)


def named_lines(rows: Iterable[Sequence[object]]) -> str:
    """Return lines of CSV whose first cell is a name, written as UTF-8 and never as a formula."""
    return csv_lines((spreadsheet_safe(printable(str(first))), *rest) for first, *rest in rows)


def csv_lines(rows: Iterable[Sequence[object]]) -> str:
    """Return lines of CSV, with the cells unchanged."""
    return "".join(",".join(_quoted(row)) + "\n" for row in rows)


def _quoted(row: Sequence[object]) -> Iterator[str]:
    """Yield the cells of a row, in quotes where any reader could take one apart.

    Python's own writer quotes for its own separator alone: a spreadsheet that separates by
    semicolons would find a formula in the middle of a name.
    """
    for value in row:
        text = "" if value is None else str(value)
        alone = not text and len(row) == 1  # or the line would be empty
        quoted = alone or not _SEPARATES.isdisjoint(text)
        yield '"' + text.replace('"', '""') + '"' if quoted else text
