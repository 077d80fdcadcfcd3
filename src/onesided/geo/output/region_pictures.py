"""Pictures in the page of a region: the image at the sizes that fit, and its buildings sharp.

A region's image is often too large to lie beside a page with its own pixels. Then it is coarser,
and the buildings that people look at first have a sharp picture each. Everything is read piece by
piece, and a picture is in memory only while it is written.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64, Int64, UInt8

from onesided.geo.input.footprints import Buildings
from onesided.geo.output.page_content import fitting_chips
from onesided.geo.output.page_files import PageFiles
from onesided.geo.output.pyramid import NO_DATA, plan_pyramid
from onesided.geo.scene.footprint_scene import (
    FootprintScene,
    OutlinedImage,
    SceneImage,
    outlined_scene,
)
from onesided.geo.scene.pieces import Division

SIDE = 160
"""Pixels of a picture: a house with its surroundings at 30 cm."""
AROUND = 0.75
"""Surroundings of a building, in its own sizes; the page cuts by the same number."""
FOR_PICTURES = 0.2
"""Of the room for files, for pictures of buildings, where the image itself is coarse."""


@dataclass(frozen=True)
class RegionImages:
    """The images of a region, as its page shows them.

    Attributes:
        images: Before and after the event, or after alone; none shows no pictures.
        shift: Metres by which footprints are moved before anything is cut.
        megabytes: Room for the files beside the page.
    """

    images: Sequence[SceneImage] = ()
    shift: tuple[float, float] = (0.0, 0.0)
    megabytes: float = 0.0

    @property
    def after_from(self) -> int:
        """First channel of a picture after the event."""
        return sum(each.image.bands for each in self.images[:-1])

    def layers(self) -> list[OutlinedImage]:
        """Return the images without any building."""
        nobody = np.zeros(0, object)
        return [
            OutlinedImage(each.image, nobody, each.stretch, each.overview) for each in self.images
        ]

    def scene(self, buildings: Buildings) -> FootprintScene:
        """Return some buildings in the images."""
        return outlined_scene(buildings, self.images, margin=AROUND, shift=self.shift)


@dataclass
class RegionChips:
    """Pictures of buildings of a region; each is cut when it is asked for.

    Attributes:
        pieces: Piece of each building of the page; buildings of a piece follow each other.
        rows: Its row in that piece.
    """

    division: Division
    images: RegionImages
    pieces: Int64[np.ndarray, "n"]
    rows: Int64[np.ndarray, "n"]
    open: tuple[int, FootprintScene] | None = field(default=None, repr=False)

    def __getitem__(self, item: int) -> UInt8[np.ndarray, "channels side side"]:
        """Return what the images show of a building of the page."""
        return picture_of(self._scene(int(self.pieces[item])), int(self.rows[item]))

    def _scene(self, piece: int) -> FootprintScene:
        """Return the scene of a piece; the last one is kept, since buildings come in its order."""
        if self.open is None or self.open[0] != piece:
            self.open = piece, self.images.scene(self.division.read(piece).buildings)
        return self.open[1]


def picture_of(scene: FootprintScene, row: int) -> UInt8[np.ndarray, "channels side side"]:
    """Return a building with its surroundings, grey where the images show too little of them."""
    chip = next(scene.chips([row], SIDE))
    if isinstance(chip, str):
        return np.full((scene.channels, SIDE, SIDE), NO_DATA, np.uint8)
    return chip


def region_files(
    chips: RegionChips,
    boxes: Float64[np.ndarray, "n 4"],
    pictured: Int64[np.ndarray, "m"],
    scores: Float64[np.ndarray, "n"],
) -> PageFiles:
    """Return what to write beside the page; `boxes` and `scores` are of its buildings."""
    shown, room = chips.images, chips.images.megabytes * 1e6
    names = ("before", "after")[-len(shown.images) :] if shown.images else ()
    each = room * (1 - FOR_PICTURES) / max(1, len(names))
    layers = {}
    for name, image in zip(names, shown.layers(), strict=True):
        pyramid = plan_pyramid(image, boxes, most_bytes=each)
        if pyramid is not None:
            layers[name] = pyramid
    if not len(pictured) or (layers and all(pyramid.is_sharp for pyramid in layers.values())):
        return PageFiles(layers)
    few = fitting_chips(chips, pictured, scores, shown.after_from, room * FOR_PICTURES)
    return PageFiles(layers, few if len(few.rows) else None)
