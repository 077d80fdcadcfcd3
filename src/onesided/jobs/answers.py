"""Merge what several people answered on the map page: the job of `onesided answers`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onesided.core.errors import ConfigError, DataError
from onesided.geo.input.footprints import id_text
from onesided.geo.input.vector import Layer, read_layer
from onesided.geo.output.layers import write_geojson_layer, write_geopackage_layer
from onesided.jobs.settings import PathLike
from onesided.storage.answers import (
    COLUMNS,
    Answer,
    MergedAnswers,
    answers_text,
    merge_answers,
    read_answers,
)
from onesided.storage.atomic import write_text

LAYERS = (".geojson", ".gpkg")


@dataclass(frozen=True)
class AnswersResult:
    """Merged answers, the file they were written to, and how many items the map does not have."""

    merged: MergedAnswers
    file: Path
    unknown: int = 0


def merge_files(
    files: Sequence[PathLike], *, output: PathLike, map_file: PathLike | None = None
) -> AnswersResult:
    """Merge files of answers, and write them as CSV, GeoJSON or GeoPackage.

    Examples:
        >>> from onesided.jobs.answers import merge_files
        >>> found = merge_files(["anna.csv", "ben.csv"], output="review.csv")
        >>> [str(conflict) for conflict in found.merged.conflicts]
        ['7 (Anna: positive, Ben: negative)']

    Args:
        files: CSV files of answers, or maps that the page saved as GeoJSON.
        output: File to write: .csv, .geojson or .gpkg.
        map_file: The map whose buildings get the answers; None where a file is a map itself.
    """
    paths, out = [Path(file) for file in files], Path(output)
    ending = out.suffix.lower()
    if ending not in (".csv", *LAYERS):
        raise ConfigError(f"-o takes a file that ends in .csv, .geojson or .gpkg; got {out}.")
    maps = {path: read_layer(path) for path in paths if path.suffix.lower() in LAYERS}
    given = {
        _name(path, paths): _of_layer(maps[path]) if path in maps else read_answers(path)
        for path in paths
    }
    merged = merge_answers(given)
    if ending == ".csv":
        write_text(out, answers_text(merged.answers))
        return AnswersResult(merged, out)
    if map_file is None and not maps:
        raise ConfigError(
            f"To write {out.name}, name the map that has the buildings: --map damage.gpkg. "
            "Answers alone have no place on Earth."
        )
    layer = read_layer(Path(map_file)) if map_file else next(iter(maps.values()))
    return AnswersResult(merged, out, _write_layer(layer, merged, out))


def _name(path: Path, paths: Sequence[Path]) -> str:
    """Return the shortest name that tells a file from the others."""
    return path.stem if sum(other.stem == path.stem for other in paths) == 1 else str(path)


def answers_of_layer(path: Path) -> list[Answer]:
    """Return the answers in a map that the page saved."""
    return _of_layer(read_layer(path))


def write_answers_layer(map_file: Path, merged: MergedAnswers, out: Path) -> int:
    """Write a map with answers in its columns; return how many items it does not have."""
    return _write_layer(read_layer(map_file), merged, out)


def _of_layer(layer: Layer) -> list[Answer]:
    """Return the answers in the columns of a map that the page saved."""
    if "answer" not in layer.columns:
        raise DataError(
            f"{layer.path} has no column 'answer'. Give it with --map, or save it on the map page."
        )
    texts = {name: _texts(layer, name) for name in ("answer", "reviewer", "time")}
    rows = zip(_ids(layer), texts["answer"], texts["reviewer"], texts["time"], strict=True)
    return [Answer(*row) for row in rows if row[1]]


def _texts(layer: Layer, column: str) -> list[str]:
    values = layer.columns.get(column, np.full(len(layer), None, object))
    return [id_text(value) for value in values]


def _ids(layer: Layer) -> list[str]:
    return [id_text(value) for value in layer.columns.get("id", np.array(layer.keys, object))]


def _write_layer(layer: Layer, merged: MergedAnswers, out: Path) -> int:
    """Write a map with the answers in its columns; return how many items it does not have."""
    settled, ids = merged.settled(), _ids(layer)
    answered = [settled.get(item) for item in ids]
    columns = {key: values for key, values in layer.columns.items() if key not in COLUMNS[1:]}
    if "id" not in columns:
        columns = {"id": np.array(ids, object), **columns}
    for name in COLUMNS[1:]:
        values = [None if each is None else getattr(each, name) for each in answered]
        columns[name] = np.array([*values, None], object)[:-1]
    if layer.system is None:
        raise DataError(f"{layer.path} does not say in which coordinate system it is.")
    write = write_geopackage_layer if out.suffix.lower() == ".gpkg" else write_geojson_layer
    write(layer.geometries, layer.system, columns, out)
    return len(settled.keys() - set(ids))
