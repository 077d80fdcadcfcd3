"""Which buildings are marked: ids in a table, a layer drawn over the footprints, or a column."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool

from onesided.core.errors import ConfigError, DataError
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.geo.input.coordinates import Geometries, System, converted
from onesided.geo.input.footprints import Buildings, id_text
from onesided.geo.input.vector import read_layer
from onesided.storage.labels import NAMES, NotALabel, label_in
from onesided.storage.names import name_in_cell
from onesided.storage.optional import library
from onesided.storage.table import column_called, read_lines

ID_COLUMNS = ("id", "uid", "building_id", "item", "name", "path")


@dataclass(frozen=True)
class Marks:
    """Which buildings are marked, and warnings about marks that were left out."""

    marked: Bool[np.ndarray, "n"]
    warnings: tuple[str, ...] = ()


def holds_answers(path: Path) -> bool:
    """Return whether a file has the column answer, as the map page saves it."""
    lines = read_lines(path) if path.suffix.lower() == ".csv" and path.is_file() else []
    return bool(lines) and "answer" in map(column_called, lines[0][1])


def marks_of_ids(buildings: Buildings, path: Path, id_column: str | None = None) -> Marks:
    """Return the buildings whose ids a CSV file lists, in its column id or its first column.

    Where the file has a column answer, as files of the map page have, or label, only positives
    count; a building that somebody else calls negative does not.
    """
    listed = listed_ids(path, id_column)
    wanted, contested = listed.wanted, listed.contested
    rows = {name: row for row, name in enumerate(buildings.names)}
    unknown = [name for name in wanted if name not in rows]
    if len(unknown) == len(wanted):
        raise DataError(
            f"None of the {len(wanted)} ids in {path} is the id of a building. That file has for "
            f"example '{wanted[0]}', and the buildings have '{buildings.names[0]}'. If another "
            "column holds the ids, name it with --id-column."
        )
    marked = np.zeros(len(buildings), bool)
    marked[[rows[name] for name in wanted if name in rows]] = True
    warnings = []
    if unknown:
        warnings.append(
            f"{len(unknown)} of {len(wanted)} ids in {path} belong to no building and were left "
            f"out; the first is '{unknown[0]}'."
        )
    if contested:
        warnings.append(
            f"{path} calls {len(contested)} buildings both damaged and not damaged; they count as "
            f"not marked. The first is '{contested[0]}'."
        )
    if listed.others:
        warnings.append(
            f"{listed.others} buildings in {path} are not labelled as damaged. A map "
            "is trained on damaged buildings alone, so these count as not marked and are ranked "
            "like all others."
        )
    return Marks(marked, tuple(warnings))


@dataclass(frozen=True)
class ListedIds:
    """What a CSV file says of buildings.

    Attributes:
        wanted: Ids that are damaged, each once.
        contested: Ids that somebody calls damaged and somebody else does not.
        others: How many further buildings are listed.
    """

    wanted: list[str]
    contested: list[str]
    others: int


def listed_ids(path: Path, id_column: str | None = None) -> ListedIds:
    """Return the ids that a CSV file lists, or raise where none of them is damaged."""
    listed = read_id_rows(path, id_column=id_column, further=("answer", "label"), needed=False)
    labels = [
        (name, POSITIVE if word is None else _label(path, name, word)) for name, word in listed
    ]
    denied = {name for name, label in labels if label == NEGATIVE}
    called = list(dict.fromkeys(name for name, label in labels if label == POSITIVE))
    wanted = [name for name in called if name not in denied]
    contested = [name for name in called if name in denied]
    if not wanted:
        raise DataError(
            f"None of the {len(listed)} buildings in {path} has the label positive. Without a "
            "column label, every id listed counts."
        )
    others = {name for name, _ in listed} - set(wanted) - set(contested)
    return ListedIds(wanted, contested, len(others))


def _label(path: Path, name: str, word: str) -> int:
    """Return the class that a word means; UNKNOWN for a building somebody was unsure of."""
    try:
        return label_in(word, among=NAMES, answers=True)
    except NotALabel as error:
        raise DataError(f"{path}, building '{name}': {error}") from None


def marks_of_layer(buildings: Buildings, path: Path, *, layer_name: str | None = None) -> Marks:
    """Return the buildings that points, lines or polygons of a vector file mark.

    A polygon marks a building that it lies in or that lies in it. What counts is a point
    inside the smaller one: neighbours that share a wall with a marked building touch it, too.
    """
    marks = drawn_marks(path, buildings.system, layer_name=layer_name)
    pairs = marked_pairs(marks, buildings.geometries)
    if not pairs.size:
        raise DataError(
            f"None of the {len(marks)} marks in {path} lies on a building. Check that both files "
            "show the same place."
        )
    marked = np.zeros(len(buildings), bool)
    marked[pairs[1]] = True
    stray = len(marks) - len(np.unique(pairs[0]))
    warning = f"{stray} of {len(marks)} marks in {path} lie on no building and were left out."
    return Marks(marked, (warning,) if stray else ())


def drawn_marks(path: Path, target: System, *, layer_name: str | None = None) -> Geometries:
    """Return what a vector file draws over damaged buildings, in another coordinate system."""
    layer = read_layer(path, layer=layer_name, flag="--positives-layer")
    if layer.system is None:
        raise DataError(
            f"{path} does not say in which coordinate system its marks are. Save it again with "
            "one, for example as a GeoPackage."
        )
    return converted(layer.geometries, layer.system, target)


def marked_pairs(marks: Geometries, footprints: Geometries) -> np.ndarray:
    """Return the rows of marks, and below them the rows of the footprints that they mark."""
    shapely = library("shapely", "Marks on footprints")
    footprints = shapely.make_valid(footprints)
    area = shapely.get_dimensions(marks) == 2
    points = np.where(area, shapely.point_on_surface(marks), marks)
    lying_in = shapely.STRtree(footprints).query(points, predicate="intersects")
    polygons = np.flatnonzero(area)
    inside = shapely.point_on_surface(footprints)
    around = shapely.STRtree(inside).query(marks[polygons], predicate="intersects")
    return np.concatenate([lying_in, np.stack([polygons[around[0]], around[1]])], axis=1)


def marks_of_column(buildings: Buildings, condition: str) -> Marks:
    """Return the buildings whose attribute has one of some values: `damage=major,destroyed`."""
    column, present, marked = column_values(buildings, condition)
    if not marked.any():
        seen = ", ".join(sorted(set(present))[:5])
        raise DataError(f"No building has {condition}; its column '{column}' holds {seen}.")
    return Marks(marked)


def column_values(
    buildings: Buildings, condition: str
) -> tuple[str, list[str], Bool[np.ndarray, "n"]]:
    """Return the column of a condition, its values as text, and where the condition holds."""
    column, _, values = condition.partition("=")
    if not values:
        raise ConfigError(
            f"--positives-column takes COLUMN=VALUE, for example damaged=1; got {condition!r}."
        )
    if column not in buildings.columns:
        raise ConfigError(
            f"The footprints have no column '{column}'; they have "
            f"{', '.join(buildings.columns) or 'none'}."
        )
    wanted = {id_text(value) for value in values.split(",")}
    cells = buildings.columns[column]
    present = [id_text(int(cell) if isinstance(cell, bool | np.bool_) else cell) for cell in cells]
    return column, present, np.array([value in wanted for value in present], bool)


def read_truth(path: Path) -> Mapping[str, int]:
    """Return id to class of a CSV file with the columns id and label, for reporting.

    Buildings with an unsure label are left out.
    """
    truth: dict[str, int] = {}
    for name, word in read_id_rows(path, further=("label", "damaged")):
        known = _label(path, name, word or "")
        if known != UNKNOWN and truth.setdefault(name, known) != known:
            raise DataError(f"{path}: building '{name}' is listed as positive and as negative.")
    return truth


def read_id_rows(
    path: Path, *, id_column: str | None = None, further: Sequence[str], needed: bool = True
) -> list[tuple[str, str | None]]:
    """Return the id of every line, and its cell in the first of some further columns.

    The cell is None where the file has none of these columns, which is an error if `needed`.
    """
    lines = read_lines(path)
    head = [column_called(heading) for heading in lines[0][1]] if lines else []
    wanted = [id_column.lower()] if id_column and id_column.lower() in head else ID_COLUMNS
    first = next((head.index(name) for name in wanted if name in head), None)
    second = next((head.index(name) for name in further if name in head), None)
    if needed and second is None:
        raise DataError(
            f"{path} needs the column '{further[0]}'; its first line names "
            f"{', '.join(filter(None, head)) or 'nothing'}."
        )

    def cell(line: Sequence[str], column: int) -> str:
        return line[column] if column < len(line) else ""

    # A first line that names no column we know is an id already: lists have no heading.
    body = lines[1:] if first is not None or second is not None else lines
    rows = [
        (id_text(name_in_cell(name)), None if second is None else cell(line, second))
        for _, line in body
        if (name := cell(line, first or 0)).strip()
    ]
    if not rows:
        raise DataError(f"{path} lists no id. Expected a column id, one line for each building.")
    return rows
