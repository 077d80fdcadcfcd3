"""The buildings of a map: their ids, geometries and attributes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onesided.core.errors import DataError
from onesided.geo.input.coordinates import Geometries, System
from onesided.geo.input.shapes import without_collections
from onesided.geo.input.vector import Layer, read_layer

USUAL_IDS = ("id", "uid", "building_id", "osm_id", "objectid", "fid")
"""Columns tried for the id where none is named, in this order, in upper or lower case."""


@dataclass(frozen=True)
class Buildings:
    """All buildings of a map, one row each.

    Attributes:
        names: Id of each building, all different.
        geometries: Polygons, or points where only the position is known; None for neither.
        system: Coordinate system of the geometries.
        columns: Attributes of the file.
        warnings: Sentences for the user about ids and outlines.
    """

    names: tuple[str, ...]
    geometries: Geometries
    system: System
    columns: Mapping[str, np.ndarray]
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.names)


def read_footprints(
    path: Path,
    *,
    layer: str | None = None,
    id_column: str | None = None,
    given_system: str | None = None,
) -> Buildings:
    """Return the footprints of a vector file, each with a unique id."""
    found = read_layer(path, layer=layer, given_system=given_system)
    if found.system is None:
        raise DataError(
            f"{path} does not say in which coordinate system its footprints are. Name it with "
            "--footprints-crs, for example --footprints-crs EPSG:4326 for longitude and latitude."
        )
    names, warnings = _usual_names(found) if id_column is None else (found.column(id_column), ())
    ids = tuple(map(id_text, names))
    check_different(ids, str(path))
    shapes, collections = without_collections(found.geometries)
    if collections:
        warnings = (*warnings, collections_in_words(collections, len(ids), str(path)))
    return Buildings(ids, shapes, found.system, found.columns, warnings)


def collections_in_words(collections: int, count: int, where: str) -> str:
    """Return what was done with footprints that are collections of geometries."""
    return (
        f"{collections} of {count} footprints in {where} are collections of geometries, which "
        "clipping and repairing leave. Their polygons were kept; lines and points were left out."
    )


def _usual_names(layer: Layer) -> tuple[Sequence[object], tuple[str, ...]]:
    """Return names by a column that usually holds them, and a warning if it has gaps.

    A gap is filled with "feature" and the feature's number: the bare number could be the id
    of another building, and a table of ids would then mark the wrong one.
    """
    lower_case = {name.lower(): name for name in reversed(list(layer.columns))}
    for column in (lower_case[usual] for usual in USUAL_IDS if usual in lower_case):
        names = [id_text(value) for value in layer.columns[column]]
        gaps = names.count("")
        if gaps == len(names):
            continue
        filled = [
            name or f"feature {id_text(key)}" for name, key in zip(names, layer.keys, strict=True)
        ]
        warning = (
            f"The column '{column}' of {layer.path} is empty for {gaps} of {len(names)} buildings; "
            "they are called 'feature' and their number in the file. To name buildings by "
            "another column, give it with --id-column."
        )
        return filled, (warning,) if gaps else ()
    return layer.keys, ()


def id_text(value: object) -> str:
    """Return an id as text, the same for 17, 17.0 and " 17": files write ids differently."""
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return ""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    text = str(value).strip()
    whole, dot, rest = text.partition(".")
    return whole if dot and whole.lstrip("-").isdecimal() and not rest.strip("0") else text


def check_different(names: Sequence[str], where: str) -> None:
    """Refuse buildings without a name, and a name that several buildings have."""
    nameless = sum(not name for name in names)
    if nameless:
        raise DataError(
            f"{nameless} of {len(names)} buildings in {where} have no id. Fill them in, or name "
            "another column with --id-column."
        )
    for place, name in enumerate(names):
        if any("\ud800" <= sign <= "\udbff" for sign in name):
            raise DataError(
                f"The id of building {place + 1} in {where} holds half a character "
                f"({name.encode('unicode_escape').decode()}). Write it anew, or name another "
                "column with --id-column."
            )
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise DataError(
            f"The id '{name}' occurs {times} times in {where}, and every building needs its own. "
            "Name a column of different values with --id-column."
        )
