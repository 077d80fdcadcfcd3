from pathlib import Path

import numpy as np
import pytest
import shapely  # type: ignore[import-untyped, unused-ignore]
from pyogrio.raw import write  # type: ignore[import-untyped, unused-ignore]

from onesided.core.errors import ConfigError, DataError, DataNotFound
from onesided.geo.input.coordinates import converted, system
from onesided.geo.input.footprints import Buildings
from onesided.geo.input.positives import (
    marks_of_column,
    marks_of_ids,
    marks_of_layer,
    read_truth,
)

CORNER = np.array([500_000, 1_600_000])
# Three houses in a row, wall to wall, and one apart; metres.
ROW = np.array([shapely.box(x, 0, x + 10, 10) for x in (0, 10, 20, 100)], object)
UTM = system("EPSG:32615")
HOUSES = Buildings(
    ("a", "b", "c", "17"),
    shapely.transform(ROW, lambda places: places + CORNER),
    UTM,
    {"damage": np.array(["none", "major", None, "destroyed"], object)},
)


def marked(names: str) -> list[bool]:
    return [name in names.split() for name in HOUSES.names]


def write_marks(path: Path, shapes: list[object], crs: str = "EPSG:32615") -> Path:
    moved = shapely.transform(np.array(shapes, object), lambda places: places + CORNER)
    moved = converted(moved, UTM, system(crs))
    write(path, geometry=shapely.to_wkb(moved), field_data=[], fields=[],
          geometry_type="Unknown", crs=crs)  # fmt: skip
    return path


@pytest.mark.parametrize("text", ["id\na\n17\n", "a\n17\n", "note;id\nx;a\ny;17.0\n",
    "\ufeffid,name\n\"a\",1\n17,2\n", "id\n a \n17\n\n"])  # fmt: skip
def test_ids_are_found_in_their_column_or_the_first(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ids.csv"
    path.write_text(text, encoding="utf-8")
    found = marks_of_ids(HOUSES, path)
    assert found.marked.tolist() == marked("a 17")
    assert found.warnings == ()


def test_ids_of_no_building_are_left_out_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "ids.csv"
    path.write_text("id\nb\nzz\n")
    found = marks_of_ids(HOUSES, path)
    assert found.marked.tolist() == marked("b")
    assert "1 of 2 ids" in found.warnings[0]
    assert "'zz'" in found.warnings[0]


def test_ids_that_match_nothing_are_refused_with_an_example_of_both(tmp_path: Path) -> None:
    path = tmp_path / "ids.csv"
    path.write_text("id\nA\nB\n")
    with pytest.raises(DataError, match=r"'A'.*'a'"):
        marks_of_ids(HOUSES, path)


def test_a_review_of_the_map_marks_only_what_was_found_damaged(tmp_path: Path) -> None:
    review = tmp_path / "review.csv"
    review.write_text("id,label\na,positive\nb,negative\nc,unlabelled\n17,positive\n")
    assert marks_of_ids(HOUSES, review).marked.tolist() == marked("a 17")
    assert read_truth(review) == {"a": 1, "b": 0, "17": 1}


def test_a_review_that_found_nothing_is_refused(tmp_path: Path) -> None:
    review = tmp_path / "review.csv"
    review.write_text("id,label\na,negative\n")
    with pytest.raises(DataError, match=r"None of the 1 buildings .* has the label positive"):
        marks_of_ids(HOUSES, review)


@pytest.mark.parametrize("text", ["", "id\n", "\n\n"])
def test_an_empty_list_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ids.csv"
    path.write_text(text)
    with pytest.raises(DataError, match="lists no id"):
        marks_of_ids(HOUSES, path)
    with pytest.raises(DataNotFound):
        marks_of_ids(HOUSES, tmp_path / "none.csv")


def test_points_mark_the_house_they_lie_in_through_any_system(tmp_path: Path) -> None:
    shapes: list[object] = [shapely.Point(12, 5), shapely.Point(60, 5)]
    found = marks_of_layer(HOUSES, write_marks(tmp_path / "a.gpkg", shapes, "EPSG:4326"))
    assert found.marked.tolist() == marked("b")
    assert "1 of 2 marks" in found.warnings[0]


def test_the_outline_of_a_house_does_not_mark_its_neighbours(tmp_path: Path) -> None:
    found = marks_of_layer(HOUSES, write_marks(tmp_path / "a.gpkg", [ROW[1]]))
    assert found.marked.tolist() == marked("b")


def test_a_scribble_inside_and_a_circle_around_mark_houses(tmp_path: Path) -> None:
    inside, around = shapely.box(2, 2, 4, 4), shapely.Point(105, 5).buffer(40)
    found = marks_of_layer(HOUSES, write_marks(tmp_path / "a.gpkg", [inside, around]))
    assert found.marked.tolist() == marked("a 17")
    assert found.warnings == ()


def test_marks_elsewhere_are_refused(tmp_path: Path) -> None:
    path = write_marks(tmp_path / "a.gpkg", [shapely.Point(5000, 5000)])
    with pytest.raises(DataError, match="None of the 1 marks"):
        marks_of_layer(HOUSES, path)


def test_values_of_a_column_mark(tmp_path: Path) -> None:
    assert marks_of_column(HOUSES, "damage=major,destroyed").marked.tolist() == marked("b 17")
    with pytest.raises(DataError, match="holds"):
        marks_of_column(HOUSES, "damage=total")
    with pytest.raises(ConfigError, match="no column 'x'"):
        marks_of_column(HOUSES, "x=1")
    with pytest.raises(ConfigError, match="COLUMN=VALUE"):
        marks_of_column(HOUSES, "damage")


def test_truth_is_read_in_words_and_numbers(tmp_path: Path) -> None:
    path = tmp_path / "truth.csv"
    path.write_text("id,label\na,positive\nb,negative\n17,no_damage\n")
    assert read_truth(path) == {"a": 1, "b": 0, "17": 0}
    path.write_text("id,damaged\na,1\nb,0\n")
    assert read_truth(path) == {"a": 1, "b": 0}


@pytest.mark.parametrize("text", ["id,label\na,perhaps\n", "id,other\na,1\n",
    "id,label\na,1\na,0\n"])  # fmt: skip
def test_unclear_truth_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "truth.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=r"truth\.csv"):
        read_truth(path)


def test_labels_that_a_map_does_not_train_on_give_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "review.csv"
    path.write_text("id,label\na,positive\nb,negative\nc,unlabelled\n")
    marks = marks_of_ids(HOUSES, path)
    assert marks.marked.tolist() == marked("a")
    assert "2 buildings" in marks.warnings[0]
    assert "count as not marked" in marks.warnings[0]


def test_a_layer_of_marks_is_chosen_by_its_own_flag(tmp_path: Path) -> None:
    path = tmp_path / "town.gpkg"
    for number, name in enumerate(("marks", "roads")):
        place = shapely.to_wkb(shapely.transform(ROW[number : number + 1], lambda p: p + CORNER))
        write(path, geometry=place, field_data=[], fields=[], geometry_type="Polygon",
              crs="EPSG:32615", layer=name, append=path.exists())  # fmt: skip
    with pytest.raises(ConfigError, match="Choose one with --positives-layer"):
        marks_of_layer(HOUSES, path)
    assert marks_of_layer(HOUSES, path, layer_name="marks").marked.tolist() == marked("a")
