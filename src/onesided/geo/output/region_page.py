"""The page of a region: shapes, scores, decisions and pictures, made piece by piece.

It holds as many buildings as a page can carry in flat memory, those to check first.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from onesided.geo.input.coordinates import WGS84, converted, system
from onesided.geo.output.basemap import Basemap
from onesided.geo.output.page import MapItem, MapPage
from onesided.geo.output.page_attributes import MOST_COLUMNS
from onesided.geo.output.page_content import (
    PICTURE_QUALITY,
    base_picture,
    described,
    facts_of,
    pictured_rows,
    rings_of,
    shortage,
)
from onesided.geo.output.page_files import PageFiles
from onesided.geo.output.pyramid import jpeg
from onesided.geo.output.region_pictures import RegionChips, RegionImages, picture_of, region_files
from onesided.geo.output.streamed import Decided
from onesided.geo.output.summary import Summary
from onesided.geo.output.table import roles_of
from onesided.geo.scene.footprint_scene import FootprintScene
from onesided.geo.scene.pieces import Division, Piece
from onesided.storage.names import printable
from onesided.storage.optional import library

MOST_SHOWN = 100_000
"""Buildings of a page: 1.5 KB of memory each while it is written, 150 bytes in the file."""
MORE_BESIDE = 20
"""So many times the pictures that a page has inside lie beside it: ten thousand."""


def region_page(
    division: Division,
    decided: Decided,
    summary: Summary,
    *,
    title: str,
    images: RegionImages | None = None,
    warnings: Sequence[str] = (),
    basemap: Basemap | None = None,
    most: int = MOST_SHOWN,
) -> MapPage:
    """Return the content of the page; buildings are in the order of the pieces."""
    images = images or RegionImages()
    shown = _Shown(division, decided, images, shown_buildings(decided, most))
    items = [item for piece in range(division.pieces) for item in shown.items(piece)]
    told = list(warnings)
    if len(items) < division.count:
        told.append(
            f"This page shows {len(items):,} of {division.count:,} buildings: the marked ones, and "
            "of the others those with the highest scores. The files beside it hold all."
        )
    if not images.images:
        told.append(
            "This page has no pictures, because no image was given. For pictures, merge again with "
            "--image, and with --pre and --shift as for the parts."
        )
    bases = [base_picture(layer) for layer in images.layers()]
    files = shown.files() if bases else PageFiles()
    return MapPage(
        title=title,
        items=items,
        threshold=decided.threshold,
        base=bases[-1] if bases else None,
        base_before=bases[0] if len(bases) > 1 else None,
        files=files,
        facts=facts_of(summary),
        warnings=(*told, *shortage(files, images.megabytes)),
        attributes=described(shown.names, shown.columns),
        basemap=basemap,
    )


def shown_buildings(decided: Decided, most: int = MOST_SHOWN) -> Bool[np.ndarray, "n"]:
    """Return which buildings a page shows: marked ones first, then by score; skipped ones last."""
    order = np.nan_to_num(decided.scores, nan=-np.inf)
    first = np.lexsort((-order, ~decided.marked))[:most]
    shown = np.zeros(len(order), bool)
    shown[first] = True
    return shown


class _Shown:
    """The buildings of the page, in the order in which they are asked for."""

    def __init__(
        self,
        division: Division,
        decided: Decided,
        images: RegionImages,
        shown: Bool[np.ndarray, "n"],
    ) -> None:
        self.division, self.decided, self.images, self.shown = division, decided, images, shown
        self.pictured = self._chosen(1) if images.images else np.zeros(len(shown), bool)
        self.numbers, self.pieces = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        self.names: list[str] = []
        self.columns: dict[str, list[object]] = {
            name: [] for name in division.columns[:MOST_COLUMNS]
        }
        self.rows, self.boxes = [np.zeros(0, np.int64)], [np.zeros((0, 4))]

    def _chosen(self, times: int) -> Bool[np.ndarray, "n"]:
        """Return which buildings have a picture, inside the page or `times` as many beside it."""
        decided, chosen = self.decided, np.zeros(len(self.shown), bool)
        scores, marked = decided.scores, decided.marked
        chosen[pictured_rows(scores, marked, decided.threshold, times=times)] = True
        chosen &= self.shown
        return chosen

    def items(self, number: int) -> list[MapItem]:
        """Return the buildings of a piece that the page shows."""
        piece = self.division.read(number, attributes=True)
        inside = np.flatnonzero(self.shown[piece.numbers])
        buildings = piece.buildings
        shapes = converted(buildings.geometries[inside], buildings.system, system(WGS84))
        self.names += [buildings.names[row] for row in inside.tolist()]
        for name, values in self.columns.items():
            values += buildings.columns[name][inside].tolist()
        self.numbers.append(piece.numbers[inside])
        self.pieces.append(np.full(len(inside), number))
        self.rows.append(inside)
        self.boxes.append(library("shapely", "A map").bounds(shapes).reshape(-1, 4))
        scene = self.images.scene(buildings) if self.pictured[piece.numbers].any() else None
        numbers = piece.numbers[inside]
        decided = self.decided
        roles = roles_of(
            decided.marked[numbers], decided.held_out[numbers], decided.rejected_at(numbers)
        )
        return [
            self._item(piece, row, shape, role, scene)
            for row, shape, role in zip(inside.tolist(), shapes, roles, strict=True)
        ]

    def _item(
        self, piece: Piece, row: int, shape: object, role: str, scene: FootprintScene | None
    ) -> MapItem:
        decided, number = self.decided, int(piece.numbers[row])
        score, before, after = float(decided.scores[number]), None, None
        if scene is not None and self.pictured[number]:
            chip, after_from = picture_of(scene, row), self.images.after_from
            after = jpeg(chip[after_from:], PICTURE_QUALITY)
            before = jpeg(chip[:after_from], PICTURE_QUALITY) if after_from else None
        return MapItem(
            name=printable(piece.buildings.names[row]),
            rings=rings_of(shape),
            score=None if np.isnan(score) else score,
            rank=int(decided.ranks[number]) or None,
            role=role,
            reason=decided.reasons.get(number),
            before=before,
            after=after,
        )

    def files(self) -> PageFiles:
        """Return what lies beside the page; called after all items were made."""
        numbers = np.concatenate(self.numbers)
        chips = RegionChips(
            self.division, self.images, np.concatenate(self.pieces), np.concatenate(self.rows)
        )
        pictured = np.flatnonzero(self._chosen(MORE_BESIDE)[numbers])
        return region_files(
            chips, np.concatenate(self.boxes), pictured, self.decided.scores[numbers]
        )
