"""Positions of buildings as short integers, for a page that carries them as text.

Longitudes and latitudes are rounded to 1e-7 degree, which moves no corner by a centimetre,
and each is written as the difference to the one before: a few digits instead of eighteen.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from onesided.core.errors import DataError

QUANTA_PER_DEGREE = 10_000_000
_WHOLE_CIRCLE = 360 * QUANTA_PER_DEGREE

Rings = Sequence[Sequence[tuple[float, float]]]
"""The outline of a building: rings of (longitude, latitude) in degrees of WGS 84, closed or not.

What lies inside an odd number of rings belongs to the building, so courtyards and buildings of
several parts need no further structure. A ring of one corner is a building of which only the
position is known. No ring: there is no usable shape."""
_Ring = list[tuple[int, int]]


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
    quantised = [_quantised(name, rings) for name, rings in shapes]
    corners = [corner for rings in quantised for ring in rings for corner in ring]
    west, east = _span([x for x, _ in corners])
    steps: list[int] = []
    last_x = last_y = 0
    for x, y in corners:
        unwrapped = west + (x - west) % _WHOLE_CIRCLE
        steps += (unwrapped - last_x, y - last_y)
        last_x, last_y = unwrapped, y
    sizes = [size for rings in quantised for size in _sizes(rings)]
    return PackedShapes(sizes, steps, (west + east) / 2 / QUANTA_PER_DEGREE)


def _sizes(rings: list[_Ring]) -> list[int]:
    lengths = [len(ring) for ring in rings]
    return lengths if len(lengths) == 1 else [-len(lengths), *lengths]


def _span(longitudes: list[int]) -> tuple[int, int]:
    """Return the western and eastern end of the shortest arc that holds all longitudes."""
    around = sorted({x % _WHOLE_CIRCLE for x in longitudes})
    if not around:
        return 0, 0
    following = [*around[1:], around[0] + _WHOLE_CIRCLE]
    gaps = [after - before for before, after in zip(around, following, strict=True)]
    widest = gaps.index(max(gaps))
    west = following[widest] % _WHOLE_CIRCLE
    if west >= _WHOLE_CIRCLE // 2:
        west -= _WHOLE_CIRCLE
    return west, west + _WHOLE_CIRCLE - gaps[widest]


def _quantised(name: str, rings: Rings) -> list[_Ring]:
    quantised = [[_quantise(name, *corner) for corner in ring] for ring in rings if ring]
    # The last corner of a closed ring is its first; a canvas closes rings by itself.
    return [ring[:-1] if len(ring) > 1 and ring[0] == ring[-1] else ring for ring in quantised]


def _quantise(name: str, longitude: float, latitude: float) -> tuple[int, int]:
    # NaN fails every comparison, so it is refused here too.
    if not (-360 <= longitude <= 360 and -90 <= latitude <= 90):
        raise DataError(
            f"Positions on the map are longitude and latitude in degrees; {name!r} has "
            f"({longitude}, {latitude}). Reproject the buildings to EPSG:4326."
        )
    return round(longitude * QUANTA_PER_DEGREE), round(latitude * QUANTA_PER_DEGREE)
