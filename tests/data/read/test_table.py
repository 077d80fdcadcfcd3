import csv
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from onesided.core.errors import ConfigError, DataError, DataNotFound
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.data.read.picture import decode
from onesided.data.read.table import read_table
from onesided.storage.names import printable, spreadsheet_safe
from onesided.storage.table import open_table
from tests.data.image_files import write_png


def table_of(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    path = folder / "items.csv"
    path.write_bytes(text.encode(encoding))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for seed in range(6):
        write_png(tmp_path / "images" / f"{seed}.png", seed)
    return tmp_path


ROWS = """path,label
images/0.png,positive
images/1.png,unlabelled
images/2.png,negative
images/3.png,unlabelled
images/4.png,positive
"""


def test_a_table_lists_files_relative_to_its_own_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    read = read_table(table_of(folder, ROWS))
    known = dict(zip(read.samples.names, read.samples.classes.tolist(), strict=True))
    assert known == {
        "images/0.png": POSITIVE,
        "images/4.png": POSITIVE,
        "images/1.png": UNKNOWN,
        "images/3.png": UNKNOWN,
        "images/2.png": NEGATIVE,
    }
    assert [name for name, seen in zip(read.samples.names, read.labelled, strict=True) if seen] == [
        "images/0.png",
        "images/4.png",
    ]
    for name, values in zip(read.samples.names, read.samples.values, strict=True):
        np.testing.assert_array_equal(values, decode(folder / name))


def test_absolute_paths_are_taken_as_they_are(folder: Path) -> None:
    elsewhere = write_png(folder / "elsewhere" / "x.png", seed=50)
    read = read_table(table_of(folder, ROWS + f"{elsewhere},positive\n"))
    assert str(elsewhere) in read.samples.names


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_what_spreadsheets_write_is_read(
    folder: Path, encoding: str, delimiter: str, line_end: str
) -> None:
    text = ROWS.replace(",", delimiter).replace("\n", line_end)
    assert len(read_table(table_of(folder, text, encoding)).samples) == 5


def test_words_and_columns_may_be_capital_and_padded(folder: Path) -> None:
    text = (
        " Label ,PATH\n Positive ,images/0.png\nUNLABELLED,images/1.png\n\nunlabeled,images/2.png\n"
    )
    assert read_table(table_of(folder, text)).samples.classes.tolist() == [1, -1, -1]


def test_columns_that_are_not_used_are_named(folder: Path) -> None:
    text = "path,label,lat\nimages/0.png,positive,1\nimages/1.png,unlabelled,2\n"
    (notice,) = read_table(table_of(folder, text)).notices
    assert "lat" in notice


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the table is empty"),
        ("\n\n", "the table is empty"),
        ("path,class\nimages/0.png,positive\n", "no column 'label'.*path, class"),
        ("path,label\n", "no row is positive; found no rows"),
        ("path,label\nimages/0.png,positive\n", "no row is unlabelled; found positive"),
        ("path,label\nimages/0.png,unlabelled\n", "no row is positive; found unlabelled"),
        (ROWS + "images/5.png,maybe\n", "line 7: the label 'maybe' is none of"),
        (ROWS + "images/5.png,1\n", "line 7: the label '1'.*Numbers are refused"),
        (ROWS + "images/5.png,-1\n", "Numbers are refused"),
        (ROWS + "images/5.png,\n", "line 7: the label ''"),
        (ROWS + "images/0.png,positive\n", r"line 7: images/0\.png is listed already in line 2"),
        (ROWS + "./images//0.png,unlabelled\n", "line 7: .* listed already in line 2"),
        (ROWS + "images/5.png\n", "line 7: 1 cells where the first line names 2"),
        (ROWS + ",positive\n", "line 7: the path is empty"),
        (ROWS + "a\0b.png,positive\n", "line 7: the path is empty or holds a zero byte"),
        ("path,label,path\n", "two columns are called 'path'"),
        ("label\npositive\n", "neither a column 'path' nor any column to learn from"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(folder: Path, text: str, words: str) -> None:
    with pytest.raises(DataError, match=rf"items\.csv.*{words}"):
        read_table(table_of(folder, text))


def test_a_table_that_is_not_utf_8_is_refused_with_the_remedy(folder: Path) -> None:
    with pytest.raises(DataError, match=r"0xe9.*CSV UTF-8"):
        read_table(table_of(folder, ROWS + "images/é.png,positive\n", "latin-1"))


def test_a_field_without_end_is_refused(folder: Path) -> None:
    with pytest.raises(DataError, match="not CSV"):
        read_table(table_of(folder, ROWS + '"' + "x" * 200_000))


def test_a_missing_table_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(DataNotFound, match=r"items\.csv"):
        read_table(tmp_path / "items.csv")


def test_missing_files_count_as_unreadable_within_their_label(folder: Path) -> None:
    table = table_of(folder, ROWS + "images/nowhere.png,unlabelled\n")
    with pytest.raises(DataError, match=r"1 of 3 images in .*items\.csv \(unlabelled\)"):
        read_table(table, tolerate=0.3)
    read = read_table(table, tolerate=0.34)
    assert read.samples.skipped == (("images/nowhere.png", "does not exist"),)


def test_content_listed_under_two_labels_is_treated_as_the_scenario_says(folder: Path) -> None:
    shutil.copy(folder / "images" / "0.png", folder / "copy.png")
    table = table_of(folder, ROWS + "copy.png,unlabelled\n")
    single = read_table(table)
    assert (single.duplicates, len(single.samples)) == (1, 5)
    both = read_table(table, scenario="case-control")
    assert (both.duplicates, len(both.samples)) == (1, 6)


@pytest.mark.parametrize("raw", [b'a,"b".png', b"two\nlines.png", b"\xff.png", b"back\\slash.png"])
def test_hostile_names_can_be_listed_as_our_own_tables_write_them(folder: Path, raw: bytes) -> None:
    source = write_png(folder / "x.png", seed=70)
    os.rename(os.fsencode(source), os.fsencode(folder) + b"/" + raw)
    shown = printable(os.fsdecode(raw))
    with (folder / "items.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows([("path", "label"), (shown, "positive"), ("images/1.png", "unlabelled")])
    read = read_table(folder / "items.csv")
    assert read.samples.names == (os.fsdecode(raw), "images/1.png")


FEATURES = """age,label,height
1,positive,0.5
2,unlabelled,-1e3
3,negative,7
"""


def test_a_table_without_paths_holds_features(tmp_path: Path) -> None:
    read = read_table(table_of(tmp_path, FEATURES))
    assert read.samples.values.dtype == np.float32
    assert read.samples.values.tolist() == [[1, 0.5], [2, -1000], [3, 7]]
    assert read.samples.classes.tolist() == [POSITIVE, UNKNOWN, NEGATIVE]
    assert read.labelled.tolist() == [True, False, False]
    assert read.samples.names == ("items.csv:2", "items.csv:3", "items.csv:4")
    assert read.samples.kind == "vector"
    assert read.samples.feature_names == ("age", "height")


def test_features_are_called_as_the_table_spells_them(tmp_path: Path) -> None:
    text = " Age ,Label,ID,Body Height\n1,positive,x,2\n2,unlabelled,y,3\n"
    read = read_table(table_of(tmp_path, text))
    assert read.samples.feature_names == ("Age", "Body Height")
    assert read.samples.names == ("x", "y")


@pytest.mark.parametrize("column", ["id", "Name"])
def test_a_naming_column_names_items_and_is_no_feature(tmp_path: Path, column: str) -> None:
    text = f"{column},label,x\n7,positive,1\n8,unlabelled,2\n"
    read = read_table(table_of(tmp_path, text))
    assert read.samples.names == ("7", "8")
    assert read.samples.sample_shape == (1,)


def test_two_rows_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="two rows are called '7'"):
        read_table(table_of(tmp_path, "id,label,x\n7,positive,1\n7,unlabelled,2\n"))


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e39", "1" + "0" * 400, "tall", "1,5"])
def test_a_feature_that_is_no_finite_number_is_named_by_line_and_column(
    tmp_path: Path, cell: str
) -> None:
    table = table_of(tmp_path, FEATURES + f'4,unlabelled,"{cell}"\n')
    with pytest.raises(DataError, match=f"line 5: column 'height' holds '{cell}'"):
        read_table(table)


@pytest.mark.parametrize("cell", ["", "NaN", " n/a ", "null"])
def test_a_gap_among_numbers_stays_a_gap(tmp_path: Path, cell: str) -> None:
    read = read_table(table_of(tmp_path, FEATURES + f"4,unlabelled,{cell}\n"))
    assert [column.kind for column in read.samples.columns] == ["number", "number"]
    np.testing.assert_array_equal(read.samples.values[:, 1], [0.5, -1000, 7, np.nan])
    assert read.notices == ("Columns: 2 numbers.",)


MIXED = """town;Label;Area;built
Ulm;positive;1,5;2001-05-03
Bonn;unlabelled;2;1999-01-01
;unlabelled;;
Ulm;unlabelled;4,25;2010-12-31
"""


def test_a_table_of_several_kinds_stays_raw_and_says_what_it_found(tmp_path: Path) -> None:
    read = read_table(table_of(tmp_path, MIXED))
    assert [(column.name, column.kind) for column in read.samples.columns] == [
        ("town", "category"),
        ("Area", "number"),
        ("built", "date"),
    ]
    assert read.samples.values[0].tolist() == ["Ulm", 1.5, 11445.0]
    assert read.samples.feature_names == ("town", "Area", "built")
    assert read.notices == (
        "Columns: 1 number, 1 category (town), 1 date (built).",
        "Column 'Area': commas were read as decimal marks.",
    )


def test_a_kind_that_was_given_is_not_looked_for(tmp_path: Path) -> None:
    read = read_table(table_of(tmp_path, FEATURES), kinds={"Age": "category"})
    assert [column.kind for column in read.samples.columns] == ["category", "number"]
    with pytest.raises(ConfigError, match=r"column 'ages'.*age"):
        read_table(table_of(tmp_path, FEATURES), kinds={"ages": "category"})


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["2024-01-02", "2024-01-03", "03.01.2024", "2024-01-04"], "line 4: .* another form"),
        (["2024-01-02", "2024-01-03", "soon", "2024-01-04"], "line 4: .*not a date"),
        (["03/04/2024", "05/06/2024", "", "01/02/2024"], "day or the month"),
        (["a\0b", "a", "b", "a"], "line 2: .*zero byte"),
        (["", "", "", ""], "no column is left .*it is empty"),
        (["a", "a", "a", "a"], "no column is left .*holds the same"),
    ],
)
def test_a_column_that_could_be_two_things_is_refused(
    tmp_path: Path, cells: list[str], words: str
) -> None:
    labels = ["positive", "unlabelled", "unlabelled", "unlabelled"]
    lines = "".join(f"{cell},{label}\n" for cell, label in zip(cells, labels, strict=True))
    with pytest.raises(DataError, match=rf"items\.csv.*{words}"):
        read_table(table_of(tmp_path, "seen,label\n" + lines))


def test_image_files_are_grouped_and_weighed_by_columns(folder: Path) -> None:
    text = "path,label,Town,weight,lat\n"
    for row, town in enumerate("abcab"):
        label = "positive" if row < 2 else "unlabelled"
        text += f"images/{row}.png,{label},{town},{row + 1},7\n"
    table = table_of(folder, text)
    read = read_table(table, group="town", sample_weight="weight")
    assert read.samples.groups["town"].tolist() == list("abcab")
    assert read.samples.weights is not None
    assert read.samples.weights.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert "columns that were not used: lat." in " ".join(read.notices)
    with pytest.raises(DataError, match="no column 'city' to group rows by"):
        read_table(table, group="city")


def test_a_column_of_weights_is_no_feature_and_holds_numbers_from_0_on(tmp_path: Path) -> None:
    read = read_table(table_of(tmp_path, FEATURES), sample_weight="AGE")
    assert read.samples.weights is not None
    assert read.samples.weights.tolist() == [1.0, 2.0, 3.0]
    assert "age" not in read.samples.feature_names
    with pytest.raises(DataError, match=r"no column 'ago' of weights.*age"):
        read_table(table_of(tmp_path, FEATURES), sample_weight="ago")
    with pytest.raises(DataError, match="holds 'x', which is not a number"):
        read_table(table_of(tmp_path, FEATURES.replace("2", "x")), sample_weight="age")
    with pytest.raises(DataError, match="column 'age' holds -2 in row 1; a weight is"):
        read_table(table_of(tmp_path, FEATURES.replace("2", "-2")), sample_weight="age")


def test_rows_are_grouped_by_a_column_which_is_then_no_feature(tmp_path: Path) -> None:
    read = read_table(table_of(tmp_path, FEATURES), group="AGE")
    assert read.samples.groups["age"].tolist() == ["1", "2", "3"]
    assert read.samples.feature_names == ("height",)
    with pytest.raises(DataError, match=r"no column 'ago' to group rows by.*age"):
        read_table(table_of(tmp_path, FEATURES), group="ago")
    with pytest.raises(DataError, match=r"line 5: the column 'age'.*is empty"):
        read_table(table_of(tmp_path, FEATURES + ",unlabelled,7\n"), group="age")


def test_a_column_of_files_by_another_name_gets_a_hint(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="call it 'path'"):
        read_table(table_of(tmp_path, "file,label\na.png,positive\n"))


def test_a_first_line_of_thousands_of_columns_is_read(tmp_path: Path) -> None:
    names = [f"ENSG{number:011}" for number in range(10_000)]
    table = open_table(table_of(tmp_path, ",".join(["label", *names]) + "\n"), "label")
    assert len(table.columns) == 10_001


def test_a_name_that_was_guarded_for_spreadsheets_can_be_given_back(folder: Path) -> None:
    (folder / "images" / "0.png").rename(folder / "-95.6_29.8.png")
    text = ROWS.replace("images/0.png", spreadsheet_safe("-95.6_29.8.png"))
    assert text.splitlines()[1].startswith("'-95")
    found = read_table(table_of(folder, text))
    assert "-95.6_29.8.png" in found.samples.names
