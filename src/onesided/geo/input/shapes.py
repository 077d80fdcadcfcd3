"""Geometries as files hold them, brought to what a map can cut and write: polygons or points."""

from typing import Any

import numpy as np

from onesided.geo.input.coordinates import Geometries
from onesided.storage.optional import library

COLLECTION = 7
"""shapely's number for a GeometryCollection."""
HALF_TURN, WHOLE_TURN = 180.0, 360.0


def without_collections(geometries: Geometries) -> tuple[Geometries, int]:
    """Return the geometries with collections replaced by their polygons, and how many there were.

    Clipping and repairing leave collections: the polygon, and the lines and points where it
    touched the edge. Only the polygon is the building. A collection without one becomes None.
    """
    shapely = library("shapely", "A footprint")
    rows = np.flatnonzero(shapely.get_type_id(geometries) == COLLECTION)
    if not len(rows):
        return geometries, 0
    changed = np.array(geometries, dtype=object)
    for row in rows:
        areas = _polygons(geometries[row])
        changed[row] = None if not areas else areas[0]
        if len(areas) > 1:
            changed[row] = shapely.multipolygons(areas)
    return changed, len(rows)


def _polygons(geometry: object) -> list[object]:
    """Return all polygons in a geometry, however deep collections hold each other."""
    shapely = library("shapely", "A footprint")
    parts = shapely.get_parts(geometry)
    found: list[object] = []
    for part in parts:
        nested = shapely.get_type_id(part) >= COLLECTION or shapely.get_num_geometries(part) > 1
        found += _polygons(part) if nested else [part] if part.geom_type == "Polygon" else []
    return found


def continuous_longitudes(geometry: Any, middle: float) -> Any:  # noqa: ANN401
    """Return a geometry in degrees whose longitudes lie within half a turn of `middle`."""
    shapely = library("shapely", "A footprint")
    return shapely.transform(geometry, lambda points: near_longitude(points, middle))


def near_longitude(points: np.ndarray, middle: float) -> np.ndarray:
    """Return points whose longitudes are shifted by whole turns to within half a turn of one."""
    near = points.copy()
    near[:, 0] = middle + (points[:, 0] - middle + HALF_TURN) % WHOLE_TURN - HALF_TURN
    return near


def cut_at_antimeridian(geometry: Any) -> Any:  # noqa: ANN401 - shapely ships no types
    """Return a geometry in degrees as RFC 7946 (3.1.9) wants it: in parts on each side of 180.

    An outline crosses 180 degrees where its longitudes jump by more than half a turn, or lie
    beyond 180. Any other comes back as it is.
    """
    shapely = library("shapely", "A footprint")
    longitudes = shapely.get_coordinates(geometry)[:, 0]
    if not len(longitudes) or not np.isfinite(longitudes).all():
        return geometry
    jumps = shapely.get_dimensions(geometry) > 0 and np.ptp(longitudes) > HALF_TURN
    beyond = np.abs(longitudes).max() > HALF_TURN
    if not (jumps or beyond) or (jumps and _parts_are_narrow(geometry)):
        return geometry
    middle = HALF_TURN if longitudes.max() > 0 else -HALF_TURN
    whole = shapely.make_valid(continuous_longitudes(geometry, middle))
    sides = []
    for turn in (-WHOLE_TURN, 0.0, WHOLE_TURN):
        side = shapely.intersection(whole, shapely.box(turn - 180, -90, turn + 180, 90))
        moved = shapely.transform(side, lambda points, by=turn: points - [by, 0.0])
        sides += [part for part in shapely.get_parts(moved) if not shapely.is_empty(part)]
    if len(sides) == 1:
        return sides[0]
    areas = [area for side in sides for area in _polygons(side)]
    return shapely.multipolygons(areas) if areas else geometry


def _parts_are_narrow(geometry: object) -> bool:
    """Return whether a file has cut the outline already: no part of it spans half a turn."""
    shapely = library("shapely", "A footprint")
    boxes = shapely.bounds(shapely.get_parts(geometry))
    return len(boxes) > 1 and bool((boxes[:, 2] - boxes[:, 0] < HALF_TURN).all())
