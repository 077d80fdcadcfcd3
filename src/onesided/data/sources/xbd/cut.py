"""The buildings of a tile of xBD, as crops of one size."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8

from onesided.data.read.files import Unreadable
from onesided.data.read.picture import decode
from onesided.data.read.polygons import Window, cut, share_inside
from onesided.data.sources.xbd.labels import Building, XbdTile, read_labels
from onesided.storage.names import printable

COLUMNS = ("uid", "event", "tile", "subtype", "lon", "lat", "left", "top", "right", "bottom")
"""What is known of each crop; the last four are its window, in pixels of the tile."""
SIZE = 64
# Tiles per window. A building as large as its tile needs 4; more is a slip of the hand.
_LARGEST = 9


@dataclass(frozen=True)
class CutTile:
    """One tile, cut up: crops, lines of the table, and what was counted or left out.

    Attributes:
        lines: What `COLUMNS` say of each crop.
        counts: Crops by damage, and by what had to be done for them.
        left_out: Buildings without a crop, by the reason.
        skipped: The file that could not be read, and why.
    """

    crops: UInt8[np.ndarray, "n 3 64 64"]
    lines: tuple[tuple[object, ...], ...]
    counts: Counter[str]
    left_out: Counter[str]
    skipped: tuple[str, str] | None = None


def cut_tiles(tiles: Sequence[XbdTile]) -> Iterator[CutTile]:
    """Cut up tiles by several threads, in order, a few at a time."""
    workers = min(8, os.cpu_count() or 1)
    with ThreadPoolExecutor(workers) as pool:
        # Executor.map alone would take all tiles at once and pile up what they are cut to.
        for start in range(0, len(tiles), 4 * workers):
            yield from pool.map(_cut_tile, tiles[start : start + 4 * workers])


def _cut_tile(tile: XbdTile) -> CutTile:
    file = tile.label
    try:
        labels = read_labels(tile)
        file = tile.image
        # Many tiles are open country: their image need not be decoded.
        image = decode(file, channels=3) if labels.buildings else np.empty((3, 0, 0), np.uint8)
    except Unreadable as error:
        reason = (printable(file.name), error.reason)
        return CutTile(_no_crops(), (), Counter(), Counter(), reason)
    counts, left_out, crops, lines = Counter[str](), labels.left_out.copy(), [], []
    for building in labels.buildings:
        against = _reason_against(building, image)
        if against is not None:
            left_out[against] += 1
            continue
        crops.append(cut(image, building.window, SIZE))
        place = (building.uid, tile.event, tile.name, building.subtype, building.lon, building.lat)
        lines.append((*place, *(round(edge, 3) for edge in building.window)))
        counts[building.subtype] += 1
        counts["partly black, at the border"] += _inside(building.window, image) < 1
        counts["with a repaired outline"] += building.repaired
        counts["with an outline of several parts"] += building.parts > 1
    return CutTile(np.stack(crops) if crops else _no_crops(), tuple(lines), counts, left_out)


def _reason_against(building: Building, image: np.ndarray) -> str | None:
    if _inside(building.box, image) <= 0:
        return "outside their image"
    left, top, right, bottom = building.window
    too_large = (right - left) * (bottom - top) > image.shape[1] * image.shape[2] * _LARGEST
    return "too large to be buildings" if too_large else None


def _inside(window: Window, image: np.ndarray) -> float:
    return share_inside(window, height=image.shape[1], width=image.shape[2])


def _no_crops() -> UInt8[np.ndarray, "0 3 64 64"]:
    return np.empty((0, 3, SIZE, SIZE), np.uint8)
