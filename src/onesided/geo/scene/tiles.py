"""An event of xBD: many small pictures, each with a label file that outlines its buildings.

A label file (`EVENT_ID_post_disaster.json`) gives every outline twice, in pixels of its
picture (`features.xy`) and in degrees (`features.lng_lat`). So neither a georeference nor
GDAL is needed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64

from onesided.core.errors import DataError, DataNotFound
from onesided.data.read.files import Unreadable
from onesided.data.read.polygons import MARGIN, BadPolygon, polygon_from_wkt
from onesided.data.sources.xbd.labels import ENDINGS as XBD_ENDINGS
from onesided.data.sources.xbd.labels import Outlined, read_outlined
from onesided.geo.input.coordinates import WGS84, Geometries, system
from onesided.geo.input.footprints import Buildings, check_different
from onesided.geo.input.image import Picture, Stretch
from onesided.geo.input.shapes import without_collections
from onesided.geo.scene.chips import Chip, file_identity
from onesided.geo.scene.footprint_scene import OutlinedImage, stacked

POST, PRE = "_post_disaster", "_pre_disaster"
ENDINGS = (*XBD_ENDINGS, ".jpg", ".jpeg")


@dataclass(frozen=True)
class EventTile:
    """The buildings of one label file.

    Attributes:
        images: Picture before and after, or after alone.
        outlines: In pixels; None where an outline cannot be read.
        first: Row of the first of these buildings in the scene.
    """

    images: tuple[Path, ...]
    outlines: Geometries
    first: int


class TileScene:
    """Buildings outlined in the pixels of many pictures."""

    def __init__(
        self, buildings: Buildings, tiles: Sequence[EventTile], *, margin: float = MARGIN
    ) -> None:
        self.buildings, self.tiles, self.margin = buildings, tiles, margin
        self.tile_of = np.repeat(np.arange(len(tiles)), [len(tile.outlines) for tile in tiles])
        self.channels = sum(outlined.image.bands for outlined in self._open(0))
        self._opened: tuple[int, list[OutlinedImage]] | None = None

    def order(self) -> Int64[np.ndarray, "n"]:
        """Return the rows in their own order: tile by tile."""
        return np.arange(len(self.buildings))

    def chips(self, rows: Sequence[int], size: int) -> Iterator[Chip]:
        """Return the chips of some rows, the bands of all pictures of a tile together."""
        for row in rows:
            tile = int(self.tile_of[row])
            try:
                if self._opened is None or self._opened[0] != tile:
                    self._opened = tile, self._open(tile)
                inside = row - self.tiles[tile].first
                yield stacked(self._opened[1], inside, size, self.margin)
            except Unreadable as error:
                yield f"its picture {error.reason}"

    def _open(self, number: int) -> list[OutlinedImage]:
        tile = self.tiles[number]
        images = [Picture(path, (1, 0, 0, 0, 1, 0), None) for path in tile.images]
        return [OutlinedImage(image, tile.outlines, Stretch.none(image.bands)) for image in images]

    def identity(self) -> Mapping[str, Any]:
        """Return the state of every picture, and the outlines as text."""
        return {
            "images": [file_identity(path) for tile in self.tiles for path in tile.images],
            "outlines": [str(shape) for tile in self.tiles for shape in tile.outlines],
            "margin": self.margin,
        }


def is_event(path: Path) -> bool:
    """Return whether a path is a folder of xBD label files, or one of them."""
    ending = f"{POST}.json"
    return any(path.rglob(f"*{ending}")) if path.is_dir() else path.name.endswith(ending)


def read_event(
    labels: Path, images: Path, *, pre: Path | None = None, margin: float = MARGIN
) -> TileScene:
    """Return the buildings of an xBD event.

    Labels are a folder of label files or one of them; images a folder of pictures after the
    event or one picture; `pre` the same before the event, if there are such pictures.
    """
    files = sorted(labels.rglob(f"*{POST}.json")) if labels.is_dir() else [labels]
    tiles: list[EventTile] = []
    found: list[Outlined] = []
    where: list[str] = []
    for file in files:
        read = read_outlined(file)
        if not read:
            continue
        if not all(building.uid for building in read):
            raise DataError(f"{file} outlines a building without properties.uid: it has no name.")
        after = _picture(images, file.stem)
        before = (_picture(pre, file.stem.replace(POST, PRE)),) if pre is not None else ()
        outlines = _outlines(building.pixels for building in read)
        tiles.append(EventTile((*before, after), outlines, len(found)))
        found += read
        where += [file.stem.removesuffix(POST)] * len(read)
    if not found:
        raise DataError(f"The label files in {labels} outline no building.")
    names = tuple(building.uid for building in found)
    check_different(names, str(labels))
    subtypes = [building.subtype for building in found]
    columns = {"subtype": np.array(subtypes, object), "tile": np.array(where, object)}
    geometries = _outlines(building.degrees for building in found)
    return TileScene(Buildings(names, geometries, system(WGS84), columns), tiles, margin=margin)


def _outlines(texts: Iterable[object]) -> Geometries:
    """Return geometries of well-known text, None for a bad one: that building is skipped."""
    shapes: list[object] = []
    for text in texts:
        try:
            shapes.append(polygon_from_wkt(text))
        except BadPolygon:
            shapes.append(None)
    # None keeps numpy from looking into shapes.
    return without_collections(np.array([*shapes, None], object)[:-1])[0]


def _picture(images: Path, stem: str) -> Path:
    if images.is_file():
        return images
    found = [path for ending in ENDINGS if (path := images / f"{stem}{ending}").is_file()]
    if not found:
        raise DataNotFound(
            f"There is no picture {stem}.png in {images}. Give the folder `images` that belongs "
            "to the labels."
        )
    return found[0]
