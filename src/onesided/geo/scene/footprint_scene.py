"""Footprints in images: which window of which image shows which building."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import zip_longest
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64

from onesided.core.errors import ConfigError, DataError
from onesided.data.read.polygons import (
    MARGIN,
    BadPolygon,
    building_window,
    cut,
    share_inside,
    sound_polygon,
)
from onesided.geo.input.coordinates import (
    WGS84,
    Geometries,
    bounds_of,
    converted,
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
    open_image,
    outlines_in_pixels,
    overview,
)
from onesided.geo.scene.chips import Chip, file_identity
from onesided.storage.optional import library

OVERVIEW_SIDE = 1600
SHOWN = 0.5
"""A building is not scored if less than this share of it, or of its window, has pixels."""
MOST_SHRUNK = 4
"""A window is read at up to this many times the chip's side, a larger one from overviews."""


@dataclass(frozen=True)
class OutlinedImage:
    """One image, and the outlines of the buildings in its pixels.

    Attributes:
        overview: The whole image, small and stretched, to be shown under the map; None where
            there are too many images for that.
    """

    image: OpenImage
    outlines: Geometries
    stretch: Stretch
    overview: ImageWindow | None = None

    def chip(self, row: int, size: int, margin: float) -> Chip:
        """Return what the image shows of a building, or the reason why it is skipped."""
        try:
            outline, _ = sound_polygon(self.outlines[row])
            window = building_window(outline, margin=margin)
        except BadPolygon as error:
            return f"its outline {error.reason}"
        inner = inner_window(window, self.image)
        own = inner_window(outline.bounds, self.image)
        # Only the building itself counts here; its surroundings may end at the border.
        share = share_inside(outline.bounds, height=self.image.height, width=self.image.width)
        if inner is None or own is None or share < SHOWN:
            return f"lies outside {self.image.path.name}"
        side = max(window[2] - window[0], window[3] - window[1])
        shrink = max(1, int(side / (MOST_SHRUNK * size)))
        part = self.image.read(*inner, shrink=shrink)
        if part.valid.mean() < SHOWN:
            return f"no data in {self.image.path.name} ({1 - part.valid.mean():.0%} of its window)"
        pixels = self.stretch.apply(part.values)
        # What was read starts at `inner`, and one of its pixels is `shrink` of the image.
        across = pixels.shape[2] / (inner[2] - inner[0])
        down = pixels.shape[1] / (inner[3] - inner[1])
        if not part.valid.all():
            columns = slice(int((own[0] - inner[0]) * across), ceil((own[2] - inner[0]) * across))
            rows = slice(int((own[1] - inner[1]) * down), ceil((own[3] - inner[1]) * down))
            missing = 1 - part.valid[rows, columns].mean()
            if missing > SHOWN:
                return f"no data in {self.image.path.name} ({missing:.0%} of the building)"
            pixels = pixels * part.valid
        left, right = (window[0] - inner[0]) * across, (window[2] - inner[0]) * across
        top, bottom = (window[1] - inner[1]) * down, (window[3] - inner[1]) * down
        return cut(pixels, (left, top, right, bottom), size)


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
        image, outlines = self.images[-1].image, self.images[-1].outlines
        boxes = library("shapely", "A footprint").bounds(outlines)
        middle = np.nan_to_num((boxes[:, :2] + boxes[:, 2:]) / 2)
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
        for outlined in self.images:
            for shape in shapely.to_wkb(outlined.outlines):
                outlines.update(shape or b"")
        return {
            "images": [file_identity(each.image.path) for each in self.images],
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
    images: Sequence[Path],
    *,
    margin: float = MARGIN,
    given_system: str | None = None,
    stretches: Sequence[Stretch] = (),
) -> FootprintScene:
    """Open the images (before and after, or after alone) and find the buildings in them.

    The stack closes the images at the end. `given_system` is for images that name no coordinate
    system; `stretches` are those of the model, and an image without one gets its own.
    """
    opened = [stack.enter_context(open_image(path, given_system)) for path in images]
    if given_system is not None:
        _check_needed(given_system, opened)
    outlined = []
    for image, given in zip_longest(opened, stretches[: len(opened)]):
        outlines = outlines_in_pixels(image, buildings.geometries, buildings.system)
        _check_overlap(image, outlines, buildings)
        whole = overview(image, OVERVIEW_SIDE)
        # A stretch for another number of bands is of no use; `check_images_fit` refuses it later.
        fits = given is not None and len(given.low) == image.bands
        stretch = given if given is not None and fits else choose_stretch(image, whole)
        small = ImageWindow(stretch.apply(whole.values), whole.valid)
        outlined.append(OutlinedImage(image, outlines, stretch, small))
    return FootprintScene(buildings, outlined, margin=margin)


def _check_needed(given_system: str, opened: Sequence[OpenImage]) -> None:
    """Refuse a system that no image uses, because all images name another one."""
    if any(same_system(image.system, system(given_system)) for image in opened):
        return
    named = " and ".join(str(image.system.name) for image in opened)
    raise ConfigError(
        f"--image-crs {given_system} is for images that name no coordinate system, and these "
        f"name theirs: {named}. Leave it out, or correct the files."
    )


def _check_overlap(image: OpenImage, outlines: Geometries, buildings: Buildings) -> None:
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
