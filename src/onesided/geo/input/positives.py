"""Who is marked: ids in a table, a layer drawn over the footprints, or a column of theirs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool

from onesided.core.errors import ConfigError, DataError
from onesided.core.labels import POSITIVE, UNKNOWN
from onesided.geo.input.coordinates import Geometries, converted
from onesided.geo.input.footprints import Buildings, id_text
from onesided.geo.input.vector import read_layer
from onesided.storage.labels import NAMES, NotALabel, label_in
from onesided.storage.names import name_in_cell
from onesided.storage.optional import library
from onesided.storage.table import column_called, read_lines

ID_COLUMNS = ("id", "uid", "building_id", "item", "name", "path")


@dataclass(frozen=True)
class Marks:
    """Which buildings are marked, and what a person should be told about it."""

    marked: Bool[np.ndarray, "n"]
    warnings: tuple[str, ...] = ()


def marks_of_ids(buildings: Buildings, path: Path, id_column: str | None = None) -> Marks:
    """Return the buildings whose ids a CSV file lists, in its column id or its first column.

    Where the file has a column label, as the map page's review has, only positives count.
    """
    wanted, others = _positive_ids(path, id_column)
    places = {name: row for row, name in enumerate(buildings.names)}
    known = [places[name] for name in wanted if name in places]
    unknown = [name for name in wanted if name not in places]
    if not known:
        raise DataError(
            f"None of the {len(wanted)} ids in {path} is the id of a building. That file has for "
            f"example '{wanted[0]}', and the buildings have '{buildings.names[0]}'. If another "
            "column holds the ids, name it with --id-column."
        )
    marked = np.zeros(len(buildings), bool)
    marked[known] = True
    told = _told_unknown(path, unknown, len(wanted))
    return Marks(marked, (*told, *_told_others(path, others)))


def _positive_ids(path: Path, id_column: str | None) -> tuple[list[str], int]:
    """Return the ids that are marked, and how many have another label."""
    if not _heads_a_column(path, "label"):
        return [name for name, _ in read_id_rows(path, id_column=id_column)], 0
    rows = read_id_rows(path, id_column=id_column, further=("label",))
    positive = [name for name, word in rows if _class_of(path, name, word) == POSITIVE]
    if not positive:
        raise DataError(
            f"None of the {len(rows)} buildings in {path} has the label positive. Without a column "
            "label, every id listed counts."
        )
    return positive, len(rows) - len(positive)


def _heads_a_column(path: Path, name: str) -> bool:
    return name in _columns(read_lines(path))


def _columns(lines: Sequence[tuple[int, Sequence[str]]]) -> list[str]:
    return [column_called(heading) for heading in lines[0][1]] if lines else []


def _class_of(path: Path, name: str, label: str) -> int:
    """Return the class that a word means; UNKNOWN for a building somebody was unsure of."""
    try:
        return label_in(label, among=NAMES, answers=True)
    except NotALabel as error:
        raise DataError(f"{path}, building '{name}': {error}") from None


def _told_unknown(path: Path, unknown: Sequence[str], total: int) -> tuple[str, ...]:
    if not unknown:
        return ()
    return (
        f"{len(unknown)} of {total} ids in {path} belong to no building and were left out; the "
        f"first is '{unknown[0]}'.",
    )


def _told_others(path: Path, others: int) -> tuple[str, ...]:
    if not others:
        return ()
    return (
        f"{others} buildings in {path} are labelled negative or unlabelled: a map is trained on "
        "positives alone, so they count as unlabelled and are ranked like all others.",
    )


def marks_of_layer(
    buildings: Buildings,
    path: Path,
    given_system: str | None = None,
    *,
    layer_name: str | None = None,
) -> Marks:
    """Return the buildings that points, lines or polygons of a vector file mark.

    A polygon marks what it lies in or what lies in it, judged by a point inside the
    smaller one: neighbours that share a wall with a marked building touch it, too.
    """
    layer = read_layer(path, layer=layer_name, given_system=given_system, flag="--positives-layer")
    if layer.system is None:
        raise DataError(
            f"{path} does not say in which coordinate system its marks are. Save it again with "
            "one, for example as a GeoPackage."
        )
    marks = converted(layer.geometries, layer.system, buildings.system)
    pairs = _pairs(marks, buildings.geometries)
    if not pairs.size:
        raise DataError(
            f"None of the {len(layer)} marks in {path} lies on a building. Check that both files "
            "show the same place."
        )
    marked = np.zeros(len(buildings), bool)
    marked[pairs[1]] = True
    stray = len(layer) - len(np.unique(pairs[0]))
    told = f"{stray} of {len(layer)} marks in {path} lie on no building and were left out."
    return Marks(marked, (told,) if stray else ())


def _pairs(marks: Geometries, footprints: Geometries) -> np.ndarray:
    """Return (mark, footprint) of every mark that means a footprint, as two rows."""
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
    column, equals, values = condition.partition("=")
    if not equals or not values:
        raise ConfigError(
            f"--positives-column takes COLUMN=VALUE, for example damaged=1; got {condition!r}."
        )
    if column not in buildings.columns:
        raise ConfigError(
            f"The footprints have no column '{column}'; they have "
            f"{', '.join(buildings.columns) or 'none'}."
        )
    wanted = {id_text(value) for value in values.split(",")}
    present = [_plain(value) for value in buildings.columns[column]]
    marked = np.array([value in wanted for value in present])
    if not marked.any():
        seen = ", ".join(sorted(set(present))[:5])
        raise DataError(f"No building has {condition}; its column '{column}' holds {seen}.")
    return Marks(marked)


def _plain(value: object) -> str:
    return str(int(value)) if isinstance(value, bool | np.bool_) else id_text(value)


def read_truth(path: Path) -> Mapping[str, int]:
    """Return id to class of a CSV file with the columns id and label, for reporting.

    Buildings of which nobody is sure are left out.
    """
    truth: dict[str, int] = {}
    for name, label in read_id_rows(path, further=("label", "damaged")):
        known = _class_of(path, name, label)
        if known != UNKNOWN and truth.setdefault(name, known) != known:
            raise DataError(f"{path}: building '{name}' is listed as positive and as negative.")
    return truth


def read_id_rows(
    path: Path, *, id_column: str | None = None, further: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """Return the id of every line, and its cell in the first of some further columns."""
    lines = read_lines(path)
    head = _columns(lines)
    wanted = [id_column.lower()] if id_column and id_column.lower() in head else ID_COLUMNS
    place = next((head.index(name) for name in wanted if name in head), None)
    second = next((head.index(name) for name in further if name in head), None)
    if further and second is None:
        raise DataError(
            f"{path} needs the column '{further[0]}'; its first line names "
            f"{', '.join(filter(None, head)) or 'nothing'}."
        )
    # A first line that names no column we know is an id already: lists have no heading.
    body = lines[1:] if place is not None or second is not None else lines
    cells = [(_cell(line, place or 0), _cell(line, second)) for _, line in body]
    rows = [(id_text(name_in_cell(name)), value) for name, value in cells if name.strip()]
    if not rows:
        raise DataError(f"{path} lists no id. Expected a column id, one line for each building.")
    return rows


def _cell(line: Sequence[str], place: int | None) -> str:
    return line[place] if place is not None and place < len(line) else ""
