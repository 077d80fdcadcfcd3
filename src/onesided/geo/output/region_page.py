"""The page of a region: shapes, scores and decisions, made piece by piece.

It holds as many buildings as a page can carry in flat memory, those to check first, and no
pictures: they would take more room than a page has. A base map can be switched on.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from onesided.geo.input.coordinates import WGS84, converted, system
from onesided.geo.output.basemap import Basemap
from onesided.geo.output.page import MapItem, MapPage
from onesided.geo.output.page_content import facts_of, rings_of
from onesided.geo.output.streamed import Decided
from onesided.geo.output.summary import Summary
from onesided.geo.output.table import roles_of
from onesided.geo.scene.pieces import Division, Piece
from onesided.storage.names import printable

MOST_SHOWN = 100_000
"""Buildings of a page: 1.5 KB of memory each while it is written, 150 bytes in the file."""


def region_page(
    division: Division,
    decided: Decided,
    summary: Summary,
    *,
    title: str,
    warnings: Sequence[str] = (),
    basemap: Basemap | None = None,
    most: int = MOST_SHOWN,
) -> MapPage:
    """Return the content of the page; buildings are in the order of the pieces."""
    shown = shown_buildings(decided, most)
    items = [item for piece in division.all() for item in _items(piece, decided, shown)]
    told = list(warnings)
    if not shown.all():
        told.append(
            f"This page shows {len(items):,} of {len(shown):,} buildings: the marked ones, and "
            "of the others those with the highest scores. The files beside it hold all."
        )
    return MapPage(
        title=title,
        items=items,
        threshold=decided.threshold,
        facts=facts_of(summary),
        warnings=tuple(told),
        basemap=basemap,
    )


def shown_buildings(decided: Decided, most: int = MOST_SHOWN) -> Bool[np.ndarray, "n"]:
    """Return which buildings a page shows: marked ones first, then by score; skipped ones last."""
    order = np.nan_to_num(decided.scores, nan=-np.inf)
    first = np.lexsort((-order, ~decided.marked))[:most]
    shown = np.zeros(len(order), bool)
    shown[first] = True
    return shown


def _items(piece: Piece, decided: Decided, shown: Bool[np.ndarray, "n"]) -> list[MapItem]:
    inside = np.flatnonzero(shown[piece.numbers])
    buildings = piece.buildings
    shapes = converted(buildings.geometries[inside], buildings.system, system(WGS84))
    numbers = piece.numbers[inside]
    roles = roles_of(
        decided.marked[numbers], decided.held_out[numbers], decided.rejected_at(numbers)
    )
    items = []
    for row, shape, role in zip(inside.tolist(), shapes, roles, strict=True):
        number = int(piece.numbers[row])
        score = float(decided.scores[number])
        items.append(
            MapItem(
                name=printable(buildings.names[row]),
                rings=rings_of(shape),
                score=None if np.isnan(score) else score,
                rank=int(decided.ranks[number]) or None,
                role=role,
                reason=decided.reasons.get(number),
            )
        )
    return items
