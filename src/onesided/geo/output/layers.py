"""The map as files for GIS programs: GeoJSON, GeoPackage (by GDAL), and a style for QGIS."""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np

from onesided.core.errors import OnesidedError
from onesided.geo.input.coordinates import WGS84, Geometries, converted, system
from onesided.geo.output.table import MapTable
from onesided.pages.render import render
from onesided.storage.atomic import replacing, replacing_by_name
from onesided.storage.optional import library

DECIMALS = 8
"""Of a degree: a millimetre."""
POLYGONS, POINT = {3, 6}, 0
# ColorBrewer's YlOrRd in five classes: readable in print and by the colour-blind.
COLOURS = ("255,255,178", "254,204,92", "253,141,60", "240,59,32", "189,0,38")
NO_SCORE = "150,150,150"


def write_geojson(table: MapTable, path: Path) -> None:
    """Write GeoJSON as RFC 7946 defines it: degrees of WGS 84, outer rings counter-clockwise."""
    shapely = library("shapely", "Writing GeoJSON")
    shapes = converted(table.buildings.geometries, table.buildings.system, system(WGS84))
    columns = table.columns()
    with replacing(path) as file:
        file.write(b'{"type": "FeatureCollection", "features": [\n')
        for row, name in enumerate(table.buildings.names):
            properties = {key: _plain(key, values[row]) for key, values in columns.items()}
            feature = {
                "type": "Feature",
                "id": name,
                "geometry": _shape(shapely, shapes[row]),
                "properties": properties,
            }
            text = json.dumps(feature, allow_nan=False)
            file.write((",\n" if row else "").encode() + text.encode())
        file.write(b"\n]}\n")


def _shape(shapely: Any, geometry: Any) -> Mapping[str, Any] | None:  # noqa: ANN401
    if geometry is None or not np.isfinite(shapely.get_coordinates(geometry)).all():
        return None
    turned = shapely.orient_polygons(geometry, exterior_cw=False)
    content: dict[str, Any] = shapely.geometry.mapping(turned)
    return {**content, "coordinates": _rounded(content["coordinates"])}


def _rounded(numbers: Any) -> Any:  # noqa: ANN401 - nested to any depth
    if isinstance(numbers, float | int):
        return round(float(numbers), DECIMALS)
    return [_rounded(inner) for inner in numbers]


def _plain(key: str, value: object) -> object:
    """Return a value that JSON can hold."""
    if value is None or isinstance(value, bytes):
        return None
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else str(value)
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        if not np.isfinite(value):
            return None
        return int(value) if key == "rank" else value
    return value if isinstance(value, str | int | bool | list | dict) else str(value)


def write_geopackage(table: MapTable, path: Path) -> None:
    """Write a GeoPackage in the buildings' own coordinate system, with its style inside."""
    raw = library("pyogrio.raw", "Writing a GeoPackage")
    errors = library("pyogrio.errors", "Writing a GeoPackage")
    shapely = library("shapely", "Writing a GeoPackage")
    buildings = table.buildings
    columns = {name: _storable(values) for name, values in table.columns().items()}
    kind = _geometry_type(buildings.geometries)
    layer = path.stem
    try:
        # SQLite writes in many steps; a reader must never see half of them.
        with replacing_by_name(path, ".gpkg") as part:
            raw.write(
                part,
                geometry=shapely.to_wkb(buildings.geometries),
                field_data=[values for values, _ in columns.values()],
                field_mask=[missing for _, missing in columns.values()],
                fields=list(columns),
                geometry_type=kind,
                promote_to_multi=kind.startswith("Multi"),
                crs=buildings.system.to_wkt(),
                driver="GPKG",
                layer=layer,
            )
            _store_style(part, layer, style_text(is_point=kind == "Point"))
    except (errors.DataSourceError, errors.DataLayerError, sqlite3.Error) as error:
        raise OnesidedError(f"Cannot write {path} ({error}).") from None


def _geometry_type(geometries: Geometries) -> str:
    shapely = library("shapely", "Writing a GeoPackage")
    known = [shape for shape in geometries if shape is not None]
    kinds = set(shapely.get_type_id(known).tolist())
    if not known or shapely.has_z(known).any():
        return "Unknown"
    if kinds == {POINT}:
        return "Point"
    return "MultiPolygon" if kinds <= POLYGONS else "Unknown"


def _storable(values: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return values of a type that a database can hold, and where they are missing."""
    if values.dtype != object:
        return values, np.isnan(values) if values.dtype.kind == "f" else None
    missing = np.array([value is None for value in values], bool)
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, bool) for value in present):
        return np.array([bool(value) for value in values]), missing
    text = np.empty(len(values), object)
    text[:] = [None if value is None else _text(value) for value in values]
    return text, missing


def _text(value: object) -> str:
    """Return text with escapes for bytes that are not UTF-8, which file names can hold."""
    text = value if isinstance(value, str) else json.dumps(_plain("", value))
    return text.encode("utf-8", "backslashreplace").decode()


def _store_style(path: Path, layer: str, style: str) -> None:
    """Put the style into the table that QGIS reads when it opens the layer."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "CREATE TABLE layer_styles (id INTEGER PRIMARY KEY AUTOINCREMENT, "
            "f_table_catalog TEXT, f_table_schema TEXT, f_table_name TEXT, "
            "f_geometry_column TEXT, styleName TEXT, styleQML TEXT, styleSLD TEXT, "
            "useAsDefault BOOLEAN, description TEXT, owner TEXT, ui TEXT, "
            "update_time DATETIME DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')))"
        )
        database.execute(
            "INSERT INTO layer_styles (f_table_catalog, f_table_schema, f_table_name, "
            "f_geometry_column, styleName, styleQML, styleSLD, useAsDefault, description) "
            "VALUES ('', '', ?, 'geom', 'score', ?, '', 1, 'coloured by score')",
            (layer, style),
        )
        database.execute(
            "INSERT INTO gpkg_contents (table_name, data_type, identifier) "
            "VALUES ('layer_styles', 'attributes', 'layer_styles')"
        )


def style_text(*, is_point: bool) -> str:
    """Return a QGIS style (QML): pale to dark red in five classes of `score`, grey for none."""
    classes = [(-1.0, -0.5, "no score, see the column reason", NO_SCORE)]
    for step, colour in enumerate(COLOURS):
        low, high = step / len(COLOURS), (step + 1) / len(COLOURS)
        classes.append((low, high, f"{low:.1f} to {high:.1f}", colour))
    return str(render("geo/output/style.qml", classes=classes, is_point=is_point)) + "\n"
