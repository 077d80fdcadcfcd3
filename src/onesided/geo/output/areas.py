"""Counts by grid cell or administrative area, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float64

from onesided.core.errors import DataError, DataNotFound
from onesided.geo.input.coordinates import WGS84, Geometries, System, between, converted, system
from onesided.geo.input.footprints import id_text
from onesided.geo.input.vector import Layer, read_layer
from onesided.metrics.intervals import clopper_pearson
from onesided.storage.atomic import write_text
from onesided.storage.optional import library
from onesided.storage.table import csv_text

COLUMNS = (
    *("area", "west", "south", "buildings", "scored", "marked", "called_positive"),
    *("called_share", "called_share_low", "called_share_high"),
    *("damaged", "damaged_low", "damaged_high"),
)
NAME_COLUMNS = ("name", "adm3_en", "adm2_en", "adm1_en", "shapename", "id")
METRES_PER_DEGREE = 111_320.0


@dataclass(frozen=True)
class Rates:
    """Precision and recall of the whole map, each as value, low, high; None where unknown."""

    precision: tuple[float, float, float] | None
    recall: tuple[float, float, float] | None


@dataclass(frozen=True)
class Areas:
    """Which area each building lies in.

    Attributes:
        names: Of the areas.
        corners: West and south of each, in degrees.
        of: Number of the area of each building, -1 for none.
    """

    names: tuple[str, ...]
    corners: Float64[np.ndarray, "a 2"]
    of: np.ndarray


def grid_cells(middles: Float64[np.ndarray, "n 2"], source: System, metres: float) -> Areas:
    """Return square cells of this side, in metres at the middle latitude of the buildings."""
    degrees = between(source, system(WGS84))(middles)
    known = np.isfinite(degrees).all(axis=1)
    latitude = float(np.median(degrees[known, 1])) if known.any() else 0.0
    high = metres / METRES_PER_DEGREE
    wide = high / max(np.cos(np.radians(latitude)), 0.01)
    cells = np.full(degrees.shape, -1, np.int64)
    cells[known] = np.floor(degrees[known] / (wide, high)).astype(np.int64)
    kinds, of = np.unique(cells[known], axis=0, return_inverse=True)
    numbers = np.full(len(degrees), -1, np.int64)
    numbers[known] = of.reshape(-1)
    names = tuple(f"cell {column} {row}" for column, row in kinds)
    return Areas(names, kinds * np.array([wide, high]), numbers)


def read_areas(path: Path) -> tuple[Layer, System]:
    """Return the areas of a file and their coordinate system, or refuse what is none."""
    if not path.is_file():  # a pipe would be waited for
        raise DataNotFound(f"There is no file {path}. --areas takes a file of polygons.")
    layer = read_layer(path, flag="--areas")
    if layer.system is None:
        raise DataError(
            f"{path} does not say in which coordinate system its areas are. Save it with one, as a "
            "GeoPackage has it."
        )
    kinds = {shape.geom_type for shape in layer.geometries if shape is not None}
    if not any(kind.endswith("Polygon") for kind in kinds):
        raise DataError(
            f"{path} holds no polygon; its shapes are: {', '.join(sorted(kinds)) or 'none'}. "
            "--areas takes the polygons in which buildings are counted."
        )
    return layer, layer.system


def named_areas(
    middles: Float64[np.ndarray, "n 2"], source: System, path: Path, column: str | None = None
) -> Areas:
    """Return the polygons of a file, named by a column; a building is where its middle is."""
    shapely = library("shapely", "Areas")
    layer, own = read_areas(path)
    usual = {name.lower(): name for name in layer.columns}
    chosen = column or next((usual[name] for name in NAME_COLUMNS if name in usual), None)
    words = layer.keys if chosen is None else layer.column(chosen)
    shapes = converted(layer.geometries, own, source)
    tree = shapely.STRtree(shapes)
    numbers = np.full(len(middles), -1, np.int64)
    rows = np.flatnonzero(np.isfinite(middles).all(axis=1))
    for part in np.array_split(rows, max(1, len(rows) // 100_000)):
        found = tree.query(shapely.points(middles[part]), predicate="intersects")
        numbers[part[found[0]]] = found[1]
    if (numbers < 0).all():
        raise DataError(f"None of the buildings lies in an area of {path}. Check that both fit.")
    degrees = _corners(converted(layer.geometries, own, system(WGS84)))
    return Areas(tuple(id_text(word) for word in words), degrees, numbers)


def _corners(shapes: Geometries) -> Float64[np.ndarray, "a 2"]:
    corners: Float64[np.ndarray, "a 2"] = library("shapely", "Areas").bounds(shapes)[:, :2]
    return corners


def write_areas(
    areas: Areas,
    path: Path,
    *,
    scored: Bool[np.ndarray, "n"],
    marked: Bool[np.ndarray, "n"],
    called: Bool[np.ndarray, "n"],
    rates: Rates,
) -> None:
    """Write a line for each area that holds buildings.

    The number of damaged buildings is that of the called ones, times precision, divided by
    recall, and the marked ones. It rests on both being the same in every area; its interval
    takes the worst ends of both, and the interval of the share that is called.
    """
    inside = areas.of >= 0
    kinds = len(areas.names)

    def counted(rows: Bool[np.ndarray, "n"]) -> np.ndarray:
        return np.bincount(areas.of[rows & inside], minlength=kinds)

    every, seen, given = counted(np.ones(len(inside), bool)), counted(scored), counted(marked)
    hits, others = counted(called & ~marked), counted(scored & ~marked)
    lines = []
    for number in np.flatnonzero(every):
        west, south = areas.corners[number]
        counts = (int(every[number]), int(seen[number]), int(given[number]), int(hits[number]))
        share = _share(int(hits[number]), int(others[number]))
        damaged = _damaged(share, int(others[number]), int(given[number]), rates)
        place = (areas.names[number], f"{west:.6f}", f"{south:.6f}")
        lines.append((*place, *map(str, counts), *_cells(share), *_cells(damaged)))
    write_text(path, csv_text(COLUMNS, lines))


def _share(hits: int, others: int) -> tuple[float, float, float] | None:
    if not others:
        return None
    low, high = clopper_pearson(hits, others)
    return hits / others, low, high


def _damaged(
    share: tuple[float, float, float] | None, others: int, marked: int, rates: Rates
) -> tuple[float, float, float] | None:
    if share is None or rates.precision is None or rates.recall is None:
        return None
    value, least, most = rates.precision
    recall, fewest, largest = rates.recall
    if recall <= 0 or largest <= 0:
        return None
    ends = (
        share[0] * value / recall,
        share[1] * least / largest,
        min(1.0, share[2] * most / max(fewest, 1e-9)),
    )
    middle, low, high = (marked + others * min(1.0, end) for end in ends)
    return middle, low, high


def _cells(figure: Sequence[float] | None) -> tuple[str, ...]:
    return ("", "", "") if figure is None else tuple(f"{number:.6g}" for number in figure)
