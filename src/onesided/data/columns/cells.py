"""Columns of a table, their kinds, and what a single cell of a kind holds.

A raw row holds, for each column, a float (number, boolean as 0 or 1, date in days since 1970;
NaN for a gap) or a string (category, text; None for a gap).
"""

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Literal

import numpy as np

from onesided.core.config import Config
from onesided.storage.table import decimal

ColumnKind = Literal["number", "category", "boolean", "date", "text"]
NUMERIC: tuple[ColumnKind, ...] = ("number", "boolean", "date")
"""Kinds whose cells are floats in a raw row."""

GAPS = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "?"})
"""Words that stand for a missing value, in small letters."""
BOOLEANS = ({"true": 1.0, "false": 0.0}, {"yes": 1.0, "no": 0.0}, {"y": 1.0, "n": 0.0})
"""Words for yes and no; a column uses one pair of them."""
ISO = "iso"
DATE_FORMS = (
    *(ISO, "%d.%m.%Y", "%Y/%m/%d"),
    *("%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y"),
)
"""How dates are written: as ISO 8601, with or without a time, or by `strptime`."""

# Beyond 3.4e38 float32 holds infinity, which is as useless to a network as NaN.
LARGEST = float(np.finfo(np.float32).max)
_DECIMAL_COMMA = re.compile(r"[-+]?\d+(,\d+)?")
_DATE = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([ T].*)?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Plain = str | float | None
Cell = str | float | None


class Column(Config):
    """A column that a model learns from."""

    name: str
    """Its name, as the table spells it."""
    kind: ColumnKind
    """What its cells are."""
    form: str = ""
    """How a date is written, or `,` where numbers have decimal commas."""


class WrongCell(ValueError):
    """A cell that its column cannot hold; the message continues a sentence about its row."""


def plain(value: object) -> Plain:
    """Return a cell of any table as a string, a float, or None for a gap.

    Data frames have typed cells; a date becomes its ISO form and a boolean its word, so that
    the same table as a file means the same.
    """
    if isinstance(value, str):
        text = value.strip()
        return None if text.lower() in GAPS else text
    # pandas' NA is neither equal nor unequal to itself; its NaT and every NaN are unequal.
    if value is None or type(value).__name__ == "NAType" or bool(value != value):
        return None
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, np.datetime64):
        return str(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, int | float | np.integer | np.floating | Decimal):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    raise WrongCell(f"holds {type(value).__name__}; expected a number, a word, a date or a text.")


def cell_value(column: Column, cell: Plain) -> Cell:
    """Return what a plain cell means in its column, or raise `WrongCell`."""
    if column.kind in NUMERIC:
        return math.nan if cell is None else _PARSERS[column.kind](column, cell)
    if cell is None or isinstance(cell, str):
        return cell
    return f"{cell:.15g}"  # a category that is counted: 3 and not 3.0, as a file would have it


def shown_row(columns: Sequence[Column], cells: Sequence[Cell]) -> str:
    """Return a raw row as people read it; of a row of one text, that text."""
    if len(columns) == 1 and columns[0].kind == "text":
        return str(cells[0] or "")
    pairs = zip(columns, cells, strict=True)
    return " · ".join(f"{column.name}: {shown_cell(column, cell)}" for column, cell in pairs)


def shown_cell(column: Column, cell: Cell) -> str:
    """Return a cell of a raw row as people read it."""
    if cell is None or isinstance(cell, str):
        return cell or "?"
    if math.isnan(cell):
        return "?"
    if column.kind == "boolean":
        return "yes" if cell else "no"
    if column.kind == "date":
        return (_EPOCH + timedelta(days=cell)).date().isoformat()
    return f"{cell:g}"


def number_of(cell: str | float) -> float | None:
    """Return the number that a cell holds, which may be infinite, or None."""
    try:
        return decimal(cell) if isinstance(cell, str) else float(cell)
    except ValueError:
        return None


def has_decimal_comma(cell: str | float) -> bool:
    """Whether this could be a number whose decimals follow a comma."""
    return isinstance(cell, str) and _DECIMAL_COMMA.fullmatch(cell) is not None


def looks_like_date(cell: str | float) -> bool:
    """Whether a cell is three numbers with marks between them; not every such cell is a date."""
    return isinstance(cell, str) and _DATE.fullmatch(cell) is not None


def day_of(cell: str | float, form: str) -> float | None:
    """Return the days since 1970 of a date that is written in this form, or None."""
    if not looks_like_date(cell) or not isinstance(cell, str):
        return None
    try:
        when = datetime.fromisoformat(cell) if form == ISO else datetime.strptime(cell, form)
    except ValueError:
        return None
    # A time without a zone is taken as it is: what counts is how far dates are apart.
    aware = when if when.tzinfo else when.replace(tzinfo=UTC)
    return (aware - _EPOCH).total_seconds() / 86400


def _number(column: Column, cell: str | float) -> float:
    if column.form == "," and isinstance(cell, str):
        cell = cell.replace(",", ".") if has_decimal_comma(cell) else cell
    number = number_of(cell)
    if number is None:
        hint = " Write decimals after a point." if has_decimal_comma(cell) else ""
        raise WrongCell(f"column '{column.name}' holds '{cell}', which is not a number.{hint}")
    if not math.isfinite(number) or abs(number) > LARGEST:
        raise WrongCell(
            f"column '{column.name}' holds '{cell}'; only finite numbers can be learnt from. "
            "Leave the cell empty, or remove the row."
        )
    return number


def _boolean(column: Column, cell: str | float) -> float:
    word = cell.lower() if isinstance(cell, str) else f"{cell:g}"
    for words in (*BOOLEANS, {"1": 1.0, "0": 0.0}):
        if word in words:
            return words[word]
    raise WrongCell(f"column '{column.name}' holds '{cell}', which is neither true nor false.")


def _day(column: Column, cell: str | float) -> float:
    day = day_of(cell, column.form or ISO)
    if day is None:
        form = "2024-12-31" if column.form in ("", ISO) else column.form
        raise WrongCell(
            f"column '{column.name}' holds '{cell}', which is not a date in the form {form}."
        )
    return day


_PARSERS: dict[ColumnKind, Callable[[Column, str | float], float]] = {
    "number": _number,
    "boolean": _boolean,
    "date": _day,
}
