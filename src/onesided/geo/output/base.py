"""The picture under the map: the image, small and with north up, as browsers draw maps."""

import io
import math

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from onesided.geo.input.coordinates import WGS84, between, system
from onesided.geo.input.image import edge_in_degrees, to_pixels
from onesided.geo.output.page import Bounds
from onesided.geo.scene.footprint_scene import Sight

MOST_PIXELS = 1600
BACKGROUND = 235
QUALITY = 80


def base_picture(sight: Sight, side: int = MOST_PIXELS) -> tuple[bytes, Bounds] | None:
    """Return a JPEG with evenly spaced columns in longitude and rows in Web Mercator.

    Nearest neighbours by pyproj alone, so that it needs no GDAL; about a second.
    """
    small = sight.small
    west, south, east, north = edge_in_degrees(sight.image)
    if small is None or not (-85 < south < north < 85 and 0 < east - west <= 360):
        return None  # Mercator has no poles, and a map of everything needs no picture
    top, bottom = _mercator(north), _mercator(south)
    across, down = math.radians(east - west), top - bottom
    scale = min(side, max(small.valid.shape)) / max(across, down)
    width, height = max(1, round(across * scale)), max(1, round(down * scale))
    longitude = west + (np.arange(width) + 0.5) / width * (east - west)
    stretched = top - (np.arange(height) + 0.5) / height * down
    latitude = np.degrees(np.arctan(np.sinh(stretched)))
    picture = np.full((height, width, 3), BACKGROUND, np.uint8)
    convert = between(system(WGS84), sight.image.system)
    colours = colours_of(small.values).transpose(1, 2, 0)
    small_height, small_width = small.valid.shape
    for row in range(height):  # a row at a time: coordinates take more memory than pixels
        places = convert(np.column_stack([longitude, np.full(width, latitude[row])]))
        column, line = to_pixels(sight.image.matrix, places).T
        x = np.floor(column * small_width / sight.image.width)
        y = np.floor(line * small_height / sight.image.height)
        inside = (x >= 0) & (x < small_width) & (y >= 0) & (y < small_height)
        x, y = x[inside].astype(np.int64), y[inside].astype(np.int64)
        shown = small.valid[y, x]
        picture[row, np.flatnonzero(inside)[shown]] = colours[y[shown], x[shown]]
    turn = 360.0 * (west < -180)
    return jpeg(picture), (west + turn, south, east + turn, north)


def _mercator(latitude: float) -> float:
    return math.asinh(math.tan(math.radians(latitude)))


def colours_of(pixels: UInt8[np.ndarray, "bands h w"]) -> UInt8[np.ndarray, "3 h w"]:
    """Return the first three bands as colours; of one or two the first, as grey."""
    return pixels[:3] if len(pixels) >= 3 else np.repeat(pixels[:1], 3, axis=0)


def jpeg(picture: UInt8[np.ndarray, "h w 3"], quality: int = QUALITY) -> bytes:
    """Return a picture as the bytes of a JPEG file."""
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(picture)).save(file, "JPEG", quality=quality)
    return file.getvalue()
