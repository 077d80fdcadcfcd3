import numpy as np
import pytest
import shapely  # type: ignore[import-untyped, unused-ignore]

from onesided.core.errors import ConfigError
from onesided.geo.input.coordinates import (
    between,
    bounds_of,
    converted,
    known_system,
    same_system,
    system,
)


def test_longitude_comes_before_latitude_whatever_a_system_says() -> None:
    # The central meridian of UTM zone 15 is 93 degrees west, at an easting of 500 km.
    convert = between(system("EPSG:4326"), system("EPSG:32615"))
    (x, y), *_ = convert(np.array([[-93.0, 0.0]]))
    assert (x, y) == pytest.approx((500_000, 0), abs=1e-3)


def test_the_way_there_and_back_moves_nothing() -> None:
    places = np.array([[-90.8, 14.39], [-90.7, 14.5]])
    there = between(system("EPSG:4326"), system("EPSG:32615"))
    back = between(system("EPSG:32615"), system("EPSG:4326"))
    np.testing.assert_allclose(back(there(places)), places, atol=1e-9)


def test_heights_are_left_out_and_missing_geometries_stay_missing() -> None:
    shapes = np.array([shapely.Point(-93, 10, 250), None], object)
    moved = converted(shapes, system("EPSG:4326"), system("EPSG:32615"))
    assert not moved[0].has_z
    assert moved[1] is None


def test_what_is_no_system_is_refused_with_an_example() -> None:
    with pytest.raises(ConfigError, match="EPSG:4326"):
        system("EPSG:banana")


@pytest.mark.parametrize("named", [None, "", 'ENGCRS["x",EDATUM["x"],CS[Cartesian,2],'
    'AXIS["x",east],AXIS["y",north],LENGTHUNIT["metre",1]]'])  # fmt: skip
def test_a_file_that_names_no_place_on_earth_names_no_system(named: str | None) -> None:
    assert known_system(named) is None


def test_bounds_hold_everything_finite() -> None:
    shapes = np.array([shapely.Point(1, 5), None, shapely.Point(3, 2), shapely.Polygon()], object)
    assert bounds_of(shapes) == (1, 2, 3, 5)
    assert bounds_of(np.array([None], object)) is None


@pytest.mark.parametrize("code", [2193, 3035, 4326, 32615])
def test_a_system_is_itself_in_the_words_of_esri_which_have_no_axes(code: int) -> None:
    one = system(f"EPSG:{code}")
    assert same_system(one, system(one.to_wkt("WKT1_ESRI")))
    assert not same_system(one, system("EPSG:32616"))
