from collections.abc import Sequence

import pytest

from onesided.data.columns.kinds import UnclearColumn, read_columns

ROWS = 24


def repeated(*cells: object) -> list[object]:
    return [cells[row % len(cells)] for row in range(ROWS)]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (repeated("1", "2.5", ""), "number"),
        (repeated(1, "2", None), "number"),
        (repeated("0", "1"), "number"),
        (repeated("yes", "No", ""), "boolean"),
        (repeated(True, False), "boolean"),
        (repeated("Ulm", "Bonn", ""), "category"),
        (repeated("single family house", "flat on the third floor"), "category"),
        (repeated("12", "12a", "3b"), "category"),
        (repeated("2024-05-03", "2023-01-01"), "date"),
        (repeated("31.12.2024", "01.02.2024"), "date"),
        (repeated("12/31/2024", "01/02/2024"), "date"),
        (repeated("05/05/2024", "06/06/2024"), "date"),
        ([f"the roof of house {row} is gone" for row in range(ROWS)], "text"),
        ([f"屋顶被风暴吹走了{row}" * 5 for row in range(ROWS)], "text"),
        (repeated("x", ""), "category"),
    ],
)
def test_the_cells_tell_the_kind(cells: Sequence[object], kind: str) -> None:
    (column,) = read_columns({"x": cells}).columns
    assert column.kind == kind


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (repeated("", None), "it is empty"),
        (repeated("a"), "every row holds the same"),
        ([f"row-{row}" for row in range(ROWS)], "names the rows"),
    ],
)
def test_a_column_that_teaches_nothing_is_left_out_and_named(
    cells: Sequence[object], reason: str
) -> None:
    table = read_columns({"x": cells, "y": repeated("1", "2")})
    assert [column.name for column in table.columns] == ["y"]
    assert "x (" in table.notices[-1]
    assert reason in table.notices[-1]


def test_the_first_cell_that_does_not_fit_is_named() -> None:
    with pytest.raises(UnclearColumn, match=r"'high', which is not a number, as 23 of 24") as found:
        read_columns({"x": [str(row) for row in range(ROWS - 1)] + ["high"]})
    assert found.value.row == ROWS - 1


def test_a_comma_is_a_decimal_mark_only_where_it_does_not_separate_columns() -> None:
    cells = {"x": repeated("1,5", "2")}
    (column,) = read_columns(cells, decimal_commas=True).columns
    assert (column.kind, column.form) == ("number", ",")
    with pytest.raises(UnclearColumn, match="decimals after a point"):
        read_columns({"x": repeated("1,5", "2,5")})
