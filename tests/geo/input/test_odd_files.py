"""Vector files and images as other programs leave them: used, or refused before training."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onesided.core.errors import DataError
from onesided.geo.input.footprints import read_footprints
from onesided.geo.input.image import open_image
from onesided.geo.input.vector import read_layer
from onesided.geo.output.layers import write_geojson
from onesided.geo.output.table import MapTable
from tests.geo.rasters import noise, write_tiff

SQUARE = {"type": "Polygon", "coordinates": [[[13, 52], [13.1, 52], [13.1, 52.1], [13, 52]]]}


def collection(*shapes: object, properties: object = None, **more: object) -> dict[str, Any]:
    features = [
        {"type": "Feature", "geometry": shape, "properties": properties} for shape in shapes
    ]
    return {"type": "FeatureCollection", "features": features, **more}


def written(folder: Path, content: object) -> Path:
    path = folder / "places.geojson"
    path.write_text(json.dumps(content))
    return path


def test_an_empty_geometry_has_no_place_and_can_be_written(tmp_path: Path) -> None:
    empty = {"type": "GeometryCollection", "geometries": []}
    path = written(tmp_path, collection(SQUARE, empty, {"type": "Polygon", "coordinates": []}))
    buildings = read_footprints(path)
    assert [shape is None for shape in buildings.geometries] == [False, True, True]
    none = np.zeros(3, bool)
    table = MapTable(buildings, np.array([0.5, 0.4, 0.3]), none, ~none, {}, 0.5)
    write_geojson(table, tmp_path / "map.geojson")
    features = json.loads((tmp_path / "map.geojson").read_text())["features"]
    assert [feature["geometry"] is None for feature in features] == [False, True, True]


@pytest.mark.parametrize("properties", [["EPSG:4326"], 3, "EPSG:4326", None])
def test_a_system_that_is_not_named_as_agreed_counts_as_unnamed(
    properties: object, tmp_path: Path
) -> None:
    crs = {"type": "name", "properties": properties}
    assert read_layer(written(tmp_path, collection(SQUARE, crs=crs))).system is None


def test_a_number_that_no_float_holds_stays_what_it_is(tmp_path: Path) -> None:
    path = written(tmp_path, {"type": "FeatureCollection", "features": [
        {"type": "Feature", "geometry": SQUARE, "properties": {"height": height}}
        for height in (2.5, 10**400)
    ]})  # fmt: skip
    assert read_layer(path).column("height").tolist() == [2.5, 10**400]


def test_infinity_inside_a_list_is_written_as_a_gap(tmp_path: Path) -> None:
    text = json.dumps(collection(SQUARE, properties={"tags": ["HERE"]})).replace('"HERE"', "1e999")
    (tmp_path / "places.geojson").write_text(text)
    buildings = read_footprints(tmp_path / "places.geojson")
    one = np.ones(1, bool)
    write_geojson(MapTable(buildings, np.array([0.5]), one, ~one, {}, 0.5), tmp_path / "m.geojson")
    (feature,) = json.loads((tmp_path / "m.geojson").read_text())["features"]
    assert feature["properties"]["tags"] == [None]


@pytest.mark.parametrize(
    "transform", [(1, 0, 500_000, 0, -1, 3_300_000), (1e300, 0, 0, 0, -1, 0), (1, 0, 0, 0, -1, 1e9)]
)
def test_an_image_that_lies_nowhere_is_refused(
    transform: tuple[float, ...], tmp_path: Path
) -> None:
    path = write_tiff(tmp_path / "scene.tif", noise(1), crs="EPSG:4326", transform=transform)
    with pytest.raises(DataError, match="lies nowhere on Earth"), open_image(path):
        pass
