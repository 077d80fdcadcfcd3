"""An image of a place: which pixel shows which spot, and pieces of it on request.

An orthomosaic of many gigabytes is never read whole: GeoTIFF and its kin are read by
windows (`raster.py`), and only plain pictures (`picture.py`), which are small, at once.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from jaxtyping import Bool, Shaped, UInt8

from onesided.core.errors import DataNotFound
from onesided.data.read.polygons import Window
from onesided.geo.input.coordinates import Coordinates, Geometries, System, bounds_of, system
from onesided.storage.optional import library

PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
LOW, HIGH = 2.0, 98.0
"""Percentiles that become black and white where values are not 8 bits already."""


@dataclass(frozen=True)
class ImageWindow:
    """Values of some pixels, and which of them show anything.

    Attributes:
        values: As the file stores them.
        valid: False where the file says that nothing was recorded.
    """

    values: Shaped[np.ndarray, "bands height width"]
    valid: Bool[np.ndarray, "height width"]


class OpenImage(Protocol):
    """What cutting needs of an image.

    Attributes:
        path: The file.
        bands: Bands of colour; transparency is not one of them.
        block: Height and width of the pieces in which the file is stored.
        is_eight_bit: Whether values are 0 to 255 already.
        system: Its coordinate system.
        matrix: Six numbers (a, b, c, d, e, f): x = a column + b row + c, y = d column +
            e row + f, from the corner of the first pixel.
    """

    path: Path
    bands: int
    height: int
    width: int
    block: tuple[int, int]
    is_eight_bit: bool
    system: System
    matrix: tuple[float, ...]

    def read(self, left: int, top: int, right: int, bottom: int, *, shrink: int = 1) -> ImageWindow:
        """Return pixels from left and top up to right and bottom, or a smaller copy of them."""
        ...


@contextmanager
def open_image(path: Path, given_system: str | None = None) -> Iterator[OpenImage]:
    """Open an image for reading; a plain picture needs no GDAL, everything else does."""
    if not path.is_file():
        raise DataNotFound(f"There is no image {path}. Give a GeoTIFF, or a PNG or JPEG.")
    if path.suffix.lower() in PICTURES:
        from onesided.geo.input.picture import located_picture

        yield located_picture(path, given_system)
        return
    from onesided.geo.input.raster import opened_raster

    with opened_raster(path, given_system) as image:
        yield image


def to_map(matrix: tuple[float, ...], pixels: Coordinates) -> Coordinates:
    """Return the place of points given by column and row."""
    a, b, c, d, e, f = matrix
    column, row = pixels.T
    return np.column_stack([a * column + b * row + c, d * column + e * row + f])


def to_pixels(matrix: tuple[float, ...], places: Coordinates) -> Coordinates:
    """Return column and row of places; the inverse of `to_map`."""
    a, b, c, d, e, f = matrix
    x, y = places[:, 0] - c, places[:, 1] - f
    scale = a * e - b * d
    return np.column_stack([(e * x - b * y) / scale, (a * y - d * x) / scale])


def outlines_in_pixels(image: OpenImage, geometries: Geometries, source: System) -> Geometries:
    """Return geometries of any coordinate system in columns and rows of an image."""
    from onesided.geo.input.coordinates import between, moved

    convert = between(source, image.system)
    return moved(geometries, lambda places: to_pixels(image.matrix, convert(places)))


def edge_in_degrees(image: OpenImage) -> tuple[float, float, float, float]:
    """Return west, south, east and north of an image; beyond 180 where it crosses that line."""
    from onesided.geo.input.coordinates import WGS84, between

    shapely = library("shapely", "The edge of an image")
    # Straight edges are bent in another system; twenty points each follow the bend.
    steps = np.linspace(0, 1, 21)
    zero, one = np.zeros_like(steps), np.ones_like(steps)
    across = np.concatenate([steps, one, steps, zero]) * image.width
    down = np.concatenate([zero, steps, one, steps]) * image.height
    places = to_map(image.matrix, np.column_stack([across, down]))
    convert = between(image.system, system(WGS84))
    degrees = convert(places)
    centre = to_map(image.matrix, np.array([[image.width / 2, image.height / 2]]))
    middle = convert(centre)[0, 0]
    around = middle + (degrees[:, 0] - middle + 180) % 360 - 180
    if np.ptp(around) < 180:  # not where there is no middle, nor of an image of the whole Earth
        degrees[:, 0] = around
    box = bounds_of(shapely.points(degrees))
    assert box is not None
    return box


@dataclass(frozen=True)
class Stretch:
    """Which values become black and white, for each band of one image.

    Stored with the model: another image has to be seen as the one that was trained on.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]

    def apply(self, values: Shaped[np.ndarray, "bands h w"]) -> UInt8[np.ndarray, "bands h w"]:
        """Return values of 0 to 255."""
        low, high = np.array(self.low), np.array(self.high)
        if values.dtype == np.uint8 and not low.any() and (high == 255).all():
            return values
        span = (high - low)[:, None, None]
        scaled = (values - low[:, None, None]) / span
        pixels: UInt8[np.ndarray, "bands h w"]
        pixels = np.rint(np.nan_to_num(scaled).clip(0, 1) * 255).astype(np.uint8)
        return pixels


def choose_stretch(image: OpenImage, overview: ImageWindow) -> Stretch:
    """Return the stretch of an image: none for 8 bits, else from percentiles of each band."""
    if image.is_eight_bit:
        return Stretch((0.0,) * image.bands, (255.0,) * image.bands)
    ends = []
    for band in overview.values:
        shown = band[overview.valid & np.isfinite(band)]
        low, high = np.percentile(shown, [LOW, HIGH]) if shown.size else (0.0, 1.0)
        ends.append((float(low), float(high) if high > low else float(low) + 1.0))
    lows, highs = zip(*ends, strict=True)
    return Stretch(lows, highs)


def overview(image: OpenImage, side: int) -> ImageWindow:
    """Return a copy of the whole image whose longer side has about this many pixels."""
    shrink = max(1, math.ceil(max(image.height, image.width) / side))
    return image.read(0, 0, image.width, image.height, shrink=shrink)


def inner_window(window: Window, image: OpenImage) -> tuple[int, int, int, int] | None:
    """Return the whole pixels of a window that the image has, None where it has none."""
    left, top = max(0, math.floor(window[0])), max(0, math.floor(window[1]))
    right = min(image.width, math.ceil(window[2]))
    bottom = min(image.height, math.ceil(window[3]))
    return (left, top, right, bottom) if left < right and top < bottom else None
