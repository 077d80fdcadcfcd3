"""The miniatures say of themselves what is in them."""

import csv
import json
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from tests.geo.fakes import write_geotiff_scene, write_xbd_event


@pytest.mark.parametrize("crs_footprints", ["EPSG:4326", "EPSG:3857", "EPSG:32615"])
def test_footprints_lie_on_the_buildings_to_a_hundredth_of_a_pixel(
    crs_footprints: str, tmp_path: Path
) -> None:
    from pyproj import Transformer

    scene = write_geotiff_scene(
        tmp_path, seed=0, size=128, buildings=9, crs_footprints=crs_footprints
    )
    back = Transformer.from_crs(crs_footprints, "EPSG:32615", always_xy=True)
    features = json.loads(scene.geojson.read_text())["features"]
    step, _, west, _, _, north = scene.transform
    for feature, building in zip(features, scene.buildings, strict=True):
        assert feature["properties"]["id"] == building.name
        ring = np.array([back.transform(x, y) for x, y in feature["geometry"]["coordinates"][0]])
        pixels = np.stack([(ring[:, 0] - west) / step, (north - ring[:, 1]) / step], axis=1)
        np.testing.assert_allclose(pixels, building.outline.ring, atol=0.01)


@pytest.mark.parametrize(
    ("bands", "dtype", "brightest"), [(1, "uint8", 255), (4, "uint16", 4080), (3, "float32", 1)]
)
def test_the_image_has_the_bands_and_numbers_asked_for(
    bands: int, dtype: Literal["uint8", "uint16", "float32"], brightest: float, tmp_path: Path
) -> None:
    import rasterio  # type: ignore[import-untyped, unused-ignore]

    scene = write_geotiff_scene(
        tmp_path,
        seed=0,
        size=128,
        buildings=9,
        bands=bands,
        dtype=dtype,
    )
    for path in (scene.pre, scene.post):
        with rasterio.open(path) as image:
            assert (image.count, image.dtypes[0]) == (bands, dtype)
            assert 0.6 * brightest < image.read().max() <= brightest


def test_marks_are_damaged_buildings_and_the_truth_names_every_building(tmp_path: Path) -> None:
    scene = write_geotiff_scene(tmp_path, seed=0, buildings=49, size=256, marked=12)
    with scene.truth.open() as file:
        truth = {line["id"]: line["damaged"] for line in csv.DictReader(file)}
    assert truth == {building.name: str(int(building.damaged)) for building in scene.buildings}
    with scene.positives.open() as file:
        marked = [line["id"] for line in csv.DictReader(file)]
    assert marked == list(scene.marked)
    assert len(marked) == 12
    assert {truth[name] for name in marked} == {"1"}


def test_the_same_seed_draws_the_same_event(tmp_path: Path) -> None:
    events = [
        write_xbd_event(tmp_path / str(seed), seed=seed % 2, tiles=1, buildings_per_tile=4, size=64)
        for seed in (0, 1, 2)
    ]
    assert events[0].buildings == events[2].buildings != events[1].buildings
    assert events[0].images[0].read_bytes() == events[2].images[0].read_bytes()
    assert events[0].labels[0].read_bytes() == events[2].labels[0].read_bytes()
