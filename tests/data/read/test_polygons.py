import math
import sys

import numpy as np
import pytest
import shapely  # type: ignore[import-untyped, unused-ignore]
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from onesided.core.errors import DataError, MissingLibrary
from onesided.data.read.polygons import (
    BadPolygon,
    building_window,
    cut,
    pixels_of,
    polygon_from_wkt,
    share_inside,
    sound_polygon,
)

SQUARE = "POLYGON ((10 20, 14 20, 14 24, 10 24, 10 20))"
BOW_TIE = "POLYGON ((0 0, 10 10, 10 0, 0 10, 0 0))"


def noise(channels: int, height: int, width: int) -> np.ndarray:
    random = np.random.default_rng(0)
    return random.integers(0, 256, (channels, height, width), dtype=np.uint8)


def test_a_square_building_gets_half_its_side_on_every_side() -> None:
    assert building_window(polygon_from_wkt(SQUARE)) == (8, 18, 16, 26)


def test_the_longer_side_decides_about_the_margin() -> None:
    long = polygon_from_wkt("POLYGON ((0 0, 40 0, 40 10, 0 10, 0 0))")
    assert building_window(long) == (-20, -20, 60, 30)
    assert building_window(long, margin=0.25) == (-10, -10, 50, 20)
    assert building_window(long, margin=0) == (0, 0, 40, 10)


@given(st.lists(st.tuples(*[st.floats(0, 100)] * 2), min_size=3, max_size=8, unique=True))
def test_the_window_is_the_upright_rectangle_around_the_buffer(
    corners: list[tuple[float, float]],
) -> None:
    hull = shapely.MultiPoint(corners).convex_hull
    if hull.geom_type != "Polygon" or min(np.ptp(hull.exterior.coords, axis=0)) < 1:
        return
    left, top, right, bottom = hull.bounds
    buffered = hull.buffer(0.5 * max(right - left, bottom - top), quad_segs=64)
    # The round corners of a buffer are polygons, a little inside the true circle.
    np.testing.assert_allclose(building_window(hull), buffered.bounds, atol=0.01)


def test_several_parts_are_one_building() -> None:
    parts = polygon_from_wkt("MULTIPOLYGON (((0 0, 2 0, 2 2, 0 0)), ((8 8, 10 8, 10 10, 8 8)))")
    sound, repaired = sound_polygon(parts)
    assert building_window(sound) == (-5, -5, 15, 15)
    assert not repaired


def test_an_outline_that_crosses_itself_is_repaired_without_losing_area() -> None:
    sound, repaired = sound_polygon(polygon_from_wkt(BOW_TIE))
    assert repaired
    assert shapely.is_valid(sound)
    assert shapely.area(sound) == pytest.approx(50)
    assert sound.bounds == (0, 0, 10, 10)


def test_what_bounds_an_area_is_kept_and_the_rest_of_a_collection_is_dropped() -> None:
    mixed = polygon_from_wkt(
        "GEOMETRYCOLLECTION (POINT (90 90), POLYGON ((0 0, 1 0, 1 1, 0 0)), LINESTRING (5 5, 6 6))"
    )
    assert sound_polygon(mixed)[0].bounds == (0, 0, 1, 1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("POLYGON EMPTY", "is empty"),
        ("POINT (1 1)", "bounds no area"),
        ("LINESTRING (0 0, 5 5)", "bounds no area"),
        ("POLYGON ((0 0, 1 1, 2 2, 0 0))", "bounds no area"),
        ("POLYGON ((0 0, nan 1, 2 2, 0 0))", "not numbers"),
    ],
)
def test_an_outline_that_bounds_nothing_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(BadPolygon, match=reason):
        sound_polygon(polygon_from_wkt(text))


@pytest.mark.parametrize("text", ["", "POLYGON", "POLYGON ((0 0, 1 0))", "no", None, 7, {}])
def test_what_is_no_well_known_text_is_refused(text: object) -> None:
    with pytest.raises(BadPolygon, match="well-known text"):
        polygon_from_wkt(text)


def test_a_missing_geometry_is_refused() -> None:
    with pytest.raises(BadPolygon, match="is empty"):
        sound_polygon(None)
    with pytest.raises(BadPolygon, match="is empty"):
        building_window(polygon_from_wkt("POLYGON EMPTY"))
    with pytest.raises(BadPolygon, match="bounds no area"):
        building_window(polygon_from_wkt("POINT (3 3)"))


def test_without_shapely_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shapely", None)  # as if it were not installed
    with pytest.raises(MissingLibrary, match=r"pip install 'onesided\[geo\]'"):
        polygon_from_wkt(SQUARE)


def test_whole_pixels_without_stretching_are_copied() -> None:
    image = noise(5, 40, 50)
    np.testing.assert_array_equal(cut(image, (10, 5, 26, 21), 16), image[:, 5:21, 10:26])


@pytest.mark.parametrize("channels", [1, 3, 4, 6])
def test_every_channel_is_stretched_as_pillow_does_it(channels: int) -> None:
    image = noise(channels, 60, 80)
    window = (12.25, 7.5, 71.0, 55.75)
    # The slow way: each channel as an image of its own, cut to whole pixels first.
    expected = [
        np.asarray(
            Image.fromarray(band[7:56, 12:71]).resize(
                (16, 16), Image.Resampling.BILINEAR, box=(0.25, 0.5, 59.0, 48.75)
            )
        )
        for band in image
    ]
    np.testing.assert_array_equal(cut(image, window, 16), expected)


def test_shrinking_averages_instead_of_picking_pixels() -> None:
    checks = np.indices((64, 64)).sum(axis=0) % 2 * 255
    small = cut(checks[None].astype(np.uint8), (0, 0, 64, 64), 8)
    assert np.abs(small.astype(int) - 127).max() <= 2


def test_parts_outside_the_image_are_black_and_the_rest_keeps_its_position() -> None:
    image = np.full((2, 20, 20), 200, np.uint8)
    corner = cut(image, (-8, -8, 8, 8), 16)
    assert (corner[:, :8] == 0).all()
    assert (corner[:, :, :8] == 0).all()
    assert (corner[:, 8:, 8:] == 200).all()
    assert (cut(image, (30, 30, 40, 40), 8) == 0).all()


@given(st.floats(-30, 60), st.floats(-30, 60), st.floats(0.5, 50), st.floats(0.5, 50))
def test_only_the_pixels_that_a_window_touches_count(
    left: float, top: float, across: float, down: float
) -> None:
    window = (left, top, left + across, top + down)
    whole = noise(1, 48, 48)
    x, y, x_end, y_end = pixels_of(window)
    rows, columns = slice(max(y, 0), max(y_end, 0)), slice(max(x, 0), max(x_end, 0))
    part = np.zeros_like(whole)
    part[:, rows, columns] = whole[:, rows, columns]
    np.testing.assert_array_equal(cut(part, window, 8), cut(whole, window, 8))


def test_a_part_of_the_image_gives_the_same_crop() -> None:
    whole, window = noise(3, 100, 100), (30.4, 41.7, 55.2, 60.9)
    left, top, right, bottom = pixels_of(window)
    moved = (window[0] - left, window[1] - top, window[2] - left, window[3] - top)
    part = whole[:, top:bottom, left:right]
    np.testing.assert_array_equal(cut(part, moved, 32), cut(whole, window, 32))


@pytest.mark.parametrize(
    ("window", "share"),
    [
        ((0, 0, 10, 10), 1),
        ((-10, 0, 10, 10), 0.5),
        ((-10, -10, 10, 10), 0.25),
        ((95, 45, 105, 55), 0.25),
        ((100, 0, 120, 10), 0),
        ((-5, -5, -1, -1), 0),
    ],
)
def test_the_share_inside_counts_area(
    window: tuple[float, float, float, float], share: float
) -> None:
    assert share_inside(window, height=50, width=100) == pytest.approx(share)


def test_a_window_of_another_planet_is_refused_before_it_eats_the_memory() -> None:
    with pytest.raises(DataError, match="same coordinates"):
        cut(noise(3, 10, 10), (0, 0, 1e6, 1e6), 64)
    with pytest.raises(DataError, match="holds no pixel"):
        cut(noise(3, 10, 10), (5, 5, 5, 5), 64)


def test_nothing_but_numbers_comes_out_of_the_smallest_outline_that_is_allowed() -> None:
    tiny = polygon_from_wkt("POLYGON ((5 5, 5.002 5, 5.002 5.002, 5 5))")
    window = building_window(tiny)
    assert all(math.isfinite(edge) for edge in window)
    assert cut(noise(3, 10, 10), window, 8).shape == (3, 8, 8)
    with pytest.raises(BadPolygon):
        building_window(polygon_from_wkt("POLYGON ((5 5, 5.0001 5, 5.0001 5.0001, 5 5))"))
