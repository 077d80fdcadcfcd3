"""From the outline of a building to the window of an image that shows it.

Outlines are in pixels: x to the right, y downwards, (0, 0) the corner of the first pixel.

The NcPU paper (appendix on data sets): "each building is buffered by a distance equal to
0.5 times its size, and the minimum bounding rectangle of each buffer is cropped". It does
not define size, nor say whether the rectangle may be rotated. Here size is the longer side
of the outline's upright bounding rectangle, and the rectangle of the buffer is upright too,
as "minimum bounding rectangle" means in maps. So a square building fills the middle quarter
of its crop. A rectangle that is no square is stretched to one.
"""

import math
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float64, UInt8
from PIL import Image

from onesided.core.errors import DataError
from onesided.data.read import picture
from onesided.storage.optional import library

Window = tuple[float, float, float, float]
"""Left, top, right and bottom in pixels; may lie partly outside the image."""

MARGIN = 0.5
"""Width of the buffer in sizes of the building (the paper's number)."""
STRAIGHT = 0.5
"""Pixels by which an edge of a window may be askew and still count as upright."""
SMALLEST = 1e-3
"""Pixels; a smaller outline is a mistake, and cannot be stretched."""


class Outline(Protocol):
    """What we use of a geometry of shapely, which may not be installed."""

    @property
    def is_empty(self) -> bool:
        """Whether it has no points."""

    @property
    def geom_type(self) -> str:
        """What kind it is, such as Polygon."""

    @property
    def area(self) -> float:
        """Its area in squares of its unit."""

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Smallest x, smallest y, largest x, largest y."""


class BadPolygon(DataError):
    """An outline that bounds nothing.

    Attributes:
        reason: Continues a sentence that starts with the building's name.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The outline {reason}.")


def require_shapely() -> Any:  # noqa: ANN401 - it ships no types
    """Return the module shapely, or raise how to install it."""
    return library("shapely", "Reading outlines of buildings")


def polygon_from_wkt(text: object) -> Outline:
    """Return the outline that well-known text describes, such as `POLYGON ((0 0, ...))`."""
    shapely = require_shapely()
    if not isinstance(text, str):
        raise BadPolygon(f"is {type(text).__name__} instead of well-known text")
    try:
        with np.errstate(invalid="ignore"):  # sound_polygon refuses NaN
            geometry: Outline = shapely.from_wkt(text)
    except shapely.errors.ShapelyError as error:
        raise BadPolygon(f"is not well-known text ({error})") from error
    return geometry


def sound_polygon(geometry: Outline | None) -> tuple[Outline, bool]:
    """Return an outline that bounds an area, and whether it had to be repaired.

    A ring that crosses itself is divided into the areas it bounds; holes and several parts
    stay. An outline that bounds no area raises `BadPolygon`.
    """
    shapely = require_shapely()
    if geometry is None or geometry.is_empty:
        raise BadPolygon("is empty")
    if not np.isfinite(shapely.get_coordinates(geometry)).all():
        raise BadPolygon("has coordinates that are not numbers")
    was_valid = bool(shapely.is_valid(geometry))
    if was_valid and geometry.geom_type == "Polygon" and geometry.area > 0:
        return geometry, False  # as nearly all are; what follows costs four times as much
    parts = shapely.get_parts(geometry if was_valid else shapely.make_valid(geometry))
    # Repair leaves lines and points where an outline touches itself; collections nest once.
    areas = [part for part in shapely.get_parts(parts) if part.geom_type == "Polygon"]
    if not areas or sum(part.area for part in areas) <= 0:
        raise BadPolygon("bounds no area")
    sound = areas[0] if len(areas) == 1 else shapely.multipolygons(areas)
    return sound, not was_valid


def building_window(polygon_xy: Outline, *, margin: float = MARGIN) -> Window:
    """Return the upright rectangle around the buffer of a building.

    The buffer is `margin` times the longer side of the building's own rectangle. It need not
    be computed: its rectangle is the building's own, extended by its width on each side.
    Several parts are one building.
    """
    if polygon_xy.is_empty:
        raise BadPolygon("is empty")
    left, top, right, bottom = (float(number) for number in polygon_xy.bounds)
    size = max(right - left, bottom - top)
    if not math.isfinite(size) or size < SMALLEST:
        raise BadPolygon("bounds no area")
    buffer = margin * size
    return left - buffer, top - buffer, right + buffer, bottom + buffer


def share_inside(window: Window, *, height: int, width: int) -> float:
    """Return how much of a window lies inside an image, from 0 to 1."""
    left, top, right, bottom = window
    across = max(0.0, min(right, width) - max(left, 0.0))
    down = max(0.0, min(bottom, height) - max(top, 0.0))
    return across * down / ((right - left) * (bottom - top))


def pixels_of(window: Window) -> tuple[int, int, int, int]:
    """Return the whole pixels that a window touches: left, top, right, bottom, end excluded."""
    left, top, right, bottom = window
    return math.floor(left), math.floor(top), math.ceil(right), math.ceil(bottom)


def cut(
    image: UInt8[np.ndarray, "channels height width"], window: Window, size: int
) -> UInt8[np.ndarray, "channels size size"]:
    """Return a window of an image, stretched to a square of this side, averaging where it shrinks.

    Parts outside the image are black, as the empty parts of maps are, so that a building at
    the border keeps its position and scale. Only pixels that the window touches count
    (`pixels_of`), so a part of the image that holds them gives the same result.
    """
    left, top, right, bottom = pixels_of(window)
    if not (left < right and top < bottom):
        raise DataError(f"The window {window} holds no pixel.")
    if (right - left) * (bottom - top) > picture.MAXIMUM_PIXELS:
        raise DataError(
            f"A window of {right - left} x {bottom - top} pixels is too large to be a building. "
            "Are outlines and image in the same coordinates?"
        )
    channels, height, width = image.shape
    part = np.zeros((channels, bottom - top, right - left), np.uint8)
    rows = slice(max(top, 0), min(bottom, height))
    columns = slice(max(left, 0), min(right, width))
    if rows.start < rows.stop and columns.start < columns.stop:
        inside = np.s_[
            :, rows.start - top : rows.stop - top, columns.start - left : columns.stop - left
        ]
        part[inside] = image[:, rows, columns]
    box = (window[0] - left, window[1] - top, window[2] - left, window[3] - top)
    if channels == 3:  # the same values as band by band, in half the time
        colours = Image.fromarray(np.ascontiguousarray(part.transpose(1, 2, 0)))
        shrunk = colours.resize((size, size), Image.Resampling.BILINEAR, box=box)
        return np.ascontiguousarray(np.asarray(shrunk).transpose(2, 0, 1))
    bands = (
        Image.fromarray(band).resize((size, size), Image.Resampling.BILINEAR, box=box)
        for band in part
    )
    return np.stack([np.asarray(band) for band in bands])


def cut_turned(
    image: UInt8[np.ndarray, "channels height width"],
    corners: Float64[np.ndarray, "3 2"],
    size: int,
) -> UInt8[np.ndarray, "channels size size"]:
    """Return a rectangle of an image that may be turned or mirrored in it, as an upright square.

    `corners` are its top left, top right and bottom left, in pixels of the image. An upright
    rectangle is what `cut` gives. Otherwise it is turned at full resolution and shrunk likewise.
    """
    first, across, down = corners[0], corners[1] - corners[0], corners[2] - corners[0]
    if abs(across[1]) < STRAIGHT and abs(down[0]) < STRAIGHT and across[0] > 0 and down[1] > 0:
        left, top = (float(number) for number in first)
        return cut(image, (left, top, left + float(across[0]), top + float(down[1])), size)
    longest = max(float(np.hypot(*across)), float(np.hypot(*down)))
    times = max(1, math.ceil(longest / size))
    side = size * times
    step_x, step_y = across / side, down / side
    # Pillow asks for the place of the corner of each new pixel, and adds the half itself.
    numbers = (step_x[0], step_y[0], first[0], step_x[1], step_y[1], first[1])
    bands = (
        Image.fromarray(band)
        .transform((side, side), Image.Transform.AFFINE, numbers, Image.Resampling.BILINEAR)
        .resize((size, size), Image.Resampling.BILINEAR)
        for band in image
    )
    return np.stack([np.asarray(band) for band in bands])
