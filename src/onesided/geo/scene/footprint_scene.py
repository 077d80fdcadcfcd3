"""Footprints in images: which window of which image shows which building."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import zip_longest
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from onesided.core.errors import ConfigError, DataError
from onesided.data.read.polygons import (
    MARGIN,
    BadPolygon,
    Window,
    building_window,
    cut_turned,
    share_inside,
    sound_polygon,
)
from onesided.geo.input.coordinates import (
    WGS84,
    Coordinates,
    Geometries,
    bounds_of,
    converted,
    moved,
    same_system,
    system,
)
from onesided.geo.input.footprints import Buildings
from onesided.geo.input.image import (
    ImageWindow,
    OpenImage,
    Stretch,
    choose_stretch,
    edge_in_degrees,
    inner_window,
    metres_per_pixel,
    open_image,
    outlines_in_pixels,
    overview,
    pixels_between,
    upright_grid,
)
from onesided.geo.input.imagery import Imagery
from onesided.geo.scene.chips import Chip, file_identity
from onesided.storage.optional import library

OVERVIEW_SIDE = 1600
SHOWN = 0.5
"""A building is not scored if less than this share of it, or of its window, has pixels."""
FEW_PIXELS = 4
"""A footprint that is smaller in both directions shows nothing of a roof."""
MOST_SHRUNK = 4
"""A window is read at up to this many times the chip's side, a larger one from overviews."""


@dataclass(frozen=True)
class SceneImage:
    """An open image, how its values become 0 to 255, and a small copy of all of it."""

    image: OpenImage
    stretch: Stretch
    overview: ImageWindow


@dataclass(frozen=True)
class OutlinedImage:
    """One image, and the outlines of the buildings in its pixels.

    Attributes:
        outlines: In columns and rows of the grid on which all images of a scene are cut.
        overview: The whole image, small and stretched, to be shown under the map; None where
            there are too many images for that.
        place: From pixels of the grid to those of the image; None where they are the same.
    """

    image: OpenImage
    outlines: Geometries
    stretch: Stretch
    overview: ImageWindow | None = None
    place: Callable[[Coordinates], Coordinates] | None = None

    def chip(self, row: int, size: int, margin: float) -> Chip:
        """Return what the image shows of a building, or the reason why it is skipped."""
        try:
            outline, _ = sound_polygon(self.outlines[row])
            window = building_window(outline, margin=margin)
        except BadPolygon as error:
            return f"its outline {error.reason}"
        own, corners = self.box(outline.bounds), self._corners(window)
        shown = self.box(window)
        inner, inside = inner_window(shown, self.image), inner_window(own, self.image)
        # Only the building itself counts here; its surroundings may end at the border.
        share = share_inside(own, height=self.image.height, width=self.image.width)
        if inner is None or inside is None or share < SHOWN:
            return f"lies outside {self.image.path.name}"
        side = max(shown[2] - shown[0], shown[3] - shown[1])
        shrink = max(1, int(side / (MOST_SHRUNK * size)))
        part = self.image.read(*inner, shrink=shrink)
        is_whole = bool(part.valid.all())
        if not is_whole and part.valid.mean() < SHOWN:
            return f"no data in {self.image.path.name} ({1 - part.valid.mean():.0%} of its window)"
        pixels = self.stretch.apply(part.values)
        # What was read starts at `inner`, and one of its pixels is `shrink` of the image.
        scale = np.array(
            [pixels.shape[2] / (inner[2] - inner[0]), pixels.shape[1] / (inner[3] - inner[1])]
        )
        if not is_whole:
            left, top = (np.array(inside[:2]) - inner[:2]) * scale
            right, bottom = (np.array(inside[2:]) - inner[:2]) * scale
            missing = 1 - part.valid[int(top) : ceil(bottom), int(left) : ceil(right)].mean()
            if missing > SHOWN:
                return f"no data in {self.image.path.name} ({missing:.0%} of the building)"
            pixels = pixels * part.valid
        return cut_turned(pixels, (corners - inner[:2]) * scale, size)

    def _corners(self, window: Window) -> Float64[np.ndarray, "3 2"]:
        """Return three corners of a window in pixels of the image: top left, top right, bottom."""
        left, top, right, bottom = window
        corners = np.array([[left, top], [right, top], [left, bottom]])
        return corners if self.place is None else self.place(corners)

    def box(self, window: Window) -> Window:
        """Return the upright rectangle in pixels of the image around a window of the grid."""
        if self.place is None:
            return window
        first, second, third = self._corners(window)
        every = np.stack([first, second, third, second + third - first])
        (left, top), (right, bottom) = every.min(axis=0), every.max(axis=0)
        return float(left), float(top), float(right), float(bottom)


def stacked(images: Sequence[OutlinedImage], row: int, size: int, margin: float) -> Chip:
    """Return what all images show of a building, band upon band, or the first reason why not."""
    seen = []
    for image in images:
        chip = image.chip(row, size, margin)
        if isinstance(chip, str):
            return chip
        seen.append(chip)
    return np.concatenate(seen)


class FootprintScene:
    """Footprints in one image after the event and, if given, in one before it.

    The channels of a chip are the bands before the event, then those after it.
    """

    def __init__(
        self, buildings: Buildings, images: Sequence[OutlinedImage], *, margin: float = MARGIN
    ) -> None:
        self.buildings, self.images, self.margin = buildings, images, margin
        self.channels = sum(outlined.image.bands for outlined in images)

    def order(self) -> Int64[np.ndarray, "n"]:
        """Return rows along the blocks of the last image: each block is read about once."""
        last = self.images[-1]
        boxes = library("shapely", "A footprint").bounds(last.outlines)
        middle = np.nan_to_num((boxes[:, :2] + boxes[:, 2:]) / 2)
        if last.place is not None:
            middle = last.place(middle)
        image = last.image
        height, width = image.block
        limit = np.array([image.width, image.height]) - 1
        block = (middle.clip(0, limit) // (width, height)).astype(np.int64)
        return np.lexsort((np.arange(len(block)), morton(block[:, 0], block[:, 1])))

    def chips(self, rows: Sequence[int], size: int) -> Iterator[Chip]:
        """Return the chips of some rows, the bands of all images together."""
        return (stacked(self.images, row, size, self.margin) for row in rows)

    def identity(self) -> Mapping[str, Any]:
        """Return the images, their stretch, and a hash of where the buildings are in them."""
        shapely = library("shapely", "A footprint")
        outlines = hashlib.sha256()
        for shape in shapely.to_wkb(self.images[-1].outlines):
            outlines.update(shape or b"")
        return {
            "images": [file_identity(each.image.path) for each in self.images],
            "grids": [each.image.matrix for each in self.images],
            "stretch": [[each.stretch.low, each.stretch.high] for each in self.images],
            "margin": self.margin,
            "outlines": outlines.hexdigest(),
        }


def morton(column: Int64[np.ndarray, "n"], row: Int64[np.ndarray, "n"]) -> Int64[np.ndarray, "n"]:
    """Return the place of each block along Morton's curve (Z-order).

    Blocks in this order need a small cache: the neighbours above and below were read a
    moment ago, not a whole row of blocks before.
    """
    code = np.zeros_like(column)
    for bit in range(20):  # a million blocks in each direction
        code |= (column >> bit & 1) << (2 * bit) | (row >> bit & 1) << (2 * bit + 1)
    return code


def open_scene(
    stack: ExitStack,
    buildings: Buildings,
    images: Sequence[Path | Imagery],
    *,
    margin: float = MARGIN,
    given_system: str | None = None,
    stretches: Sequence[Stretch] = (),
    shift: tuple[float, float] = (0.0, 0.0),
) -> FootprintScene:
    """Open the images (before and after, or after alone) and find the buildings in them.

    The stack closes the images at the end. `given_system` is for images that name no coordinate
    system; `stretches` are those of the model, and an image without one gets its own.
    """
    opened = open_images(stack, images, given_system=given_system, stretches=stretches)
    scene = outlined_scene(buildings, opened, margin=margin, shift=shift)
    for one in opened:
        _check_overlap(one.image, buildings)
    return scene


def open_images(
    stack: ExitStack,
    images: Sequence[Path | Imagery],
    *,
    given_system: str | None = None,
    stretches: Sequence[Stretch] = (),
) -> list[SceneImage]:
    """Open images and choose how their values become 0 to 255; see `open_scene`."""
    opened = [stack.enter_context(open_image(path, given_system)) for path in images]
    if given_system is not None:
        _check_needed(given_system, opened)
    found = []
    for image, given in zip_longest(opened, stretches[: len(opened)]):
        whole = overview(image, OVERVIEW_SIDE)
        # A stretch for another number of bands is of no use; `check_images_fit` refuses it later.
        fits = given is not None and len(given.low) == image.bands
        stretch = given if given is not None and fits else choose_stretch(image, whole)
        small = ImageWindow(stretch.apply(whole.values), whole.valid)
        found.append(SceneImage(image, stretch, small))
    return found


def outlined_scene(
    buildings: Buildings,
    images: Sequence[SceneImage],
    *,
    margin: float = MARGIN,
    shift: tuple[float, float] = (0.0, 0.0),
) -> FootprintScene:
    """Find buildings in images, on the grid of the last one with north up.

    `shift` moves the outlines by so many metres to the east and to the north before anything is
    cut; the geometries that are written stay as they are.
    """
    last = images[-1].image
    grid = upright_grid(last)
    outlines = outlines_in_pixels(last, buildings.geometries, buildings.system, grid)
    if shift != (0.0, 0.0):
        wide, high = metres_per_pixel(grid, last.height)
        by = np.array([shift[0] / wide, -shift[1] / high])
        outlines = moved(outlines, lambda points: points + by)
    outlined = []
    for one in images:
        same = one.image.matrix == grid.matrix and one.image.system == grid.system
        place = None if same else pixels_between(grid, one.image)
        outlined.append(OutlinedImage(one.image, outlines, one.stretch, one.overview, place))
    return FootprintScene(buildings, outlined, margin=margin)


def size_warnings(scene: FootprintScene) -> tuple[str, ...]:
    """Return what to tell about footprints that show little: very small, or partly outside."""
    last = scene.images[-1]
    boxes = np.asarray(library("shapely", "A footprint").bounds(last.outlines), np.float64)
    known = np.flatnonzero(np.isfinite(boxes).all(axis=1))
    wide, high = (boxes[known, 2:] - boxes[known, :2]).T
    small = int((np.maximum(wide, high) < FEW_PIXELS).sum())
    partly = 0
    name, image = last.image.path.name, last.image
    for left, top, right, bottom in boxes[known].tolist():
        if left < right and top < bottom:
            box = last.box((left, top, right, bottom))
            partly += SHOWN <= share_inside(box, height=image.height, width=image.width) < 1
    warnings = []
    if small:
        warnings.append(
            f"{small} of {len(boxes)} footprints are smaller than {FEW_PIXELS} pixels in {name}: "
            "their scores say little. An image of higher resolution would show them."
        )
    if partly:
        warnings.append(
            f"{partly} of {len(boxes)} footprints lie partly outside {name}. They are scored by "
            "the part that it shows."
        )
    return tuple(warnings)


def _check_needed(given_system: str, opened: Sequence[OpenImage]) -> None:
    """Refuse a system that no image uses, because all images name another one."""
    if any(same_system(image.system, system(given_system)) for image in opened):
        return
    named = " and ".join(str(image.system.name) for image in opened)
    raise ConfigError(
        f"--image-crs {given_system} is for images that name no coordinate system, and these "
        f"name theirs: {named}. Leave it out, or correct the files."
    )


def _check_overlap(image: OpenImage, buildings: Buildings) -> None:
    outlines = outlines_in_pixels(image, buildings.geometries, buildings.system)
    left, top, right, bottom = library("shapely", "A footprint").bounds(outlines).T
    if ((left < image.width) & (right > 0) & (top < image.height) & (bottom > 0)).any():
        return
    theirs = bounds_of(converted(buildings.geometries, buildings.system, system(WGS84)))
    where = "nowhere" if theirs is None else _degrees(theirs)
    raise DataError(
        f"None of the {len(buildings)} buildings lies in {image.path}: the image covers "
        f"{_degrees(edge_in_degrees(image))}, the buildings {where}. Check the coordinate "
        "systems of both, and that they show the same place."
    )


def _degrees(box: tuple[float, float, float, float]) -> str:
    west, south, east, north = box
    return f"longitude {west:.4f} to {east:.4f} and latitude {south:.4f} to {north:.4f}"
