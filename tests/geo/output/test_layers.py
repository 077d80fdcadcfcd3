import json
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import shapely  # type: ignore[import-untyped, unused-ignore]
from pyogrio.raw import read  # type: ignore[import-untyped, unused-ignore]
from pyproj import Transformer

from onesided.core.errors import OnesidedError
from onesided.geo.input.footprints import Buildings, read_footprints
from onesided.geo.input.vector import read_layer
from onesided.geo.output.colours import NO_SCORE, SCORE_COLOURS
from onesided.geo.output.layers import style_text, write_geojson, write_geopackage
from tests.geo.fakes import write_geotiff_scene
from tests.geo.maps import houses, table


def test_every_building_is_in_both_files_once_with_the_same_values(tmp_path: Path) -> None:
    drawn = table(houses(20))
    write_geojson(drawn, tmp_path / "a.geojson")
    write_geopackage(drawn, tmp_path / "a.gpkg")
    for path in (tmp_path / "a.geojson", tmp_path / "a.gpkg"):
        layer = read_layer(path)
        assert layer.columns["id"].tolist() == list(drawn.buildings.names)
        np.testing.assert_array_equal(np.isnan(layer.columns["score"]), ~drawn.scored)
        np.testing.assert_allclose(layer.columns["score"][:-1], drawn.scores[:-1])
        assert layer.columns["role"].tolist() == drawn.roles
        assert layer.columns["decision"].tolist() == drawn.decisions
        assert layer.columns["reason"].tolist() == [None] * 19 + ["far away"]
        assert layer.columns["street"].tolist() == drawn.buildings.columns["street"].tolist()
        np.testing.assert_allclose(layer.columns["height"], np.arange(20) / 2)


def test_a_geopackage_keeps_coordinates_and_system_to_the_bit(tmp_path: Path) -> None:
    drawn = table(houses(9))
    write_geopackage(drawn, tmp_path / "a.gpkg")
    layer = read_layer(tmp_path / "a.gpkg")
    assert layer.system is not None
    assert layer.system.to_epsg() == 32615
    for found, own in zip(layer.geometries, drawn.buildings.geometries, strict=True):
        np.testing.assert_array_equal(
            shapely.get_coordinates(found.normalize()), shapely.get_coordinates(own.normalize())
        )


@pytest.mark.parametrize("crs", ["EPSG:4326", "EPSG:32616", "EPSG:3857"])
def test_coordinates_lead_back_to_the_pixels_that_were_drawn(tmp_path: Path, crs: str) -> None:
    """Through the systems both ways: drawn in UTM 15, footprints in `crs`, written in degrees."""
    scene = write_geotiff_scene(
        tmp_path, seed=4, size=256, buildings=16, crs_footprints=crs, marked=2
    )
    buildings = read_footprints(scene.gpkg)
    write_geojson(table(buildings), tmp_path / "damage.geojson")
    step, _, west, _, _, north = scene.transform
    to_image = Transformer.from_crs("EPSG:4326", "EPSG:32615", always_xy=True)
    features = json.loads((tmp_path / "damage.geojson").read_text())["features"]
    for feature, drawn in zip(features, scene.buildings, strict=True):
        assert feature["id"] == drawn.name
        x, y = to_image.transform(*np.array(feature["geometry"]["coordinates"][0]).T)
        pixels = np.column_stack([(x - west) / step, (north - y) / step])
        expected = shapely.Polygon(drawn.outline.ring)
        assert shapely.hausdorff_distance(shapely.Polygon(pixels), expected) < 0.1


def test_geojson_is_as_its_standard_wants_it(tmp_path: Path) -> None:
    hole = shapely.Polygon([(0, 0), (0, 4), (4, 4), (4, 0)], [[(1, 1), (2, 1), (2, 2), (1, 2)]])
    buildings = Buildings(("a", "b"), np.array([hole, None], object), houses(1).system, {})
    drawn = table(buildings, marked=1)
    write_geojson(drawn, tmp_path / "a.geojson")
    content = json.loads((tmp_path / "a.geojson").read_text())
    assert "crs" not in content
    outer, inner = content["features"][0]["geometry"]["coordinates"]
    assert shapely.LinearRing(outer).is_ccw
    assert not shapely.LinearRing(inner).is_ccw
    assert content["features"][1]["geometry"] is None
    assert content["features"][1]["properties"]["score"] is None
    assert isinstance(content["features"][0]["id"], str)


def test_ranks_are_whole_numbers(tmp_path: Path) -> None:
    write_geojson(table(houses(9)), tmp_path / "a.geojson")
    features = json.loads((tmp_path / "a.geojson").read_text())["features"]
    ranks = [feature["properties"]["rank"] for feature in features]
    assert ranks[:4] == [None] * 4
    assert sorted(ranks[4:8]) == [1, 2, 3, 4]
    assert all(isinstance(rank, int) for rank in ranks[4:8])


def test_qgis_finds_the_style_inside_the_geopackage(tmp_path: Path) -> None:
    write_geopackage(table(houses(9)), tmp_path / "damage.gpkg")
    with closing(sqlite3.connect(tmp_path / "damage.gpkg")) as database:
        rows = database.execute(
            "SELECT f_table_name, f_geometry_column, useAsDefault, styleQML FROM layer_styles"
        ).fetchall()
        listed = database.execute("SELECT table_name, data_type FROM gpkg_contents").fetchall()
    assert rows[0][:3] == ("damage", "geom", 1)
    assert "graduatedSymbol" in rows[0][3]
    assert set(listed) == {("damage", "features"), ("layer_styles", "attributes")}
    assert read(tmp_path / "damage.gpkg", layer="damage")[0]["geometry_type"] == "MultiPolygon"


def test_writing_again_replaces_the_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    for seed in (0, 1):
        write_geopackage(table(houses(9), seed=seed), tmp_path / "a.gpkg")
    assert [path.name for path in tmp_path.iterdir()] == ["a.gpkg"]
    found = read_layer(tmp_path / "a.gpkg", layer="a").columns["score"]
    np.testing.assert_allclose(found[:-1], table(houses(9), seed=1).scores[:-1])


def test_without_gdal_geojson_is_written_and_a_geopackage_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [name for name in sys.modules if name.partition(".")[0] == "pyogrio"]:
        monkeypatch.setitem(sys.modules, module, None)
    write_geojson(table(houses(5)), tmp_path / "a.geojson")
    with pytest.raises(OnesidedError, match=r"pip install 'onesided\[geo\]'"):
        write_geopackage(table(houses(5)), tmp_path / "a.gpkg")


def test_a_geopackage_holds_columns_and_names_that_no_database_would(tmp_path: Path) -> None:
    buildings = houses(8)
    odd = {"fixme": np.arange(8), "FIXME": np.full(8, "scan-\udcff.png", object)}
    write_geopackage(table(replace(buildings, columns=odd)), tmp_path / "a.gpkg")
    columns = read_layer(tmp_path / "a.gpkg").columns
    assert columns["fixme"].tolist() == list(range(8))
    assert columns["original_FIXME"][0] == "scan-\\udcff.png"


@pytest.mark.parametrize(("is_point", "kind"), [(True, "marker"), (False, "fill")])
def test_every_score_has_a_colour_and_no_score_has_one_too(is_point: bool, kind: str) -> None:
    page = ElementTree.fromstring(style_text(is_point=is_point))
    renderer = page.find("renderer-v2")
    assert renderer is not None
    assert renderer.get("attr") == 'coalesce("score", -1)'
    ranges = [
        (float(part.attrib["lower"]), float(part.attrib["upper"]), part.attrib["symbol"])
        for part in renderer.iter("range")
    ]
    for score in (-1, 0, 0.2, 0.5, 0.999, 1):
        assert any(low <= score <= high for low, high, _ in ranges), score
    symbols = {part.attrib["name"]: part.attrib["type"] for part in renderer.iter("symbol")}
    assert {symbol for _, _, symbol in ranges} == set(symbols)
    assert set(symbols.values()) == {kind}


def test_qgis_shows_the_colours_of_the_page() -> None:
    page = ElementTree.fromstring(style_text(is_point=False))
    shown = [
        tuple(map(int, option.attrib["value"].split(",")[:3]))
        for option in page.iter("Option")
        if option.get("name") == "color"
    ]
    assert shown == [NO_SCORE, *SCORE_COLOURS]


def test_colours_differ_for_people_who_see_few_of_them() -> None:
    """By brightness alone, every step is lighter than the one before it."""
    weights = np.array([0.2126, 0.7152, 0.0722])
    linear = (np.array(SCORE_COLOURS) / 255) ** 2.2
    assert (np.diff((linear @ weights) ** (1 / 2.2)) > 0.03).all()
