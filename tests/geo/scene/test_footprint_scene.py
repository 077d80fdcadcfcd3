from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import shapely  # type: ignore[import-untyped, unused-ignore]

from onesided.core.errors import ConfigError, DataError
from onesided.data.read.polygons import building_window, cut
from onesided.geo.input.coordinates import system
from onesided.geo.input.footprints import Buildings, read_footprints
from onesided.geo.input.image import Stretch
from onesided.geo.scene.footprint_scene import (
    FootprintScene,
    morton,
    open_scene,
    size_warnings,
)
from tests.geo.fakes import FakeScene, write_geotiff_scene
from tests.geo.rasters import NORTH, WEST, noise, write_tiff


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> FakeScene:
    return write_geotiff_scene(tmp_path_factory.mktemp("scene"), seed=3, size=600, buildings=49)


def houses(*boxes: tuple[float, float, float, float]) -> Buildings:
    """Return buildings given in pixels of an image of one metre per pixel."""
    shapes = [shapely.box(WEST + a, NORTH - d, WEST + c, NORTH - b) for a, b, c, d in boxes]
    names = tuple(str(number) for number in range(len(boxes)))
    return Buildings(names, np.array(shapes, object), system("EPSG:32615"), {})


def opened(stack: ExitStack, buildings: Buildings, *images: Path) -> FootprintScene:
    return open_scene(stack, buildings, images)


def test_outlines_land_on_the_pixels_they_were_drawn_on(fake: FakeScene) -> None:
    for file in (fake.geojson, fake.gpkg):
        with ExitStack() as stack:
            scene = opened(stack, read_footprints(file), fake.post)
            for outline, building in zip(scene.images[0].outlines, fake.buildings, strict=True):
                found = shapely.get_coordinates(outline)
                np.testing.assert_allclose(found, building.outline.ring, atol=1e-3)


def test_a_chip_is_what_the_whole_image_shows_there(fake: FakeScene) -> None:
    """Slowly: the image read whole, stretched, cut."""
    import rasterio  # type: ignore[import-untyped, unused-ignore]

    with rasterio.open(fake.post) as file:
        whole = file.read()
    with ExitStack() as stack:
        scene = opened(stack, read_footprints(fake.gpkg), fake.post)
        for row, chip in enumerate(scene.chips(range(49), 32)):
            window = building_window(scene.images[0].outlines[row])
            np.testing.assert_array_equal(chip, cut(whole, window, 32))


def test_every_row_comes_once_and_rows_of_one_block_come_together(fake: FakeScene) -> None:
    with ExitStack() as stack:
        scene = opened(stack, read_footprints(fake.gpkg), fake.post)
        order = scene.order()
    assert sorted(order) == list(range(49))
    middles = np.array([fake.buildings[row].outline.centre for row in order])
    blocks = [tuple(block) for block in (middles // 256).astype(int).tolist()]
    changes = sum(before != after for before, after in pairwise(blocks))
    assert changes == len(set(blocks)) - 1


def test_the_curve_visits_a_square_of_blocks_before_it_goes_on() -> None:
    across, down = np.meshgrid(np.arange(4), np.arange(4))
    codes = morton(across.ravel(), down.ravel())
    assert sorted(codes) == list(range(16))
    assert set(codes[[0, 1, 4, 5]]) == {0, 1, 2, 3}


def test_buildings_outside_and_at_the_border_and_in_holes_have_their_own_reasons(
    tmp_path: Path,
) -> None:
    pixels = noise(0, height=100, width=100)
    pixels[:, 60:, 60:] = 0
    path = write_tiff(tmp_path / "a.tif", pixels, nodata=0)
    buildings = houses(
        (40, 40, 50, 50),  # inside
        (-3, 10, 9, 20),  # a quarter of it beyond the border
        (-8, 10, 4, 20),  # more than half of it beyond
        (200, 200, 210, 210),  # elsewhere
        (75, 75, 85, 85),  # in the hole
    )
    with ExitStack() as stack:
        chips = list(opened(stack, buildings, path).chips(range(5), 16))
    assert [isinstance(chip, str) for chip in chips] == [False, False, True, True, True]
    assert chips[2] == chips[3] == "lies outside a.tif"
    assert chips[4] == "no data in a.tif (100% of its window)"


@pytest.mark.parametrize(
    ("shape", "reason"),
    [(None, "empty"), (shapely.Polygon(), "empty"), (shapely.Point(WEST + 9, NORTH - 9), "area")],
)
def test_geometries_without_an_area_are_skipped_with_the_reason(
    tmp_path: Path, shape: object, reason: str
) -> None:
    path = write_tiff(tmp_path / "a.tif", noise(0))
    shapes = np.array([shapely.box(WEST + 5, NORTH - 15, WEST + 15, NORTH - 5), shape], object)
    with ExitStack() as stack:
        scene = opened(stack, Buildings(("a", "b"), shapes, system("EPSG:32615"), {}), path)
        good, bad = scene.chips([0, 1], 8)
    assert isinstance(good, np.ndarray)
    assert isinstance(bad, str)
    assert reason in bad


def test_before_and_after_are_stacked_though_grid_and_system_differ(
    tmp_path: Path, fake: FakeScene
) -> None:
    """The image before is the one after, warped: both halves must show the same building."""
    import rasterio  # type: ignore[import-untyped, unused-ignore]
    from rasterio.vrt import WarpedVRT  # type: ignore[import-untyped, unused-ignore]

    with (
        rasterio.open(fake.post) as file,
        WarpedVRT(file, crs="EPSG:4326", resampling=rasterio.enums.Resampling.bilinear) as warped,
    ):
        assert warped.shape != file.shape
        transform = tuple(warped.transform)[:6]
        before = write_tiff(
            tmp_path / "pre.tif", warped.read(), crs="EPSG:4326", transform=transform
        )
    with ExitStack() as stack:
        scene = opened(stack, read_footprints(fake.gpkg), before, fake.post)
        assert scene.channels == 6
        pairs = np.array(
            [chip for chip in scene.chips(range(49), 16) if isinstance(chip, np.ndarray)]
        )
    assert len(pairs) == 49
    difference = np.abs(pairs[:, :3].astype(int) - pairs[:, 3:].astype(int)).mean(axis=(1, 2, 3))
    between = np.abs(pairs[:-1, 3:].astype(int) - pairs[1:, 3:].astype(int)).mean(axis=(1, 2, 3))
    assert difference.max() < 0.5 * between.min()


@pytest.mark.parametrize(
    "turned",
    [
        (1, 0, 0, 0, 1, -120),  # south up
        (-1, 0, 160, 0, -1, 0),  # mirrored
        (0, 1, 0, -1, 0, 0),  # a quarter turn
        (0.8, 0.6, -50, 0.6, -0.8, -10),
    ],
)
def test_an_image_before_that_is_turned_shows_the_same_side_up(
    tmp_path: Path, turned: tuple[float, ...]
) -> None:
    """Brightness falls to the east and to the south in both, whatever the order of pixels."""
    a, b, c, d, e, f = turned

    def shade(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        smooth = np.stack([200 - x, 220 + y, 100 + x / 2]).clip(0, 255)
        return smooth.astype(np.uint8)

    columns, rows = np.meshgrid(np.arange(160) + 0.5, np.arange(120) + 0.5)
    post = write_tiff(tmp_path / "post.tif", shade(columns, -rows))
    columns, rows = np.meshgrid(np.arange(300) + 0.5, np.arange(300) + 0.5)
    pixels = shade(a * columns + b * rows + c, d * columns + e * rows + f)
    place = (a, b, WEST + c, d, e, NORTH + f)
    pre = write_tiff(tmp_path / "pre.tif", pixels, transform=place)
    with ExitStack() as stack:
        (chip,) = opened(stack, houses((60, 40, 80, 55)), pre, post).chips([0], 16)
    assert isinstance(chip, np.ndarray)
    np.testing.assert_allclose(chip[:3].astype(float), chip[3:].astype(float), atol=2)
    assert chip[3, 0, 0] > chip[3, 0, -1]


def test_a_turned_image_is_shown_with_north_up(tmp_path: Path) -> None:
    pixels = np.zeros((1, 120, 160), np.uint8)
    pixels[:, :50] = 200  # the first rows, which are the south
    south_up = (1, 0, WEST, 0, 1, NORTH - 120)
    path = write_tiff(tmp_path / "post.tif", pixels, transform=south_up)
    with ExitStack() as stack:
        (chip,) = opened(stack, houses((60, 60, 80, 80)), path).chips([0], 16)
    assert isinstance(chip, np.ndarray)
    assert chip[0, 0].max() < 50 < 150 < chip[0, -1].min()


SOUTH_UP = (1, 0, WEST, 0, 1, NORTH - 100)
QUARTER_TURN = (0, 1, WEST, -1, 0, NORTH)


@pytest.mark.parametrize("place", [(1, 0, WEST, 0, -1, NORTH), SOUTH_UP, QUARTER_TURN])
def test_small_and_half_seen_footprints_are_told(tmp_path: Path, place: tuple[float, ...]) -> None:
    path = write_tiff(tmp_path / "post.tif", noise(1, height=100, width=100), transform=place)
    with ExitStack() as stack:
        scene = opened(stack, houses((10, 10, 12, 12), (92, 20, 102, 30), (40, 40, 60, 60)), path)
        small, partly = size_warnings(scene)
    assert small.startswith("1 of 3 footprints are smaller than 4 pixels in post.tif")
    assert partly.startswith("1 of 3 footprints lie partly outside post.tif")


def test_buildings_beyond_180_degrees_are_found_in_an_image_across_it(tmp_path: Path) -> None:
    place = (1e-5, 0, 179.9995, 0, -1e-5, 10.0)
    path = write_tiff(tmp_path / "a.tif", noise(1, 3, 100, 100), crs="EPSG:4326", transform=place)
    west = shapely.box(179.9996, 9.9993, 179.9998, 9.9995)
    east = shapely.box(-179.9998, 9.9993, -179.9996, 9.9995)
    shapes = np.array([west, east], object)
    with ExitStack() as stack:
        scene = opened(stack, Buildings(("w", "e"), shapes, system("EPSG:4326"), {}), path)
        chips = list(scene.chips([0, 1], 8))
    assert all(isinstance(chip, np.ndarray) for chip in chips)


def test_a_given_stretch_takes_the_place_of_the_images_own(tmp_path: Path) -> None:
    path = write_tiff(tmp_path / "a.tif", noise(1).astype(np.uint16) * 100)
    given = Stretch(low=(0.0,) * 3, high=(51000.0,) * 3)
    with ExitStack() as stack:
        buildings = houses((10, 10, 20, 20))
        scene = open_scene(stack, buildings, [path], stretches=[given])
        (chip,) = scene.chips([0], 8)
        (own,) = opened(stack, buildings, path).chips([0], 8)
    assert isinstance(chip, np.ndarray)
    assert isinstance(own, np.ndarray)
    assert chip.max() <= 128 < own.max()


def test_no_overlap_tells_where_both_are(tmp_path: Path) -> None:
    path = write_tiff(tmp_path / "a.tif", noise(2))
    with ExitStack() as stack, pytest.raises(DataError, match=r"longitude -93.*longitude -92"):
        opened(stack, houses((90_000, 0, 90_010, 10)), path)


def test_a_huge_building_is_read_from_a_smaller_copy(tmp_path: Path) -> None:
    pixels = np.zeros((1, 900, 900), np.uint8)
    pixels[:, 450:] = 200
    path = write_tiff(tmp_path / "a.tif", pixels)
    with ExitStack() as stack:
        (chip,) = opened(stack, houses((250, 250, 650, 650)), path).chips([0], 16)
    assert isinstance(chip, np.ndarray)
    # Half of the building is bright; the window ends 50 pixels before the border.
    np.testing.assert_allclose(chip[0].mean(axis=1), [0] * 8 + [200] * 8, atol=40)


def test_a_building_in_a_hole_is_not_scored_though_its_surroundings_are_seen(
    tmp_path: Path,
) -> None:
    pixels = noise(1, height=200, width=200)
    pixels[pixels == 0] = 1
    pixels[:, 80:120, 80:120] = 0
    path = write_tiff(tmp_path / "a.tif", pixels, nodata=0)
    with ExitStack() as stack:
        scene = opened(stack, houses((80, 80, 120, 120), (20, 20, 60, 60)), path)
        hidden, seen = scene.chips([0, 1], 32)
    assert hidden == "no data in a.tif (100% of the building)"
    assert isinstance(seen, np.ndarray)


def test_a_given_system_is_for_images_that_name_none(tmp_path: Path) -> None:
    named = write_tiff(tmp_path / "pre.tif", noise(1))
    nameless = write_tiff(tmp_path / "post.tif", noise(2), crs=None)
    with ExitStack() as stack:
        # The nameless one only: the other is where it says that it is.
        scene = open_scene(
            stack, houses((5, 5, 20, 20)), [named, nameless], given_system="EPSG:32615"
        )
        assert len(scene.images) == 2
    for place in ((5, 5, 20, 20), (10_000, 5, 10_020, 20)):  # also where nothing is seen
        theirs = pytest.raises(ConfigError, match="these name theirs: WGS 84 / UTM")
        with ExitStack() as stack, theirs:
            open_scene(stack, houses(place), [named], given_system="EPSG:32616")
