"""`onesided map` with footprints, points and marks that cannot be."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.bad_input.refusals import assert_refused_untouched, each
from tests.cli.command import assert_refused, call
from tests.cli.pictures import draw
from tests.geo.fakes import FakeScene, write_geotiff_scene
from tests.geo.rasters import write_tiff

Content = str | bytes


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> FakeScene:
    """Some buildings; no test changes its files."""
    return write_geotiff_scene(tmp_path_factory.mktemp("scene"), seed=1, size=384, buildings=36)


def put(path: Path, content: Content) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refused(folder: Path, *words: object, said: str = "") -> None:
    """Draw a map, which must be refused."""
    assert_refused_untouched(folder, "map", *words, "-o", folder / "damage.geojson", said=said)


def features(*geometries: object) -> str:
    rows = [
        {"type": "Feature", "properties": {"id": number}, "geometry": geometry}
        for number, geometry in enumerate(geometries)
    ]
    return json.dumps({"type": "FeatureCollection", "features": rows})


def polygon(*ring: list[object]) -> dict[str, object]:
    return {"type": "Polygon", "coordinates": [list(ring)]}


FOOTPRINTS: dict[str, Content] = {
    "empty": "",
    "no JSON": "{",
    "a list": "[]",
    "a single feature": '{"type": "Feature", "geometry": null}',
    "not UTF-8": b'{"features": "\xff"}',
    "zero bytes": bytes(100),
    "nested without end": "[" * 100_000,
    "features that are numbers": '{"features": [1, 2]}',
    "properties that are a list": '{"features": [{"properties": [1], "geometry": null}]}',
    "no geometries": features(None, None),
    "geometries that are numbers": features(5, 6),
    "an unknown geometry": features({"type": "Blob", "coordinates": []}),
    "coordinates that are words": features(polygon(["a", "b"], ["c", "d"], ["a", "b"])),
    "two corners": features(polygon([0, 0], [1, 1])),
    "corners without end": features(polygon([0, 0], [1e400, 0], [1, 1], [0, 0])),
    "metres without a system": features(polygon([5e5, 5e6], [5e5, 6e6], [6e5, 6e6], [5e5, 5e6])),
    "another place": features(polygon([0, 0], [0, 1], [1, 1], [0, 0])),
}


@each(FOOTPRINTS)
def test_footprints_that_cannot_be_are_refused(
    scene: FakeScene, tmp_path: Path, case: Content
) -> None:
    path = put(tmp_path / "buildings.geojson", case)
    refused(tmp_path, "--image", scene.post, "--footprints", path, "--positives", scene.positives)


@each({"text": "buildings", "empty": "", "half a database": b"SQLite format 3\0" + bytes(50)})
@pytest.mark.parametrize("ending", ["gpkg", "shp", "fgb"])
def test_files_of_other_formats_that_cannot_be_are_refused(
    scene: FakeScene, tmp_path: Path, ending: str, case: Content
) -> None:
    path = put(tmp_path / f"buildings.{ending}", case)
    refused(tmp_path, "--image", scene.post, "--footprints", path, "--positives", scene.positives)


@each({"empty": "", "text": "a map", "only a heading": b"II*\0\x08\0\0\0", "zeros": bytes(5000)})
@pytest.mark.parametrize("ending", ["tif", "png"])
def test_images_that_cannot_be_are_refused(
    scene: FakeScene, tmp_path: Path, ending: str, case: Content
) -> None:
    image = put(tmp_path / f"post.{ending}", case)
    flags = ("--footprints", scene.gpkg, "--positives", scene.positives)
    refused(tmp_path, "--image", image, *flags)


MARKS: dict[str, Content] = {
    "empty": "",
    "only a heading": "id\n",
    "other ids": "id\nx\n",
    "not UTF-8": b"id\n\xff\n",
    "zero bytes": bytes(40),
    "unknown labels": "id,label\nb00000,perhaps\n",
    "a cell without end": "id\n" + '"' + "x" * 200_000,
}


@each(MARKS)
@pytest.mark.parametrize("flag", ["--positives", "--test"])
def test_marks_that_cannot_be_are_refused(
    scene: FakeScene, tmp_path: Path, flag: str, case: Content
) -> None:
    path = put(tmp_path / "ids.csv", case)
    others = () if flag == "--positives" else ("--positives", scene.positives)
    flags = ("--image", scene.post, "--footprints", scene.gpkg, *others)
    refused(tmp_path, *flags, flag, path)


def test_marks_of_negatives_alone_are_refused(scene: FakeScene, tmp_path: Path) -> None:
    path = put(tmp_path / "ids.csv", "id,label\nb00000,negative\n")
    flags = ("--image", scene.post, "--footprints", scene.gpkg)
    refused(tmp_path, *flags, "--positives", path, said="ids.csv")


@each({"of a town": (), "of a region": ("--region",)})
def test_few_answers_are_refused_with_the_way_to_add_them(
    scene: FakeScene, tmp_path: Path, case: tuple[str, ...]
) -> None:
    path = put(tmp_path / "review.csv", "id,answer,reviewer,time\nb00000,positive,,\n")
    flags = ("--image", scene.post, "--footprints", scene.gpkg, "--positives", path, *case)
    words = ("map", *flags, "-o", tmp_path / "out" / "damage.gpkg")
    assert_refused(call(*words), "onesided review RUN --import review.csv", "--apply")
    assert not list(tmp_path.rglob("model.*"))


@each({rule: rule for rule in ("", "x", "=", "damage=", "=1", "no_such_column=1", "id=nobody")})
def test_columns_that_mark_nobody_are_refused(scene: FakeScene, tmp_path: Path, case: str) -> None:
    flags = ("--image", scene.post, "--footprints", scene.gpkg)
    refused(tmp_path, *flags, f"--positives-column={case}")


@each({crs: crs for crs in ("", "x", "EPSG", "EPSG:", "EPSG:0", "EPSG:99999999", "mars")})
def test_systems_that_do_not_exist_are_refused(scene: FakeScene, tmp_path: Path, case: str) -> None:
    flags = ("--image", scene.post, "--footprints", scene.gpkg, "--positives", scene.positives)
    refused(tmp_path, *flags, f"--footprints-crs={case}")


FLAGS: dict[str, tuple[str, ...]] = {
    "a shift of words": ("--shift", "east,north"),
    "a shift of one number": ("--shift", "3"),
    "a shift beyond all bounds": ("--shift", "1e9,0"),
    "a part of nothing": ("--part", "1/0"),
    "a part beyond the last": ("--part", "9/8"),
    "a part without a model": ("--part", "1/8"),
    "a format nobody writes": ("--formats", "shp"),
    "cells without a side": ("--cells", "0"),
    "cells of NaN": ("--cells", "nan"),
    "areas that are missing": ("--areas", "no-such-file.gpkg"),
    "an argument that is no verb": ("megre",),
    "nothing to merge": ("merge",),
    "a folder that is no part": ("merge", "no-such-folder"),
}


@each(FLAGS)
def test_flags_that_cannot_be_are_refused(
    scene: FakeScene, tmp_path: Path, case: tuple[str, ...]
) -> None:
    flags = ("--image", scene.post, "--footprints", scene.gpkg, "--positives", scene.positives)
    refused(tmp_path, *flags, *case)


AREAS: dict[str, Content] = {
    "text": "areas",
    "points": features({"type": "Point", "coordinates": [0, 0]}),
    "no geometries": features(None),
    "another place": features(polygon([0, 0], [0, 1], [1, 1], [0, 0])),
}


@each(AREAS)
def test_areas_that_cannot_be_are_refused_before_training(
    scene: FakeScene, tmp_path: Path, case: Content
) -> None:
    path = put(tmp_path / "areas.geojson", case)
    flags = ("--image", scene.post, "--footprints", scene.gpkg, "--positives", scene.positives)
    words = ("map", *flags, "--areas", path, "-o", tmp_path / "out" / "damage.gpkg")
    assert_refused(call(*words), "areas.geojson")
    assert not list(tmp_path.rglob("model.*"))
    assert not (tmp_path / "out" / "damage.gpkg").exists()


PLACES: dict[str, tuple[str, tuple[str, ...]]] = {
    "a folder for the file": ("damage.gpkg/", ()),
    "a folder for the page": ("map.html/", ()),
    "a folder for the summary": ("summary.csv/", ()),
    "a folder for the style": ("damage.qml/", ()),
    "a file for the images": ("map-files", ()),
    "a folder for the file of a region": ("damage.gpkg/", ("--region",)),
    "a folder for a further format": ("damage.parquet/", ("--formats", "parquet")),
    "a folder for the cells": ("cells.csv/", ("--cells", "100")),
    "a file for the images of a region": ("map-files", ("--region",)),
}


@each(PLACES)
def test_places_that_are_taken_are_refused(
    scene: FakeScene, tmp_path: Path, case: tuple[str, tuple[str, ...]]
) -> None:
    name, further = case
    taken = tmp_path / name
    taken.mkdir() if name.endswith("/") else taken.write_text("mine")
    flags = ("--image", scene.post, "--footprints", scene.gpkg, "--positives", scene.positives)
    output = ("-o", tmp_path / "damage.gpkg")
    assert_refused_untouched(tmp_path, "map", *flags, *further, *output, said=taken.name)


IMAGES: dict[str, Callable[[Path], object]] = {
    "an empty folder": lambda path: path.mkdir(),
    "an archive that is none": lambda path: put(path.with_suffix(".zip"), "PK"),
    "STAC without items": lambda path: put(path.with_suffix(".json"), '{"features": []}'),
    "STAC without images": lambda path: put(path.with_suffix(".json"), '{"assets": {}}'),
    "STAC of missing files": lambda path: put(
        path.with_suffix(".json"), '{"assets": {"visual": {"href": "gone.tif"}}}'
    ),
    "a VRT of missing files": lambda path: put(path.with_suffix(".vrt"), "<VRTDataset/>"),
    "a server that is not there": lambda path: None,
}


@each(IMAGES)
def test_imagery_that_cannot_be_is_refused(
    scene: FakeScene, tmp_path: Path, case: Callable[[Path], object]
) -> None:
    case(tmp_path / "images")
    found = next(iter(tmp_path.iterdir()), "http://127.0.0.1:9/post.tif")
    refused(tmp_path, "--image", found, "--footprints", scene.gpkg, "--positives", scene.positives)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of Unix")
@pytest.mark.parametrize("flag", ["--image", "--footprints", "--positives", "--areas"])
def test_a_pipe_that_nobody_writes_to_is_refused_at_once(
    scene: FakeScene, tmp_path: Path, flag: str
) -> None:
    pipe = tmp_path / "pipe.gpkg"
    os.mkfifo(pipe)
    given = {"--image": scene.post, "--footprints": scene.gpkg, "--positives": scene.positives}
    words = [word for pair in {**given, flag: pipe}.items() for word in pair]
    refused(tmp_path, *words, said="pipe.gpkg")


RASTERS: dict[str, dict[str, object]] = {
    "complex numbers": {"pixels": np.ones((1, 64, 64), np.complex64)},
    "a single pixel": {"pixels": np.ones((3, 1, 1), np.uint8)},
    "no place on Earth": {
        "pixels": np.ones((3, 64, 64), np.uint8),
        "transform": (0.0, 0.0, 5e5, 0.0, 0.0, 1.6e6),
    },
    "another place": {
        "pixels": np.ones((3, 64, 64), np.uint8),
        "transform": (0.5, 0.0, 1e5, 0.0, -0.5, 1e5),
    },
}


@each(RASTERS)
def test_rasters_that_show_no_building_are_refused(
    scene: FakeScene, tmp_path: Path, case: dict[str, Any]
) -> None:
    image = write_tiff(tmp_path / "post.tif", **{"transform": scene.transform, **case})
    flags = ("--footprints", scene.gpkg, "--positives", scene.positives)
    refused(tmp_path, "--image", image, *flags, said="post.tif")


@each({"text": "buildings", "empty": "", "half of it": b"PAR1" + bytes(50)})
def test_parquet_that_cannot_be_is_refused(scene: FakeScene, tmp_path: Path, case: Content) -> None:
    path = put(tmp_path / "buildings.parquet", case)
    refused(tmp_path, "--image", scene.post, "--footprints", path, "--positives", scene.positives)


def test_parquet_without_geometries_is_refused(scene: FakeScene, tmp_path: Path) -> None:
    import pyarrow as arrow
    from pyarrow import parquet

    path = tmp_path / "buildings.parquet"
    parquet.write_table(arrow.table({"id": [1, 2]}), path)
    flags = ("--image", scene.post, "--positives", scene.positives)
    refused(tmp_path, *flags, "--footprints", path, said="not GeoParquet")


POINTS: dict[str, Callable[[Path], object]] = {
    "an empty folder": lambda folder: folder.mkdir(),
    "names that are no places": lambda folder: draw(folder / "house.png", 1),
    "places beyond the earth": lambda folder: draw(folder / "200.0_95.0.png", 1),
    "crops that are none": lambda folder: (
        draw(folder / "1.0_2.0.png", 1),
        put(folder / "1.0_2.0.png", "no image"),
    ),
    "an empty table": lambda folder: put(folder, ""),
    "a table of other columns": lambda folder: put(folder, "a,b\n1,2\n"),
    "a table that is not UTF-8": lambda folder: put(folder, b"lon,lat,path\n1,2,\xff.png\n"),
    "words for degrees": lambda folder: put(folder, "lon,lat,path\neast,2,a.png\n"),
    "NaN for degrees": lambda folder: put(folder, "lon,lat,path\nnan,2,a.png\n"),
    "degrees beyond the earth": lambda folder: put(folder, "lon,lat,path\n1,95,a.png\n"),
    "files that are missing": lambda folder: put(folder, "lon,lat,path\n1,2,a.png\n"),
    "no file at all": lambda folder: put(folder, "lon,lat,path\n1,2,\n"),
    "only a heading": lambda folder: put(folder, "lon,lat,path\n"),
}


@each(POINTS)
def test_points_that_cannot_be_are_refused(tmp_path: Path, case: Callable[[Path], object]) -> None:
    case(tmp_path / "points.csv")
    put(tmp_path / "ids.csv", "id\nx\n")
    refused(tmp_path, "--points", tmp_path / "points.csv", "--positives", tmp_path / "ids.csv")
