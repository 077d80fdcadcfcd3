"""Footprints seen in images: which window of which image shows which building."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64

from onesided.core.errors import ConfigError, DataError
from onesided.data.read.polygons import MARGIN, BadPolygon, building_window, cut, sound_polygon
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
"""A building of whose window less than this share is in the image is not scored."""
MOST_SHRUNK = 4
"""A window is read at up to this many times the chip's side; more is read from overviews."""


@dataclass(frozen=True)
class Sight:
    """One image and where in it the buildings are.

    Attributes:
        image: The open image.
        outlines: In pixels of the image.
        stretch: Which values become black and white.
        small: The whole image, shrunken and stretched, to be shown under the map; None
            where there are too many images for that.
    """

    image: OpenImage
    outlines: Geometries
    stretch: Stretch
    small: ImageWindow | None = None

    def chip(self, row: int, size: int, margin: float) -> Chip:
        """Return what the image shows of a building, or why it shows nothing."""
        try:
            outline, _ = sound_polygon(self.outlines[row])
            window = building_window(outline, margin=margin)
        except BadPolygon as error:
            return f"its outline {error.reason}"
        inner = inner_window(window, self.image)
        # Only the building itself counts here; its surroundings may end at the border.
        own = inner_window(outline.bounds, self.image)
        left, top, right, bottom = outline.bounds
        area = (right - left) * (bottom - top)
        if inner is None or own is None or _overlap(outline.bounds, self.image) < SHOWN * area:
            return f"lies outside {self.image.path.name}"
        side = max(window[2] - window[0], window[3] - window[1])
        shrink = max(1, int(side / (MOST_SHRUNK * size)))
        piece = self.image.read(*inner, shrink=shrink)
        if piece.valid.mean() < SHOWN:
            return f"no data in {self.image.path.name} ({1 - piece.valid.mean():.0%} of its window)"
        pixels = self.stretch.apply(piece.values)
        # The piece as read starts at `inner`, and one of its pixels is `shrink` of the image.
        across = pixels.shape[2] / (inner[2] - inner[0])
        down = pixels.shape[1] / (inner[3] - inner[1])
        if not piece.valid.all():
            columns = slice(int((own[0] - inner[0]) * across), ceil((own[2] - inner[0]) * across))
            rows = slice(int((own[1] - inner[1]) * down), ceil((own[3] - inner[1]) * down))
            missing = 1 - piece.valid[rows, columns].mean()
            if missing > SHOWN:
                return f"no data in {self.image.path.name} ({missing:.0%} of the building)"
            pixels = pixels * piece.valid
        return cut(
            pixels,
            (
                (window[0] - inner[0]) * across,
                (window[1] - inner[1]) * down,
                (window[2] - inner[0]) * across,
                (window[3] - inner[1]) * down,
            ),
            size,
        )


def stacked(sights: Sequence[Sight], row: int, size: int, margin: float) -> Chip:
    """Return what all images show of a building, band upon band, or the first reason why not."""
    seen = []
    for sight in sights:
        chip = sight.chip(row, size, margin)
        if isinstance(chip, str):
            return chip
        seen.append(chip)
    return np.concatenate(seen)


def _overlap(box: tuple[float, float, float, float], image: OpenImage) -> float:
    left, top, right, bottom = box
    across = min(right, image.width) - max(left, 0)
    down = min(bottom, image.height) - max(top, 0)
    return max(0.0, across) * max(0.0, down)


class FootprintScene:
    """Footprints in one image after the event and, if there is one, in another before it.

    The channels of a chip are the bands before, then those after.
    """

    def __init__(
        self, buildings: Buildings, sights: Sequence[Sight], *, margin: float = MARGIN
    ) -> None:
        self.buildings, self.sights, self.margin = buildings, sights, margin
        self.channels = sum(sight.image.bands for sight in sights)

    def order(self) -> Int64[np.ndarray, "n"]:
        """Return rows along the blocks of the last image, so that each is read about once."""
        shapely = library("shapely", "A footprint")
        sight = self.sights[-1]
        boxes = shapely.bounds(sight.outlines)
        middle = np.nan_to_num((boxes[:, :2] + boxes[:, 2:]) / 2)
        height, width = sight.image.block
        limit = np.array([sight.image.width, sight.image.height]) - 1
        block = (middle.clip(0, limit) // (width, height)).astype(np.int64)
        return np.lexsort((np.arange(len(block)), morton(block[:, 0], block[:, 1])))

    def chips(self, rows: Sequence[int], size: int) -> Iterator[Chip]:
        """Return the chips of some rows, all images on top of each other."""
        return (stacked(self.sights, row, size, self.margin) for row in rows)

    def identity(self) -> Mapping[str, Any]:
        """Return the images, their stretch, and a hash of where the buildings are in them."""
        shapely = library("shapely", "A footprint")
        outlines = hashlib.sha256()
        for sight in self.sights:
            for shape in shapely.to_wkb(sight.outlines):
                outlines.update(shape or b"")
        return {
            "images": [file_identity(sight.image.path) for sight in self.sights],
            "stretch": [[sight.stretch.low, sight.stretch.high] for sight in self.sights],
            "margin": self.margin,
            "outlines": outlines.hexdigest(),
        }


def morton(column: Int64[np.ndarray, "n"], row: Int64[np.ndarray, "n"]) -> Int64[np.ndarray, "n"]:
    """Return a number that grows along a curve which stays near where it is.

    Blocks in this order (Morton's, or Z) need a small cache: the neighbours above and
    below were read a moment ago, not a whole row of blocks before.
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
    stretches: Sequence[Stretch] | None = None,
) -> FootprintScene:
    """Open the images and find the buildings in them.

    Args:
        stack: Closes the images in the end.
        buildings: The footprints.
        images: Before and after, or after alone.
        margin: Surroundings of a building, in its own sizes.
        given_system: Coordinate system of images that name none.
        stretches: One for each image, from the model; None chooses them.
    """
    opened = [stack.enter_context(open_image(path, given_system)) for path in images]
    if given_system is not None:
        _check_needed(given_system, opened)
    sights = []
    for place, image in enumerate(opened):
        outlines = outlines_in_pixels(image, buildings.geometries, buildings.system)
        _check_overlap(image, outlines, buildings)
        whole = overview(image, OVERVIEW_SIDE)
        given = stretches[place] if stretches and place < len(stretches) else None
        # A stretch for other bands is no use; whoever gave it refuses such images.
        fits = given is not None and len(given.low) == image.bands
        stretch = given if given and fits else choose_stretch(image, whole)
        small = ImageWindow(stretch.apply(whole.values), whole.valid)
        sights.append(Sight(image, outlines, stretch, small))
    return FootprintScene(buildings, sights, margin=margin)


def _check_needed(given_system: str, opened: Sequence[OpenImage]) -> None:
    """Refuse a system for images all of which name another: it would not be used."""
    if any(same_system(image.system, system(given_system)) for image in opened):
        return
    named = " and ".join(str(image.system.name) for image in opened)
    raise ConfigError(
        f"--image-crs {given_system} is for images that name no coordinate system, and these "
        f"name theirs: {named}. Leave it out, or correct the files."
    )


def _check_overlap(image: OpenImage, outlines: Geometries, buildings: Buildings) -> None:
    shapely = library("shapely", "A footprint")
    boxes = shapely.bounds(outlines)
    inside = (
        (boxes[:, 0] < image.width)
        & (boxes[:, 2] > 0)
        & (boxes[:, 1] < image.height)
        & (boxes[:, 3] > 0)
    )
    if inside.any():
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
