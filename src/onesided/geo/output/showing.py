"""The map as the web page shows it: shapes in degrees, a few hundred small pictures."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int64

from onesided.geo.input.coordinates import WGS84, converted, system
from onesided.geo.output.base import base_picture, colours_of, jpeg
from onesided.geo.output.page import Footprint, MapItem, MapPage, Point
from onesided.geo.output.summary import Summary, label
from onesided.geo.output.table import MapTable
from onesided.geo.scene.chips import Chips
from onesided.geo.scene.footprint_scene import Sight
from onesided.metrics.words import NOT_ESTIMATED, full_value_text
from onesided.storage.names import printable
from onesided.storage.optional import library

TOP, DOUBTFUL, MARKED = 300, 100, 100
"""How many pictures the page carries: the rest would make it too large to send around."""
PICTURE_QUALITY = 70


def map_page(
    table: MapTable,
    chips: Chips,
    summary: Summary,
    *,
    title: str,
    after_from: int = 0,
    sight: Sight | None = None,
    warnings: Sequence[str] = (),
) -> MapPage:
    """Return what the page shows.

    Args:
        table: The map.
        chips: What was seen of the buildings.
        summary: Numbers to be told beside the map.
        title: Headline.
        after_from: First channel of the image after the event; 0 where there is none before.
        sight: Image to show under the buildings.
        warnings: What should not be missed.
    """
    base = base_picture(sight) if sight is not None else None
    return MapPage(
        title=title,
        items=_items(table, chips, after_from),
        threshold=table.threshold,
        base=base[0] if base else None,
        base_bounds=base[1] if base else None,
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
            after = _picture(chip[after_from:])
            before = _picture(chip[:after_from]) if after_from else None
        score = float(table.scores[row])
        items.append(
            MapItem(
                name=printable(name),
                geometry=_geometry(shapes[row]),
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
    """Return the rows whose pictures are shown: best, undecided, and doubted marked ones."""
    free = np.flatnonzero(table.scored & ~table.marked)
    marked = np.flatnonzero(table.scored & table.marked)
    best = free[np.argsort(-table.scores[free], kind="stable")][:TOP]
    doubt = np.abs(table.scores[free] - table.threshold)
    doubtful = free[np.argsort(doubt, kind="stable")][:DOUBTFUL]
    doubted = marked[np.argsort(table.scores[marked], kind="stable")][:MARKED]
    return np.unique(np.concatenate([best, doubtful, doubted]))


def _picture(bands: np.ndarray) -> bytes:
    return jpeg(colours_of(bands).transpose(1, 2, 0), quality=PICTURE_QUALITY)


def _geometry(shape: object) -> Point | Footprint | None:
    shapely = library("shapely", "A map")
    if shape is None or shapely.is_empty(shape):
        return None
    corners = shapely.get_coordinates(shape)
    # The page knows no poles, and a coordinate system knows no places far outside itself.
    if not np.isfinite(corners).all() or np.abs(corners[:, 1]).max() > 85:
        return None
    if shapely.get_dimensions(shape) != 2:
        x, y = corners[0]
        return Point(float(x), float(y))
    rings = []
    for part in shapely.get_parts(shape):
        for ring in (part.exterior, *part.interiors):
            rings.append([(float(x), float(y)) for x, y in shapely.get_coordinates(ring)])
    return Footprint(rings)


def _facts(summary: Summary) -> list[tuple[str, str]]:
    """Return label and value of every figure; a reason why some are missing is told once."""
    facts, reasons = [], set()
    for figure in summary.figures:
        told = full_value_text(figure)
        if figure.value is None and figure.missing in reasons:
            told = NOT_ESTIMATED
        reasons.add(figure.missing)
        facts.append((label(figure), told))
    return facts
