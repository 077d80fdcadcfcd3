"""Coordinate systems: from the numbers in one file to the numbers in another.

Always x before y, so longitude before latitude, whatever a system's definition says about
the order of its axes: files store them so.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float64

from onesided.core.errors import ConfigError
from onesided.storage.optional import library

System = Any
"""A `pyproj.CRS`."""
Coordinates = Float64[np.ndarray, "n 2"]
Geometries = np.ndarray
"""An array of shapely geometries; None where a feature has none."""

WGS84 = "EPSG:4326"


def system(definition: object) -> System:
    """Return the coordinate system of a name such as EPSG:32615, or of its WKT."""
    pyproj = library("pyproj", "A coordinate system")
    try:
        return pyproj.CRS.from_user_input(definition)
    except pyproj.exceptions.CRSError:
        raise ConfigError(
            f"{str(definition)[:80]!r} is no coordinate system. Give its code, for example "
            "EPSG:4326 for longitude and latitude, or EPSG:32615 for UTM zone 15 north."
        ) from None


def known_system(definition: object | None) -> System | None:
    """Return the system that a file names, None for no name or for a system without a place."""
    if not definition:
        return None
    found = system(definition)
    # GeoPackage has two entries for an undefined system; both arrive as engineering systems.
    return found if found.is_geographic or found.is_projected or found.is_bound else None


def same_system(one: System, other: System) -> bool:
    """Return whether two systems are equal, apart from the order of their axes.

    pyproj ignores the axes of geographic systems only; what ESRI writes has none.
    """
    if one.equals(other, ignore_axis_order=True):
        return True
    pyproj = library("pyproj", "A coordinate system")
    try:
        plain = [pyproj.CRS.from_wkt(each.to_wkt("WKT1_ESRI")) for each in (one, other)]
    except pyproj.exceptions.CRSError:
        return False  # ESRI's format cannot express one of them
    return bool(plain[0].equals(plain[1]))


def between(source: System, target: System) -> Callable[[Coordinates], Coordinates]:
    """Return the function that converts x and y of one system to another."""
    if source == target:
        return lambda points: points
    pyproj = library("pyproj", "A coordinate system")
    transformer = pyproj.Transformer.from_crs(source, target, always_xy=True)

    return lambda points: np.column_stack(transformer.transform(points[:, 0], points[:, 1]))


def converted(geometries: Geometries, source: System, target: System) -> Geometries:
    """Return the geometries in another coordinate system, without heights."""
    return moved(geometries, between(source, target))


def moved(geometries: Geometries, move: Callable[[Coordinates], Coordinates]) -> Geometries:
    """Return the geometries with each corner moved, None where a corner goes to infinity.

    A coordinate system covers only a part of the Earth; corners beyond it become infinite.
    """
    shapely = library("shapely", "A geometry")
    corners, owners = shapely.get_coordinates(geometries, return_index=True)
    finite = np.array(geometries, dtype=object)
    if len(corners):
        finite[owners[~np.isfinite(move(corners)).all(axis=1)]] = None
    result: Geometries = shapely.transform(finite, move)
    return result


def bounds_of(geometries: Geometries) -> tuple[float, float, float, float] | None:
    """Return left, bottom, right and top of all geometries, None where none is finite."""
    shapely = library("shapely", "A geometry")
    boxes = np.asarray(shapely.bounds(geometries), np.float64).reshape(-1, 4)
    boxes = boxes[np.isfinite(boxes).all(axis=1)]
    if not len(boxes):
        return None
    left, bottom = boxes[:, :2].min(axis=0)
    right, top = boxes[:, 2:].max(axis=0)
    return float(left), float(bottom), float(right), float(top)
