"""What the map page shows: shapes in degrees, some hundred small pictures, the image below."""

import io
import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Int64, UInt8
from PIL import Image

from onesided.geo.input.coordinates import WGS84, between, converted, system
from onesided.geo.input.image import edge_in_degrees, to_pixels
from onesided.geo.output.packed import Rings
from onesided.geo.output.page import Bounds, MapItem, MapPage
from onesided.geo.output.summary import Summary, label
from onesided.geo.output.table import MapTable
from onesided.geo.scene.chips import Chips
from onesided.geo.scene.footprint_scene import OutlinedImage
from onesided.metrics.words import NOT_ESTIMATED, assumptions_of, full_value_text
from onesided.storage.names import printable
from onesided.storage.optional import library

TOP, DOUBTFUL, MARKED = 300, 100, 100
"""How many pictures the page carries: more would make it too large to send around."""
PICTURE_QUALITY, BASE_QUALITY = 70, 80
BASE_SIDE = 1600
"""Pixels of the longer side of the image under the buildings, at most."""
BASE_GREY = 235
"""Where that image has no data."""


def map_page(
    table: MapTable,
    chips: Chips,
    summary: Summary,
    *,
    title: str,
    after_from: int = 0,
    background: OutlinedImage | None = None,
    warnings: Sequence[str] = (),
) -> MapPage:
    """Return the content of the page.

    `after_from` is the first channel of the image after the event, 0 where there is none
    before it; `background` is the image to show under the buildings.
    """
    return MapPage(
        title=title,
        items=_items(table, chips, after_from),
        threshold=table.threshold,
        base=base_picture(background) if background is not None else None,
        facts=_facts(summary),
        warnings=warnings,
    )


def _items(table: MapTable, chips: Chips, after_from: int) -> list[MapItem]:
    buildings = table.buildings
    shapes = converted(buildings.geometries, buildings.system, system(WGS84))
    pictured = set(pictured_rows(table).tolist())
    ranks, roles = table.ranks, table.roles
    items = []
    for row, name in enumerate(buildings.names):
        before = after = None
        if row in pictured:
            chip = np.asarray(chips.values[row])
            after = _jpeg(chip[after_from:], PICTURE_QUALITY)
            before = _jpeg(chip[:after_from], PICTURE_QUALITY) if after_from else None
        score = float(table.scores[row])
        items.append(
            MapItem(
                name=printable(name),
                rings=_rings(shapes[row]),
                score=None if np.isnan(score) else score,
                rank=int(ranks[row]) or None,
                role=roles[row],
                reason=table.reasons.get(row),
                before=before,
                after=after,
            )
        )
    return items


def pictured_rows(table: MapTable) -> Int64[np.ndarray, "m"]:
    """Return the rows that get a picture: highest, near the threshold, marked with low scores."""
    unmarked = np.flatnonzero(table.scored & ~table.marked)
    marked = np.flatnonzero(table.scored & table.marked)
    highest = unmarked[np.argsort(-table.scores[unmarked], kind="stable")][:TOP]
    distance = np.abs(table.scores[unmarked] - table.threshold)
    doubtful = unmarked[np.argsort(distance, kind="stable")][:DOUBTFUL]
    lowest_marked = marked[np.argsort(table.scores[marked], kind="stable")][:MARKED]
    return np.unique(np.concatenate([highest, doubtful, lowest_marked]))


def _rings(shape: object) -> Rings:
    shapely = library("shapely", "A map")
    if shape is None or shapely.is_empty(shape):
        return ()
    corners = shapely.get_coordinates(shape)
    # Mercator has no poles, and conversion gives infinity far outside a coordinate system.
    if not np.isfinite(corners).all() or np.abs(corners[:, 1]).max() > 85:
        return ()
    if shapely.get_dimensions(shape) != 2:
        x, y = corners[0]
        return [[(float(x), float(y))]]
    return [
        [(float(x), float(y)) for x, y in shapely.get_coordinates(ring)]
        for part in shapely.get_parts(shape)
        for ring in (part.exterior, *part.interiors)
    ]


def _facts(summary: Summary) -> list[tuple[str, str]]:
    """Return label and value of every figure; a reason for missing figures comes only once."""
    facts, reasons = [], set()
    for figure in summary.figures:
        repeated = figure.value is None and figure.missing in reasons
        facts.append((label(figure), NOT_ESTIMATED if repeated else full_value_text(figure)))
        reasons.add(figure.missing)
    known = [figure for figure in summary.figures if figure.value is not None]
    return facts + [(f"assumes {each.label}", each.text) for each in assumptions_of(known)]


def base_picture(background: OutlinedImage, side: int = BASE_SIDE) -> tuple[bytes, Bounds] | None:
    """Return the image as JPEG: columns evenly spaced in longitude, rows in Web Mercator.

    By nearest neighbours and pyproj alone, so it needs no GDAL; takes about a second.
    """
    image, small = background.image, background.overview
    west, south, east, north = edge_in_degrees(image)
    if small is None or not (-85 < south < north < 85 and 0 < east - west <= 360):
        return None  # Mercator has no poles, and a map of the whole Earth needs no picture
    top, bottom = _mercator(north), _mercator(south)
    across, down = math.radians(east - west), top - bottom
    scale = min(side, max(small.valid.shape)) / max(across, down)
    width, height = max(1, round(across * scale)), max(1, round(down * scale))
    longitude = west + (np.arange(width) + 0.5) / width * (east - west)
    stretched = top - (np.arange(height) + 0.5) / height * down
    latitude = np.degrees(np.arctan(np.sinh(stretched)))
    picture = np.full((3, height, width), BASE_GREY, np.uint8)
    convert = between(system(WGS84), image.system)
    colours = _colours(small.values)
    small_height, small_width = small.valid.shape
    for row in range(height):  # a row at a time: coordinates take more memory than pixels
        points = convert(np.column_stack([longitude, np.full(width, latitude[row])]))
        column, line = to_pixels(image.matrix, points).T
        x = np.floor(column * small_width / image.width)
        y = np.floor(line * small_height / image.height)
        inside = (x >= 0) & (x < small_width) & (y >= 0) & (y < small_height)
        x, y = x[inside].astype(np.int64), y[inside].astype(np.int64)
        shown = small.valid[y, x]
        picture[:, row, np.flatnonzero(inside)[shown]] = colours[:, y[shown], x[shown]]
    turn = 360.0 * (west < -180)
    return _jpeg(picture, BASE_QUALITY), (west + turn, south, east + turn, north)


def _mercator(latitude: float) -> float:
    return math.asinh(math.tan(math.radians(latitude)))


def _colours(bands: UInt8[np.ndarray, "bands h w"]) -> UInt8[np.ndarray, "3 h w"]:
    """Return the first three bands as colours; the first of one or two as grey."""
    return bands[:3] if len(bands) >= 3 else np.repeat(bands[:1], 3, axis=0)


def _jpeg(bands: UInt8[np.ndarray, "bands h w"], quality: int) -> bytes:
    file = io.BytesIO()
    pixels = np.ascontiguousarray(_colours(bands).transpose(1, 2, 0))
    Image.fromarray(pixels).save(file, "JPEG", quality=quality)
    return file.getvalue()
