"""Features of a vector file: geometries, attributes, coordinate system.

GeoJSON is read by the standard library and shapely, so it needs no GDAL; all other formats
(GeoPackage, Shapefile, FlatGeobuf ...) are read by pyogrio.
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
from onesided.storage.optional import library

GEOJSON = (".geojson", ".json")
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
    if not path.exists():
        raise DataNotFound(f"There is no file {path}. Give a GeoPackage, GeoJSON or Shapefile.")
    if path.suffix.lower() in GEOJSON:
        if layer is not None:
            raise ConfigError(f"{path} is GeoJSON, which has no layers. Leave {flag} out.")
        found = _read_geojson(path)
    else:
        found = _read_by_gdal(path, layer, flag)
    if not len(found):
        raise DataError(f"{path} holds no feature. Expected one for each building.")
    if given_system is None:
        return found
    given, named = system(given_system), found.system
    if found.names_system and named is not None and not same_system(named, given):
        raise ConfigError(
            f"{path} says that it is in {named.name}; {given.name} was given for it. "
            "A system is given for files that name none: leave it out, or correct the file."
        )
    return replace(found, system=given)


def _read_geojson(path: Path) -> Layer:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
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
        raise DataError(f"{path}: feature {row + 1} has no readable geometry ({error}).") from None


def _geojson_system(content: Mapping[str, Any], geometries: Geometries) -> System | None:
    """Return WGS84, or what `crs` says: older than RFC 7946, but GIS programs still write it."""
    named = content.get("crs")
    if isinstance(named, dict):
        return known_system((named.get("properties") or {}).get("name"))
    box = bounds_of(geometries)
    return system(WGS84) if box is None or (np.abs(box) <= FURTHEST).all() else None


def _column(values: Sequence[object]) -> np.ndarray:
    """Return integers or floats where all values are numbers, and objects otherwise."""
    kinds = {type(value) for value in values}
    if kinds == {int} and all(abs(value) < 2**63 for value in values):  # type: ignore[arg-type]
        return np.array(values, np.int64)
    if kinds and kinds <= {int, float, type(None)} and float in kinds:
        return np.array([np.nan if value is None else value for value in values], np.float64)
    column = np.empty(len(values), object)
    column[:] = values
    return column


def _read_by_gdal(path: Path, layer: str | None, flag: str) -> Layer:
    pyogrio = library("pyogrio", f"Reading {path.name}")
    shapely = library("shapely", f"Reading {path.name}")
    try:
        # Tables without geometry, such as styles, are not layers to choose from.
        names = [str(name) for name, shape in pyogrio.list_layers(path) if shape is not None]
        if not names:
            raise DataError(f"{path} holds no layer of polygons or points.")
        if layer is not None and layer not in names:
            raise ConfigError(f"{path} has no layer '{layer}'.{nearest(layer, names)}")
        if layer is None and len(names) > 1:
            raise ConfigError(
                f"{path} has {len(names)} layers: {', '.join(names)}. Choose one with {flag}."
            )
        with warnings.catch_warnings():
            # GDAL warns of attributes that it leaves out, such as lists.
            warnings.simplefilter("ignore")
            meta, keys, shapes, values = pyogrio.raw.read(
                path, layer=layer or names[0], return_fids=True
            )
    except pyogrio.errors.DataSourceError as error:
        raise DataError(f"{path} is not a vector file that can be read ({error}).") from None
    columns = dict(zip((str(name) for name in meta["fields"]), values, strict=True))
    geometries = shapely.from_wkb(shapes, on_invalid="ignore")
    named = known_system(meta["crs"])
    return Layer(path, geometries, columns, keys.tolist(), named, named is not None)
