"""Which kind each column of a table is, found from its cells.

Nothing is guessed silently: what was found is told in a notice, and where a column could be
two things the person is asked.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from onesided.core.config import nearest
from onesided.core.errors import ConfigError
from onesided.data.columns.cells import (
    BOOLEANS,
    DATE_FORMS,
    NUMERIC,
    Column,
    ColumnKind,
    Plain,
    WrongCell,
    cell_value,
    day_of,
    has_decimal_comma,
    number_of,
    plain,
)

MOSTLY = 0.75
"""Share of numbers, or of dates, from which on another cell is a mistake and no category."""
WORDS_OF_TEXT, LETTERS_OF_TEXT = 4, 40
"""Words, or letters, that the cells of a text have on average, and those of categories not."""
NEARLY_ALL = 0.9
"""Share of different values from which on words name the rows and teach nothing."""
FEWEST_NAMED = 20
"""Rows that a column needs before it can be said to name them."""
MOST_NAMED = 5
"""Columns that a notice names for each kind."""
PLURALS = {
    "number": "numbers",
    "category": "categories",
    "boolean": "booleans",
    "date": "dates",
    "text": "texts",
}


@dataclass(frozen=True)
class RawTable:
    """The columns of a table that a model learns from, with all of their cells.

    Attributes:
        columns: Names and kinds.
        values: Rows as `cells` describes them: float64, or objects if there are strings.
        notices: What was found and what was left out, in sentences.
    """

    columns: tuple[Column, ...]
    values: np.ndarray
    notices: tuple[str, ...]


class UnclearColumn(ValueError):
    """A column whose kind cannot be found.

    Attributes:
        row: The row to look at, from 0; None if it is not about one row.
    """

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row


def read_columns(
    cells: Mapping[str, Sequence[object]],
    *,
    kinds: Mapping[str, ColumnKind] | None = None,
    decimal_commas: bool = False,
) -> RawTable:
    """Return the columns with their kinds and values; raise `UnclearColumn`.

    Args:
        cells: The cells of each column, all equally long.
        kinds: Kinds that the person gave, by column; the others are found.
        decimal_commas: Whether a comma may be a decimal mark.
    """
    kinds = kinds or {}
    for name in kinds:
        if name not in cells:
            raise ConfigError(
                f"A kind is given for the column '{name}', which the table does not have."
                f"{nearest(name, cells)}"
            )
    columns, values, left_out = [], [], []
    for name, given in cells.items():
        read = _plain_cells(name, given)
        column = _column(name, read, kinds.get(name), decimal_commas=decimal_commas)
        if isinstance(column, str):
            left_out.append(f"{name} ({column})")
            continue
        columns.append(column)
        values.append(_values(column, read))
    notices = [] if not columns else [f"Columns: {in_words(columns)}."]
    if left_out:
        notices.append(f"Columns that were left out: {', '.join(left_out)}.")
    notices += [
        f"Column '{column.name}': commas were read as decimal marks."
        for column in columns
        if column.kind == "number" and column.form == ","
    ]
    return RawTable(tuple(columns), joined(columns, values), tuple(notices))


def in_words(columns: Sequence[Column]) -> str:
    """Return for example `5 numbers, 2 categories (town, roof), 1 date (built)`."""
    parts = []
    for kind, plural in PLURALS.items():
        names = [column.name for column in columns if column.kind == kind]
        if not names:
            continue
        some = ", ".join(names[:MOST_NAMED]) + (", …" if names[MOST_NAMED:] else "")
        called = "" if kind == "number" else f" ({some})"
        parts.append(f"{len(names)} {kind if len(names) == 1 else plural}{called}")
    return ", ".join(parts)


def joined(columns: Sequence[Column], values: Sequence[Sequence[object]]) -> np.ndarray:
    """Return cells, column by column, as raw rows."""
    only_numbers = all(column.kind in NUMERIC for column in columns)
    rows = len(values[0]) if values else 0
    table = np.empty((rows, len(columns)), np.float64 if only_numbers else object)
    for index, column in enumerate(values):
        table[:, index] = column
    return table


def _plain_cells(name: str, cells: Sequence[object]) -> list[Plain]:
    read = []
    for row, cell in enumerate(cells):
        if isinstance(cell, str) and "\0" in cell:
            raise UnclearColumn(f"column '{name}' holds a zero byte. Remove it.", row)
        try:
            read.append(plain(cell))
        except WrongCell as error:
            raise UnclearColumn(f"column '{name}' {error}", row) from None
    return read


def _values(column: Column, cells: Sequence[Plain]) -> list[object]:
    values: list[object] = []
    for row, cell in enumerate(cells):
        try:
            values.append(cell_value(column, cell))
        except WrongCell as error:
            raise UnclearColumn(str(error), row) from None
    return values


def _column(
    name: str, cells: Sequence[Plain], given: ColumnKind | None, *, decimal_commas: bool
) -> Column | str:
    """Return the column, or the reason why it is left out."""
    some = [cell for cell in cells if cell is not None]
    if not some:
        return "it is empty"
    if given is not None:
        forms = _date_forms(some) if given == "date" else []
        return Column(name=name, kind=given, form=forms[0] if forms else "")
    values = Counter(some)
    if len(values) == 1 and len(some) == len(cells):
        return "every row holds the same"
    numbers = [number_of(cell) is not None for cell in some]
    if all(numbers):
        return Column(name=name, kind="number")
    if decimal_commas and all(map(has_decimal_comma, some)):
        return Column(name=name, kind="number", form=",")
    words = {str(cell).lower() for cell in values}
    if any(words <= pair.keys() for pair in BOOLEANS):
        return Column(name=name, kind="boolean")
    if forms := _date_forms(some):
        return Column(name=name, kind="date", form=_only_form(name, some, forms))
    _check_mistakes(name, cells, numbers)
    return _of_words(name, [str(cell) for cell in some], len(values))


def _date_forms(cells: Sequence[str | float]) -> list[str]:
    """Return the forms in which every cell is a date."""
    return [form for form in DATE_FORMS if all(day_of(cell, form) is not None for cell in cells)]


def _only_form(name: str, cells: Sequence[str | float], forms: Sequence[str]) -> str:
    meanings = {tuple(day_of(cell, form) for cell in cells) for form in forms}
    if len(meanings) > 1:
        raise UnclearColumn(
            f"column '{name}' holds dates such as {cells[0]}, of which nobody can tell whether the "
            "day or the month comes first. Write them as 2024-12-31."
        )
    return forms[0]


def _check_mistakes(name: str, cells: Sequence[Plain], numbers: Sequence[bool]) -> None:
    """Refuse words among numbers, and dates in two forms, rather than take them for categories."""
    some = [(row, cell) for row, cell in enumerate(cells) if cell is not None]
    if sum(numbers) >= MOSTLY * len(some):
        row, cell = some[numbers.index(False)]
        comma = " Write decimals after a point." if has_decimal_comma(cell) else ""
        raise UnclearColumn(
            f"column '{name}' holds '{cell}', which is not a number, as {sum(numbers)} of "
            f"{len(some)} cells are.{comma or _say_kind(name)}",
            row,
        )
    if all(has_decimal_comma(cell) for _, cell in some):
        raise UnclearColumn(
            f"column '{name}' holds '{some[0][1]}', which is not a number. Write decimals after "
            "a point, or separate columns by semicolons.",
            some[0][0],
        )
    found = Counter(
        form for _, cell in some for form in DATE_FORMS if day_of(cell, form) is not None
    )
    dates = [any(day_of(cell, form) is not None for form in DATE_FORMS) for _, cell in some]
    if sum(dates) < MOSTLY * len(some):
        return
    form = found.most_common(1)[0][0]
    row, cell = next(one for one in some if day_of(one[1], form) is None)
    what = "in another form than the other dates" if all(dates) else "which is not a date"
    raise UnclearColumn(
        f"column '{name}' holds '{cell}', {what}. Write all of them as 2024-12-31.", row
    )


def _say_kind(name: str) -> str:
    return f" Correct it or leave it empty; or say --set 'data.kinds.{name}=category'."


def _of_words(name: str, cells: Sequence[str], different: int) -> Column | str:
    """Return a column of words as text or category, or why it is left out."""
    words = sum(len(cell.split()) for cell in cells) / len(cells)
    letters = sum(map(len, cells)) / len(cells)
    if different > len(cells) / 2 and (words >= WORDS_OF_TEXT or letters >= LETTERS_OF_TEXT):
        return Column(name=name, kind="text")
    if len(cells) >= FEWEST_NAMED and different >= NEARLY_ALL * len(cells):
        return "it names the rows: nearly every one has another value"
    return Column(name=name, kind="category")
