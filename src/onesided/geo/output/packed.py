"""Positions of buildings as short integers, for a page that carries them as text.

Longitudes and latitudes are rounded to 1e-7 degree, which moves no corner by a centimetre,
and each is written as the difference to the one before: a few digits instead of eighteen.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from onesided.core.errors import DataError

QUANTA_PER_DEGREE = 10_000_000
_WHOLE_CIRCLE = 360 * QUANTA_PER_DEGREE

Ring = Sequence[tuple[float, float]] | Float64[np.ndarray, "corners 2"]
Rings = Sequence[Ring]
"""The outline of a building: rings of (longitude, latitude) in degrees of WGS 84, closed or not.

What lies inside an odd number of rings belongs to the building, so courtyards and buildings of
several parts need no further structure. A ring of one corner is a building of which only the
position is known. No ring: there is no usable shape."""


@dataclass(frozen=True)
class PackedShapes:
    """The shapes as integers, in the order of the items."""

    rings: list[int]
    """Per item: 0 for no shape; n for one ring of n corners (a point has one corner);
    -k for k rings, whose k numbers of corners follow."""
    steps: list[int]
    """x and y of every corner in quanta, minus those of the corner before it."""
    middle: float
    """Longitude in the middle of all shapes, degrees; beyond 180 where they cross it."""


def pack(shapes: Sequence[tuple[str, Rings]]) -> PackedShapes:
    """Return the shapes of named items as integers.

    Longitudes are shifted by whole turns so that neighbours across the antimeridian meet.
    """
    sizes: list[int] = []
    quantised = [np.zeros((0, 2), np.int64)]
    for name, rings in shapes:
        corners = [_quantised(name, ring) for ring in rings if len(ring)]
        lengths = [len(ring) for ring in corners]
        sizes += lengths if len(lengths) == 1 else [-len(lengths), *lengths]
        quantised += corners
    places = np.concatenate(quantised)
    west, east = _span(places[:, 0])
    places[:, 0] = west + (places[:, 0] - west) % _WHOLE_CIRCLE
    steps = np.diff(places, axis=0, prepend=np.zeros((1, 2), np.int64))
    return PackedShapes(sizes, steps.ravel().tolist(), (west + east) / 2 / QUANTA_PER_DEGREE)


def _span(longitudes: Int64[np.ndarray, "n"]) -> tuple[int, int]:
    """Return the western and eastern end of the shortest arc that holds all longitudes."""
    if not len(longitudes):
        return 0, 0
    around = np.unique(longitudes % _WHOLE_CIRCLE)
    gaps = np.diff(around, append=around[0] + _WHOLE_CIRCLE)
    widest = int(gaps.argmax())
    west = int(around[(widest + 1) % len(around)])
    if west >= _WHOLE_CIRCLE // 2:
        west -= _WHOLE_CIRCLE
    return west, west + _WHOLE_CIRCLE - int(gaps[widest])


def _quantised(name: str, ring: Ring) -> Int64[np.ndarray, "n 2"]:
    degrees = np.asarray(ring, np.float64)
    # NaN fails every comparison, so it is refused here too.
    if not (np.abs(degrees) <= (360, 90)).all():
        inside = (np.abs(degrees) <= (360, 90)).all(axis=1)
        longitude, latitude = degrees[~inside][0].tolist()
        raise DataError(
            f"Positions on the map are longitude and latitude in degrees; {name!r} has "
            f"({longitude}, {latitude}). Reproject the buildings to EPSG:4326."
        )
    quanta: Int64[np.ndarray, "n 2"] = np.rint(degrees * QUANTA_PER_DEGREE).astype(np.int64)
    # The last corner of a closed ring is its first; a canvas closes rings by itself.
    is_closed = len(quanta) > 1 and (quanta[0] == quanta[-1]).all()
    return quanta[:-1] if is_closed else quanta
