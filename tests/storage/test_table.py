import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onesided.core.errors import DataError, DataNotFound
from onesided.storage.names import name_in_cell, original_name, spreadsheet_safe
from onesided.storage.table import csv_lines, csv_text, read_lines, read_rows

FORMULA = ("=", "+", "-", "@", "\t", "\r")
HIDDEN = ("\n=1", "  =1", "\uff1d1", "\uff0b1", "\uff0d1", "\uff20a", ";=1", "\ufeff=1", "\u200b@a")
"""Formulas to some spreadsheet, though they start with none of these signs."""


@given(st.lists(st.text(st.characters(exclude_characters="\0"), min_size=1)))
def test_any_name_survives_a_table_and_none_is_a_formula(names: list[str]) -> None:
    text = csv_text(("item", "role"), [(name, "x") for name in names])
    header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert header == ["item", "role"]
    assert [role for _, role in rows] == ["x"] * len(names)
    cells = [cell for cell, _ in rows]
    text.encode("utf-8")
    assert not [cell for cell in cells if cell.startswith(FORMULA)]
    assert [_bytes(original_name(name_in_cell(cell))) for cell in cells] == list(map(_bytes, names))


def _bytes(name: str) -> bytes:
    # Surrogates that do not stand for a byte cannot be file names; compare what they mean.
    return name.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("name", [f"{sign}1+1" for sign in FORMULA] + list(HIDDEN))
def test_no_form_of_a_formula_is_run_by_a_spreadsheet(name: str) -> None:
    for cell in (spreadsheet_safe(name), spreadsheet_safe(f"'{name}")):
        assert cell.startswith("'")
        assert name_in_cell(cell) in (name, f"'{name}")


@pytest.mark.parametrize("separator", ";|\t")
def test_a_spreadsheet_with_another_separator_finds_no_formula_inside_a_name(
    separator: str,
) -> None:
    text = csv_text(("item", "role"), [(f"a{separator}=1+1", "x")])
    cells = next(csv.reader(text.splitlines()[1:], delimiter=separator))
    assert not [cell for cell in cells if cell.startswith(FORMULA)]


def test_our_own_lines_are_what_the_usual_reader_reads() -> None:
    rows = [("a;b", "1"), ('"', ""), ("", "\u2028"), ("x\r\ny", "z")]
    assert list(csv.reader(io.StringIO(csv_lines(rows), newline=""), strict=True)) == [
        list(row) for row in rows
    ]
    assert csv_lines([("",), (None, 1.5)]) == '""\n,1.5\n'


@given(st.text(st.sampled_from("'=+-@\t\r\n ;\uff1da")))
def test_guarding_against_formulas_is_undone_exactly(name: str) -> None:
    assert name_in_cell(spreadsheet_safe(name)) == name


def test_lines_end_as_unix_has_it() -> None:
    assert csv_text(("a", "b"), [("x", 1), ("c\rd", 2)]) == 'a,b\nx,1\n"c\rd",2\n'


def test_lines_are_counted_as_an_editor_does(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('item,label\n"two\nlines",positive\nlast,negative\n')
    assert [row.line for row in read_rows(tmp_path / "t.csv", ("label",))] == [3, 4]


def test_short_and_long_rows_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("item,label\na\nb,positive,extra,cells\n")
    rows = [row.cells for row in read_rows(tmp_path / "t.csv", ("label",))]
    assert rows == [{"item": "a", "label": ""}, {"item": "b", "label": "positive"}]


def test_cells_that_are_safe_already_stay_as_they_are() -> None:
    assert csv_lines([("'=a", "b,c")]) == '\'=a,"b,c"\n'


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_what_separates_cells_is_found_with_and_without_a_heading(
    tmp_path: Path, mark: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(mark.join(("a", "b")) + "\n\n" + mark.join(("c", "d")) + "\n")
    assert read_lines(path) == [(1, ["a", "b"]), (3, ["c", "d"])]


def test_needed_columns_decide_between_two_separators(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a;label\n1,5;positive\n")
    assert read_rows(tmp_path / "t.csv", ("label",))[0].cells == {"a": "1,5", "label": "positive"}


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataNotFound, match=r"t\.csv"):
        read_lines(tmp_path / "t.csv")
    with pytest.raises(DataError, match="cannot be read"):
        read_lines(tmp_path)
    (tmp_path / "t.csv").write_bytes(b"item,label\n\xe9,positive\n")
    with pytest.raises(DataError, match="CSV UTF-8"):
        read_lines(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("item\n")
    with pytest.raises(DataError, match=r"needs the column 'label'; its first line names item"):
        read_rows(tmp_path / "t.csv", ("label",))
