"""Footprints that lie beside their roofs."""

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import shapely  # type: ignore[import-untyped, unused-ignore]

from onesided.core.errors import ConfigError
from onesided.geo.input.coordinates import system
from onesided.geo.input.footprints import Buildings
from onesided.geo.scene.footprint_scene import open_scene
from onesided.geo.scene.shift import FURTHEST, estimated_shift, parse_shift, shift_warning
from tests.geo.rasters import NORTH, WEST, write_tiff

METRES = 0.5


def place(
    folder: Path,
    east: float,
    north: float,
    *,
    shadow: tuple[int, int] = (0, 0),
    turn: float = 0.0,
    pitch: int = 48,
) -> tuple[Path, Buildings]:
    """Write sixty-four dark roofs; return footprints that lie so many metres beside them.

    `shadow` is its length in columns and rows, `turn` the angle of the image in degrees.
    """
    random = np.random.default_rng(0)
    side = 8 * pitch + 36
    pixels = random.normal(90, 8, (3, side, side))
    along, beside = METRES * np.cos(np.radians(turn)), METRES * np.sin(np.radians(turn))
    transform = (along, beside, WEST, beside, -along, NORTH)
    shapes = []
    for number in range(64):
        left, top = 30 + pitch * (number % 8), 30 + pitch * (number // 8)
        wide, high = random.integers(14, 24, 2)
        right, bottom = left + wide, top + high
        across, down = shadow
        pixels[:, top + down : bottom + down, left + across : right + across] *= 0.1
        pixels[:, top:bottom, left:right] = random.uniform(40, 65)
        columns, rows = np.array([left, right, right, left]), np.array([top, top, bottom, bottom])
        x = WEST + along * columns + beside * rows + east
        y = NORTH + beside * columns - along * rows + north
        shapes.append(shapely.Polygon(np.stack([x, y], axis=1)))
    image = write_tiff(
        folder / "post.tif", pixels.clip(0, 255).astype(np.uint8), transform=transform
    )
    names = tuple(map(str, range(64)))
    return image, Buildings(names, np.array(shapes, object), system("EPSG:32615"), {})


@pytest.mark.parametrize(("east", "north"), [(3.0, -2.0), (-4.0, 0.0), (0.0, 5.0)])
def test_an_offset_is_found_in_metres_and_a_shift_repairs_it(
    tmp_path: Path, east: float, north: float
) -> None:
    image, buildings = place(tmp_path, east, north)
    with ExitStack() as stack:
        found = estimated_shift(open_scene(stack, buildings, [image]))
        assert found is not None
        assert found.east == pytest.approx(-east, abs=METRES)
        assert found.north == pytest.approx(-north, abs=METRES)
        moved = open_scene(stack, buildings, [image], shift=(found.east, found.north))
        assert estimated_shift(moved) is None


@pytest.mark.parametrize(("east", "north"), [(8.0, 3.0), (-9.0, 6.0)])
def test_an_offset_is_found_in_a_turned_image_too(
    tmp_path: Path, east: float, north: float
) -> None:
    image, buildings = place(tmp_path, east, north, turn=17, pitch=80)
    with ExitStack() as stack:
        found = estimated_shift(open_scene(stack, buildings, [image]))
    assert found is not None
    assert (found.east, found.north) == pytest.approx((-east, -north), abs=METRES)


@pytest.mark.parametrize("turn", [0.0, 17.0])
def test_shadows_are_not_taken_for_the_roofs(tmp_path: Path, turn: float) -> None:
    image, buildings = place(tmp_path, 0.0, 0.0, shadow=(-5, 6), turn=turn)
    with ExitStack() as stack:
        assert estimated_shift(open_scene(stack, buildings, [image])) is None


def test_an_offset_at_the_end_of_the_search_is_not_told(tmp_path: Path) -> None:
    image, buildings = place(tmp_path, FURTHEST * METRES, 0.0, pitch=80)
    with ExitStack() as stack:
        assert estimated_shift(open_scene(stack, buildings, [image])) is None


def test_the_warning_says_where_they_lie_and_what_repairs_it(tmp_path: Path) -> None:
    image, buildings = place(tmp_path, 3.0, -2.0)
    with ExitStack() as stack:
        (told,) = shift_warning(open_scene(stack, buildings, [image]))
    assert "3 m east and 2 m south of the roofs in post.tif" in told
    assert "--shift -3,2" in told


def test_footprints_that_fit_are_not_warned_about(tmp_path: Path) -> None:
    image, buildings = place(tmp_path, 0.0, 0.0)
    with ExitStack() as stack:
        assert shift_warning(open_scene(stack, buildings, [image])) == ()


def test_an_image_without_edges_tells_nothing(tmp_path: Path) -> None:
    _, buildings = place(tmp_path, 3.0, 0.0)
    noise = np.random.default_rng(1).integers(0, 255, (3, 420, 420)).astype(np.uint8)
    image = write_tiff(
        tmp_path / "noise.tif", noise, transform=(METRES, 0, WEST, 0, -METRES, NORTH)
    )
    with ExitStack() as stack:
        assert shift_warning(open_scene(stack, buildings, [image])) == ()


def test_a_shift_moves_what_is_cut_and_not_what_is_written(tmp_path: Path) -> None:
    image, buildings = place(tmp_path, 3.0, 0.0)
    right = place(tmp_path, 0.0, 0.0)[1]
    with ExitStack() as stack:
        moved = open_scene(stack, buildings, [image], shift=(-3.0, 0.0))
        expected = open_scene(stack, right, [image])
        for one, other in zip(moved.chips([5], 16), expected.chips([5], 16), strict=True):
            np.testing.assert_array_equal(one, other)
        assert moved.buildings is buildings


def test_shifts_that_are_no_two_numbers_are_refused() -> None:
    assert parse_shift("3.5,-2") == (3.5, -2.0)
    assert parse_shift(None) == (0.0, 0.0)
    for text in ("", "3", "a,b", "1,2,3", "nan,1", "1e9,0"):
        with pytest.raises(ConfigError, match="--shift takes metres"):
            parse_shift(text)
