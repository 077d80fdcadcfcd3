import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onesided.core.errors import ConfigError, DataError
from onesided.geo.input.footprints import check_different, id_text, read_footprints
from tests.geo.input.test_vector import feature, write_features, write_squares


def write_ids(path: Path, ids: list[Any], column: str = "id") -> Path:
    features = [feature(row, 0, **{column: value}) for row, value in enumerate(ids)]
    return write_features(path, features)


@pytest.mark.parametrize("value", [17, 17.0, "17", " 17 ", "17.0", np.int64(17), np.float64(17)])
def test_one_building_has_one_id_whatever_file_it_is_from(value: object) -> None:
    assert id_text(value) == "17"


def test_ids_that_only_look_like_numbers_stay_as_they_are() -> None:
    assert [id_text(text) for text in ("007", "1.5", "a.0", "1.2.3")] == [
        *("007", "1.5", "a.0", "1.2.3")
    ]


def test_the_usual_column_is_taken_and_another_one_on_request(tmp_path: Path) -> None:
    rows = [feature(0, 0, UID="a", key=1), feature(1, 0, UID="b", key=2)]
    path = write_features(tmp_path / "a.geojson", rows)
    assert read_footprints(path).names == ("a", "b")
    assert read_footprints(path, id_column="key").names == ("1", "2")
    with pytest.raises(ConfigError, match="Did you mean 'key'"):
        read_footprints(path, id_column="keys")


def test_without_a_column_the_key_of_the_format_is_the_id(tmp_path: Path) -> None:
    rows = [{**feature(0, 0), "id": "x"}, {**feature(1, 0), "id": "y"}]
    assert read_footprints(write_features(tmp_path / "a.geojson", rows)).names == ("x", "y")
    assert read_footprints(write_squares(tmp_path / "a.gpkg", "a")).names == ("1", "2")


def test_an_id_of_two_buildings_is_refused(tmp_path: Path) -> None:
    path = write_ids(tmp_path / "a.geojson", [7, 8, 7.0])
    with pytest.raises(DataError, match="'7' occurs 2 times"):
        read_footprints(path)


def test_buildings_without_an_id_are_refused_where_the_column_was_named(tmp_path: Path) -> None:
    path = write_ids(tmp_path / "a.geojson", ["a", None])
    with pytest.raises(DataError, match="1 of 2 buildings"):
        read_footprints(path, id_column="id")


def test_gaps_of_a_column_that_was_not_named_are_filled_with_a_warning(tmp_path: Path) -> None:
    buildings = read_footprints(write_ids(tmp_path / "a.geojson", ["7", None, "1"]))
    # Not ("1", "2", "3"): a table that lists 1 means the third building.
    assert buildings.names == ("7", "feature 2", "1")
    assert "'id'" in buildings.warnings[0]
    assert "1 of 3 buildings" in buildings.warnings[0]


def test_a_column_that_names_nothing_is_passed_over(tmp_path: Path) -> None:
    buildings = read_footprints(write_ids(tmp_path / "a.geojson", [None, None]))
    assert buildings.names == ("1", "2")
    assert not buildings.warnings


def test_a_column_of_gaps_and_duplicates_is_refused_and_not_numbered(tmp_path: Path) -> None:
    # Counted, a table that lists 1 would mark the first building, which is called 3.
    with pytest.raises(DataError, match=r"The id '3' occurs 2 times .* --id-column"):
        read_footprints(write_ids(tmp_path / "a.geojson", ["3", "3", None, "1"]))


def test_footprints_without_a_system_are_refused_with_the_flag_to_name_it(tmp_path: Path) -> None:
    shapes = {"type": "Point", "coordinates": [500000, 1600000]}
    content = {"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": shapes}]}
    path = tmp_path / "a.geojson"
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match="--footprints-crs"):
        read_footprints(path)
    assert read_footprints(path, given_system="EPSG:32615").system.to_epsg() == 32615


def test_collections_that_clipping_leaves_keep_their_polygons(tmp_path: Path) -> None:
    house = {"type": "Polygon", "coordinates": [[[0, 0], [0, 1], [1, 1], [0, 0]]]}
    line = {"type": "LineString", "coordinates": [[0, 0], [2, 2]]}
    clipped = {"type": "GeometryCollection", "geometries": [house, line]}
    features = [
        {"type": "Feature", "properties": {"id": number}, "geometry": shape}
        for number, shape in enumerate((house, clipped))
    ]
    path = tmp_path / "clipped.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    found = read_footprints(path)
    assert [shape.geom_type for shape in found.geometries] == ["Polygon", "Polygon"]
    assert found.warnings[0].startswith("1 of 2 footprints in ")


def test_half_a_character_in_an_id_is_refused_when_it_is_read(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"id of building 2 in town holds half a character \(\\ud800"
    ):
        check_different(["a", "\ud800"], "town")
    check_different(["a", "\udcff"], "town")  # a byte of a file name, which can be written
