"""The buildings of a map: what each is called and where it stands."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onesided.core.errors import DataError
from onesided.geo.input.coordinates import Geometries, System
from onesided.geo.input.vector import Layer, read_layer

USUAL_IDS = ("id", "uid", "building_id", "osm_id", "objectid", "fid")
"""Columns that are taken for the id where nobody names one, in this order, in any case."""


@dataclass(frozen=True)
class Buildings:
    """Everything the map shows, one row for each building.

    Attributes:
        names: Id of each building, all different.
        geometries: Polygons, or points where only a place is known; None where nothing is.
        system: Their coordinate system.
        columns: The attributes they came with.
        warnings: What a person should be told about their names.
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
    """Return the footprints of a vector file, each with an id of its own."""
    found = read_layer(path, layer=layer, given_system=given_system)
    if found.system is None:
        raise DataError(
            f"{path} does not say in which coordinate system its footprints are. Name it with "
            "--footprints-crs, for example --footprints-crs EPSG:4326 for longitude and latitude."
        )
    if id_column is not None:
        names, told = tuple(map(id_text, found.column(id_column))), ""
    else:
        names, told = _usual_names(found)
    check_different(names, str(path))
    warnings = (told,) if told else ()
    return Buildings(names, found.geometries, found.system, found.columns, warnings)


def _usual_names(layer: Layer) -> tuple[tuple[str, ...], str]:
    """Return names by a column that usually holds them, and what to tell of its gaps.

    Gaps are filled by what the format calls the feature, in words: a bare number could be
    another building's id, and a table of ids would then mark the wrong one.
    """
    by_small_letters = {name.lower(): name for name in reversed(list(layer.columns))}
    for column in (by_small_letters[usual] for usual in USUAL_IDS if usual in by_small_letters):
        names = [id_text(value) for value in layer.columns[column]]
        gaps = names.count("")
        if gaps == len(names):
            continue  # a column without any id names nothing
        filled = [
            name or f"feature {id_text(key)}" for name, key in zip(names, layer.keys, strict=True)
        ]
        told = (
            f"The column '{column}' of {layer.path} is empty for {gaps} of {len(names)} buildings; "
            "they are called 'feature' and their number in the file. To name buildings by "
            "another column, give it with --id-column."
        )
        return tuple(filled), told if gaps else ""
    return tuple(map(id_text, layer.keys)), ""


def id_text(value: object) -> str:
    """Return an id as text: 17, 17.0 and " 17" are one building, whatever file they are from."""
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return ""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    text = str(value).strip()
    whole, dot, rest = text.partition(".")
    return whole if dot and whole.lstrip("-").isdecimal() and not rest.strip("0") else text


def check_different(names: Sequence[str], where: str) -> None:
    """Refuse buildings without a name, and names of several buildings."""
    nameless = sum(not name for name in names)
    if nameless:
        raise DataError(
            f"{nameless} of {len(names)} buildings in {where} have no id. Fill them in, or name "
            "another column with --id-column."
        )
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise DataError(
            f"The id '{name}' occurs {times} times in {where}, and every building needs its own. "
            "Name a column of different values with --id-column."
        )
