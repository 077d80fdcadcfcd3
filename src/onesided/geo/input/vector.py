"""Features of a vector file: geometries, attributes, coordinate system.

GeoJSON is read by the standard library and shapely, so it needs no GDAL; GeoParquet is read by
pyarrow, which needs none either. All other formats (GeoPackage, Shapefile, FlatGeobuf ...) are read
by pyogrio.
"""

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from onesided.core.config import nearest
from onesided.core.errors import ConfigError, DataError, DataNotFound
from onesided.geo.input.coordinates import (
    WGS84,
    Geometries,
    System,
    bounds_of,
    known_system,
    same_system,
    system,
)
from onesided.storage.json_files import json_in
from onesided.storage.optional import library

GEOJSON = (".geojson", ".json")
GEOPARQUET = (".parquet", ".geoparquet")
GEOJSON_BYTES = 250
"""Of a feature with few attributes, to guess how many a file holds without reading it."""
FURTHEST = (360.0, 90.0, 360.0, 90.0)
"""Degrees west, south, east and north; larger numbers are metres."""


@dataclass(frozen=True)
class Layer:
    """The features of one layer, in the order of the file.

    Attributes:
        columns: Attributes by name.
        keys: Id that the format gives each feature: GeoJSON's `id`, else its number.
        system: Coordinate system, None where the file names none.
        names_system: Whether the file itself names it; GeoJSON need not.
    """

    path: Path
    geometries: Geometries
    columns: Mapping[str, np.ndarray]
    keys: Sequence[object]
    system: System | None
    names_system: bool = False

    def __len__(self) -> int:
        return len(self.geometries)

    def column(self, name: str) -> np.ndarray:
        """Return an attribute, or raise an error that lists the columns."""
        if name not in self.columns:
            hint = nearest(name, self.columns) if self.columns else " It has no columns at all."
            raise ConfigError(f"{self.path} has no column '{name}'.{hint}")
        return self.columns[name]


def read_layer(
    path: Path,
    *,
    layer: str | None = None,
    given_system: str | None = None,
    flag: str = "--layer",
) -> Layer:
    """Return the features of a vector file.

    `given_system` is for a file that names no coordinate system; errors name the `flag` that
    chooses a layer.
    """
    if not is_readable(path):
        raise DataNotFound(
            f"There is no file {path}. Give a GeoPackage, GeoJSON, FlatGeobuf, GeoParquet or "
            "Shapefile."
        )
    if path.suffix.lower() in GEOJSON:
        if layer is not None:
            raise ConfigError(f"{path} is GeoJSON, which has no layers. Leave {flag} out.")
        found = _read_geojson(path)
    elif path.suffix.lower() in GEOPARQUET:
        if layer is not None:
            raise ConfigError(f"{path} is GeoParquet, which has no layers. Leave {flag} out.")
        found = _read_geoparquet(path)
    else:
        found = _read_by_gdal(path, layer, flag)
    if not len(found):
        raise DataError(f"{path} holds no feature. Expected one for each building.")
    found = replace(found, geometries=_known(found.geometries))
    if given_system is None:
        return found
    given, named = system(given_system), found.system
    if found.names_system and named is not None and not same_system(named, given):
        raise ConfigError(
            f"{path} says that it is in {named.name}; {given.name} was given for it. "
            "A system is given for files that name none: leave it out, or correct the file."
        )
    return replace(found, system=given)


def is_readable(path: Path) -> bool:
    """Return whether there is a file, or a folder as some formats are; a pipe may never answer."""
    return path.is_file() or path.is_dir()


def count_footprints(path: Path) -> int:
    """Return how many features a file holds, about and at once; 0 where that cannot be told."""
    ending = path.suffix.lower()
    if not path.is_file():
        return 0
    if ending in GEOJSON:
        return path.stat().st_size // GEOJSON_BYTES
    if ending in GEOPARQUET:
        arrow = library("pyarrow", f"Reading {path.name}")
        try:
            return int(library("pyarrow.parquet", "Parquet").read_metadata(path).num_rows)
        except (arrow.ArrowException, OSError):
            return 0  # `read_layer` says what is wrong with it
    pyogrio = library("pyogrio", f"Reading {path.name}")
    try:
        return max(0, int(pyogrio.read_info(path)["features"]))
    except pyogrio.errors.DataSourceError:
        return 0  # likewise


def _read_geojson(path: Path) -> Layer:
    try:
        content = json_in(path, may_hold_nan=True)
    except ValueError as error:
        raise DataError(f"{path} is not GeoJSON: {error}.") from None
    if not isinstance(content, dict) or not isinstance(content.get("features"), list):
        raise DataError(f"{path} is not GeoJSON: expected a FeatureCollection with `features`.")
    features = content["features"]
    geometries = np.empty(len(features), object)
    for row, feature in enumerate(features):
        geometries[row] = _geometry(path, row, feature)
    rows = [feature.get("properties") or {} for feature in features]
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: _column([row.get(name) for row in rows]) for name in names}
    keys = [feature.get("id", number) for number, feature in enumerate(features, start=1)]
    found = _geojson_system(content, geometries)
    named = found is not None and isinstance(content.get("crs"), dict)
    return Layer(path, geometries, columns, keys, found, named)


def _geometry(path: Path, row: int, feature: object) -> object:
    shapely = library("shapely", "Reading GeoJSON")
    if not isinstance(feature, dict) or not isinstance(feature.get("properties") or {}, dict):
        raise DataError(f"{path}: feature {row + 1} is not a GeoJSON feature.")
    shape = feature.get("geometry")
    if shape is None:
        return None
    try:
        return shapely.geometry.shape(shape)
    # A wrong nesting of numbers can raise one of many errors.
    except Exception as error:
        reason = str(error).rstrip(".") if isinstance(shape, dict) else "it is no object"
        raise DataError(
            f"{path}: feature {row + 1} has no readable geometry ({reason}). Remove it, or save "
            "the file again with a program such as QGIS."
        ) from None


def _known(geometries: Geometries) -> Geometries:
    """Return None for a geometry without a place: an empty one, or one that is not finite."""
    shapely = library("shapely", "Reading footprints")
    known = np.array(geometries, dtype=object)
    known[shapely.is_empty(known) | ~np.isfinite(shapely.bounds(known)).all(axis=1)] = None
    return known


def _geojson_system(content: Mapping[str, Any], geometries: Geometries) -> System | None:
    """Return WGS84, or what `crs` says: older than RFC 7946, but GIS programs still write it."""
    named = content.get("crs")
    if isinstance(named, dict):
        properties = named.get("properties")
        return known_system(properties.get("name") if isinstance(properties, dict) else None)
    box = bounds_of(geometries)
    return system(WGS84) if box is None or (np.abs(box) <= FURTHEST).all() else None


def _column(values: Sequence[object]) -> np.ndarray:
    """Return integers or floats where all values are numbers, and objects otherwise."""
    kinds = {type(value) for value in values}
    if kinds == {int} and all(abs(value) < 2**63 for value in values):  # type: ignore[arg-type]
        return np.array(values, np.int64)
    small = all(abs(value) < 2**63 for value in values if isinstance(value, int))
    if kinds and kinds <= {int, float, type(None)} and float in kinds and small:
        return np.array([np.nan if value is None else value for value in values], np.float64)
    column = np.empty(len(values), object)
    column[:] = values
    return column


@dataclass(frozen=True)
class GeoParquetFacts:
    """Which column of a GeoParquet file holds the geometries, and in which system."""

    geometry: str
    system: System | None


def geoparquet_facts(path: Path, schema: Any) -> GeoParquetFacts:  # noqa: ANN401
    """Return what the metadata `geo` of a Parquet file says; see geoparquet.org, version 1."""
    text = (schema.metadata or {}).get(b"geo")
    try:
        content = json.loads(text or "")
        name = content["primary_column"]
        column = content["columns"][name]
        encoding, crs = str(column["encoding"]), column.get("crs", WGS84)
    except (ValueError, KeyError, TypeError):
        raise DataError(
            f"{path} is Parquet, but not GeoParquet: it does not say which column holds "
            "geometries. Write it again with a program that knows GeoParquet, such as QGIS."
        ) from None
    if encoding.upper() != "WKB" or name not in schema.names:
        raise DataError(
            f"{path} stores geometries as {encoding[:40]!r} in the column {str(name)[:40]!r}; "
            "expected WKB in a column of the file."
        )
    named = json.dumps(crs) if isinstance(crs, dict) else crs
    return GeoParquetFacts(str(name), known_system(named))


def _read_geoparquet(path: Path) -> Layer:
    arrow = library("pyarrow", f"Reading {path.name}")
    parquet = library("pyarrow.parquet", f"Reading {path.name}")
    shapely = library("shapely", f"Reading {path.name}")
    try:
        table = parquet.read_table(path)
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"{path} is not a Parquet file that can be read ({error}).") from None
    facts = geoparquet_facts(path, table.schema)
    wkb = np.array([*table.column(facts.geometry).to_pylist(), None], object)[:-1]
    names = [name for name in table.column_names if name != facts.geometry]
    columns = {name: _column(table.column(name).to_pylist()) for name in names}
    try:
        geometries = shapely.from_wkb(wkb, on_invalid="ignore")
    except TypeError:
        raise DataError(
            f"{path} holds no geometries in the column '{facts.geometry}'; expected WKB."
        ) from None
    keys = list(range(1, len(wkb) + 1))
    return Layer(path, geometries, columns, keys, facts.system, facts.system is not None)


def unreadable(path: Path, error: Exception) -> DataError:
    """Return the refusal of a file that GDAL cannot read; what it advises is for programmers."""
    reason = str(error).partition(";")[0].replace(str(path), path.name).rstrip(".")
    return DataError(
        f"{path} is not a vector file that can be read ({reason}). Copy it again from where it "
        "came from, or save it as a GeoPackage."
    )


def chosen_layer(path: Path, layer: str | None, flag: str) -> str:
    """Return the layer to read, or say which there are; errors name the `flag` that chooses."""
    pyogrio = library("pyogrio", f"Reading {path.name}")
    try:
        # Tables without geometry, such as styles, are not layers to choose from.
        names = [str(name) for name, shape in pyogrio.list_layers(path) if shape is not None]
    except pyogrio.errors.DataSourceError as error:
        raise unreadable(path, error) from None
    if not names:
        raise DataError(f"{path} holds no layer of polygons or points.")
    if layer is not None and layer not in names:
        raise ConfigError(f"{path} has no layer '{layer}'.{nearest(layer, names)}")
    if layer is None and len(names) > 1:
        raise ConfigError(
            f"{path} has {len(names)} layers: {', '.join(names)}. Choose one with {flag}."
        )
    return layer or names[0]


def _read_by_gdal(path: Path, layer: str | None, flag: str) -> Layer:
    pyogrio = library("pyogrio", f"Reading {path.name}")
    shapely = library("shapely", f"Reading {path.name}")
    chosen = chosen_layer(path, layer, flag)
    try:
        with warnings.catch_warnings():
            # GDAL warns of attributes that it leaves out, such as lists.
            warnings.simplefilter("ignore")
            meta, keys, shapes, values = pyogrio.raw.read(path, layer=chosen, return_fids=True)
    except pyogrio.errors.DataSourceError as error:
        raise unreadable(path, error) from None
    columns = dict(zip((str(name) for name in meta["fields"]), values, strict=True))
    geometries = shapely.from_wkb(shapes, on_invalid="ignore")
    named = known_system(meta["crs"])
    return Layer(path, geometries, columns, keys.tolist(), named, named is not None)
