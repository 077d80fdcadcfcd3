"""A made-up town for tests of the map: rectangular buildings along streets, some damaged."""

import io
import math

import numpy as np
from PIL import Image

from onesided.geo.output.page import MapItem, MapPage

METRES_PER_DEGREE = 111_320.0
WEST, SOUTH = -95.40, 29.70
"""Where the town is; around Houston."""
BLOCK = 26.0
"""Metres from one building to the next."""


def degrees(east: float, north: float, west: float, south: float) -> tuple[float, float]:
    """Return longitude and latitude of a place given in metres from the corner of the town."""
    longitude = west + east / (METRES_PER_DEGREE * math.cos(math.radians(south)))
    return (longitude + 180) % 360 - 180, south + north / METRES_PER_DEGREE


def rectangle(
    east: float, north: float, width: float, height: float, west: float, south: float
) -> list[list[tuple[float, float]]]:
    corners = [(0.0, 0.0), (width, 0.0), (width, height), (0.0, height), (0.0, 0.0)]
    return [[degrees(east + x, north + y, west, south) for x, y in corners]]


def town(
    count: int, *, west: float = WEST, south: float = SOUTH, points: bool = False
) -> list[MapItem]:
    """Return so many buildings: the score falls with the distance from the middle, with noise."""
    rng = np.random.default_rng(0)
    shifts, sizes = rng.uniform(0, 6, (count, 2)).tolist(), rng.uniform(9, 18, (count, 2)).tolist()
    noise = rng.normal(0, 1.6, count).tolist()
    side = math.ceil(math.sqrt(count))
    items = []
    for number in range(count):
        row, column = divmod(number, side)
        east = column * BLOCK + shifts[number][0] + 12 * (column // 6)
        north = row * BLOCK + shifts[number][1] + 12 * (row // 6)
        width, height = sizes[number]
        distance = math.hypot(column - side * 0.45, row - side * 0.55) / side
        score = 1 / (1 + math.exp(16 * (distance - 0.2) + noise[number]))
        shape = rectangle(east, north, width, height, west, south)
        skipped = number % 97 == 5
        items.append(
            MapItem(
                name=f"building-{number:05d}",
                rings=[shape[0][:1]] if points else shape,
                score=None if skipped else score,
                rank=None,
                role="positive" if score > 0.8 and number % 5 == 0 else "unlabelled",
                reason="outside the image" if skipped else None,
            )
        )
    return items


def page_of(items: list[MapItem], *, threshold: float = 0.5, title: str = "Town") -> MapPage:
    return MapPage(title=title, items=items, threshold=threshold)


def picture(red: int, green: int, blue: int, *, kind: str = "PNG") -> bytes:
    """Return a small picture of one colour."""
    file = io.BytesIO()
    Image.new("RGB", (32, 32), (red, green, blue)).save(file, kind)
    return file.getvalue()
