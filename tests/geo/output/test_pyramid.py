"""The image under the map by tiles, against the pixels that were drawn."""

import base64
import io
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from onesided.core.errors import ConfigError
from onesided.geo.input.coordinates import WGS84, converted, system
from onesided.geo.input.footprints import read_footprints
from onesided.geo.output.basemap import basemap_of
from onesided.geo.output.page import MapPage, render, write_map
from onesided.geo.output.page_content import map_page, page_files
from onesided.geo.output.page_files import PageFiles
from onesided.geo.output.pyramid import TILE, Pyramid, Tile, mercator, plan_pyramid
from onesided.geo.output.summary import summarise
from onesided.geo.scene.footprint_scene import FootprintScene, open_scene
from tests.geo.fake_town import page_of, town
from tests.geo.fakes import FakeScene, write_geotiff_scene
from tests.geo.maps import chips, houses, table

SIDE = 1100


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> FakeScene:
    folder = tmp_path_factory.mktemp("scene")
    return write_geotiff_scene(folder, seed=6, size=SIDE, buildings=40, damaged_share=0)


@pytest.fixture(scope="module")
def opened(scene: FakeScene) -> Iterator[FootprintScene]:
    with ExitStack() as stack:
        yield open_scene(stack, read_footprints(scene.gpkg), [scene.pre, scene.post])


def degrees(opened: FootprintScene) -> np.ndarray:
    import shapely  # type: ignore[import-untyped, unused-ignore]

    buildings = opened.buildings
    shapes = converted(buildings.geometries, buildings.system, system(WGS84))
    boxes: np.ndarray = shapely.bounds(shapes)
    return boxes


def planned(opened: FootprintScene, most_bytes: float = 1e9) -> Pyramid:
    pyramid = plan_pyramid(opened.images[-1], degrees(opened), most_bytes=most_bytes)
    assert pyramid is not None
    return pyramid


def place(pyramid: Pyramid, longitude: float, latitude: float) -> tuple[float, float]:
    """Return the pixel of the last level that shows a place."""
    west, south, east, north = pyramid.bounds
    x = (longitude - west) / (east - west) * pyramid.width
    y = (mercator(north) - mercator(latitude)) / (mercator(north) - mercator(south))
    return x, y * pyramid.height


def test_every_roof_is_where_it_was_drawn_at_the_image_s_own_resolution(
    opened: FootprintScene, scene: FakeScene
) -> None:
    pyramid = planned(opened)
    assert pyramid.is_sharp
    assert abs(pyramid.width / SIDE - 1) < 0.06, "rotated by a degree at most"
    image = opened.images[-1].image.read(0, 0, SIDE, SIDE).values
    for building in scene.buildings:
        x, y = place(pyramid, building.lon, building.lat)
        tile = Tile(pyramid.levels - 1, int(x) // TILE, int(y) // TILE)
        shown = pyramid.picture(tile)[:, int(y) % TILE, int(x) % TILE].astype(int)
        column, row = (int(number) for number in building.outline.centre)
        near = image[:, row - 1 : row + 2, column - 1 : column + 2].reshape(3, -1).astype(int)
        assert (np.abs(near - shown[:, None]).max(axis=0) == 0).any(), building.name


def test_a_smaller_level_shows_the_same_place(opened: FootprintScene, scene: FakeScene) -> None:
    pyramid = planned(opened)
    small = pyramid.picture(Tile(0, 0, 0)).astype(int)
    assert max(small.shape[1:]) <= TILE
    shrink = 2 ** (pyramid.levels - 1)
    ground = np.median(small.reshape(3, -1), axis=1)
    for building in scene.buildings:
        x, y = place(pyramid, building.lon, building.lat)
        roof = small[:, int(y / shrink), int(x / shrink)]
        assert np.abs(roof - ground).max() > 40, building.name


def test_levels_are_left_out_where_room_is_short_and_the_page_says_so(
    opened: FootprintScene,
) -> None:
    whole = planned(opened)
    size = sum(len(whole.encoded(tile)) for tile in whole.tiles) * 4 / 3
    less = planned(opened, most_bytes=size / 3)
    assert 1 <= less.levels < whole.levels
    assert not less.is_sharp
    assert less.pixel_metres() > 1.9 * whole.pixel_metres()
    drawn = table(opened.buildings)
    page = map_page(
        drawn, chips(40), summarise(drawn), title="x", images=opened.images, most_megabytes=0.1
    )
    assert any("--page-megabytes" in warning for warning in page.warnings)


def test_far_from_buildings_no_fine_tile_is_written(opened: FootprintScene) -> None:
    some = degrees(opened)[:1]
    pyramid = plan_pyramid(opened.images[-1], np.repeat(some, 2, axis=0), most_bytes=1e9)
    assert pyramid is not None
    counts = [sum(tile.level == level for tile in pyramid.tiles) for level in range(pyramid.levels)]
    assert counts[0] == 1
    every = planned(opened)
    assert len(pyramid.tiles) <= len(every.tiles)


def page_with(opened: FootprintScene) -> MapPage:
    drawn = table(opened.buildings)
    return map_page(
        drawn, chips(40, 6), summarise(drawn), title="x", after_from=3, images=opened.images
    )


def test_files_lie_beside_the_page_and_hold_jpegs(opened: FootprintScene, tmp_path: Path) -> None:
    path = tmp_path / "map.html"
    write_map(page_with(opened), path)
    (folder,) = (tmp_path / "map-files").iterdir()
    data = json.loads(re.findall(r'id="data">(.*?)</script>', path.read_text(encoding="utf-8"))[0])
    assert data["files"]["folder"] == f"map-files/{folder.name}"
    assert set(data["files"]["layers"]) == {"before", "after"}
    for name, layer in data["files"]["layers"].items():
        for level, tiles in enumerate(layer["tiles"]):
            for tile in tiles:
                text = (folder / f"{name}-{level}-{tile}.js").read_text("ascii")
                found = re.fullmatch(r'onesidedFile\("([\w-]+)",\["([\w+/=]+)"\]\)\n', text)
                assert found is not None
                assert found[1] == f"{name}-{level}-{tile}"
                assert Image.open(io.BytesIO(base64.b64decode(found[2]))).format == "JPEG"


def test_a_new_page_takes_the_old_files_away_and_nothing_else(
    opened: FootprintScene, tmp_path: Path
) -> None:
    path = tmp_path / "map.html"
    (tmp_path / "map-files" / "mine").mkdir(parents=True)
    page = page_with(opened)
    write_map(page, path)
    write_map(page, path)
    assert len(list((tmp_path / "map-files").iterdir())) == 2
    write_map(page_of(town(5)), path)
    assert [each.name for each in (tmp_path / "map-files").iterdir()] == ["mine"]


def test_without_an_image_every_building_has_a_chip() -> None:
    drawn, seen = table(houses(300)), chips(300, 6)
    shapes = drawn.buildings.geometries
    files = page_files(drawn, seen, shapes, (), 3, 500.0)
    assert files.chips is not None
    assert files.chips.rows.tolist() == list(range(299)), "the last one was skipped"
    written = dict(files.scripts())
    assert list(written) == ["chips-0", "chips-1", "chips-2"]
    texts = re.findall(r'"([\w+/=]{60,})"', written["chips-1"].decode())
    assert len(texts) == 2 * 128
    row = 128 + 5
    after = np.asarray(Image.open(io.BytesIO(base64.b64decode(texts[2 * 5 + 1])))).astype(int)
    own = seen.values[row, 3:].transpose(1, 2, 0).astype(int)
    other = seen.values[row + 1, 3:].transpose(1, 2, 0).astype(int)
    assert np.abs(after - own).mean() < np.abs(after - other).mean() - 20


def test_where_room_is_short_the_highest_scores_have_chips() -> None:
    drawn, seen = table(houses(300)), chips(300)
    files = page_files(drawn, seen, drawn.buildings.geometries, (), 0, 0.05)
    assert files.chips is not None
    kept = files.chips.rows
    assert 0 < len(kept) < 200
    others = np.setdiff1d(np.arange(299), kept)
    assert drawn.scores[kept].min() >= drawn.scores[others].max()


def policy_of(page: bytes) -> str:
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page.decode())
    return unescape(policy)


def test_only_a_page_with_files_may_add_scripts_and_only_its_own() -> None:
    assert "strict-dynamic" not in policy_of(render(page_of(town(3))))
    policy = policy_of(render(page_of(town(3)), folder="map-files/x"))
    assert re.search(r"script-src 'sha256-[\w+/=]+' 'strict-dynamic';", policy)


def test_an_online_map_opens_the_policy_for_one_host_only() -> None:
    page = MapPage("x", town(3), 0.5, basemap=basemap_of("osm"), files=PageFiles())
    policy = policy_of(render(page))
    assert "img-src data: https://tile.openstreetmap.org;" in policy
    assert policy.count("https://") == 1


@pytest.mark.parametrize(
    "given",
    [
        "http://a.org/{z}/{x}/{y}.png",
        "https://a.org/{z}/{x}.png",
        "https://a.org; script-src *",
        "mapbox",
    ],
)
def test_an_address_that_is_no_tile_server_is_refused(given: str) -> None:
    with pytest.raises(ConfigError, match="--basemap takes osm or the address"):
        basemap_of(given)
