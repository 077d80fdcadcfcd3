"""The map as files for GIS programs: GeoJSON, GeoPackage (by GDAL), and a style for QGIS."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np

from onesided.core.errors import OnesidedError
from onesided.geo.input.coordinates import WGS84, Geometries, System, converted, system
from onesided.geo.input.shapes import cut_at_antimeridian
from onesided.geo.output.colours import NO_SCORE, SCORE_COLOURS, Colour
from onesided.geo.output.table import MapTable
from onesided.pages.render import render
from onesided.storage.atomic import replacing, replacing_by_name
from onesided.storage.optional import library

DECIMALS = 8
"""Of a degree: a millimetre."""
POLYGONS, POINT = {3, 6}, 0


def write_geojson(table: MapTable, path: Path) -> None:
    """Write the map as GeoJSON."""
    buildings = table.buildings
    write_geojson_layer(
        buildings.geometries, buildings.system, table.columns(), path, names=buildings.names
    )


def write_geojson_layer(
    geometries: Geometries,
    its_system: System,
    columns: Mapping[str, np.ndarray],
    path: Path,
    *,
    names: Sequence[str] | None = None,
) -> None:
    """Write GeoJSON as RFC 7946 defines it.

    Degrees of WGS 84, outer rings counter-clockwise, outlines across 180 degrees in two parts.
    `names` are the ids of the features; without them the column `id` holds them.
    """
    shapely = library("shapely", "Writing GeoJSON")
    shapes = converted(geometries, its_system, system(WGS84))
    ids = columns["id"] if names is None else names
    with replacing(path) as file:
        file.write(b'{"type": "FeatureCollection", "features": [\n')
        for row, name in enumerate(ids):
            properties = {key: _plain(key, values[row]) for key, values in columns.items()}
            feature = {
                "type": "Feature",
                "id": _plain("id", name),
                "geometry": _shape(shapely, shapes[row]),
                "properties": properties,
            }
            text = json.dumps(feature, allow_nan=False)
            file.write((",\n" if row else "").encode() + text.encode())
        file.write(b"\n]}\n")


def _shape(shapely: Any, geometry: Any) -> Mapping[str, Any] | None:  # noqa: ANN401
    if geometry is None or not np.isfinite(shapely.get_coordinates(geometry)).all():
        return None
    turned = shapely.orient_polygons(cut_at_antimeridian(geometry), exterior_cw=False)
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
    if isinstance(value, list):
        return [_plain("", inner) for inner in value]
    if isinstance(value, dict):
        return {str(name): _plain("", inner) for name, inner in value.items()}
    return value if isinstance(value, str | int | bool) else str(value)


def write_geopackage(table: MapTable, path: Path) -> None:
    """Write the map as a GeoPackage."""
    write_geopackage_layer(
        table.buildings.geometries, table.buildings.system, table.columns(), path
    )


def write_geopackage_layer(
    geometries: Geometries, its_system: System, attributes: Mapping[str, np.ndarray], path: Path
) -> None:
    """Write a GeoPackage in the features' own coordinate system, with its style inside."""
    raw = library("pyogrio.raw", "Writing a GeoPackage")
    errors = library("pyogrio.errors", "Writing a GeoPackage")
    shapely = library("shapely", "Writing a GeoPackage")
    columns = {name: _storable(values) for name, values in attributes.items()}
    kind = _geometry_type(geometries)
    layer = path.stem
    try:
        # SQLite writes in many steps; a reader must never see half of them.
        with replacing_by_name(path, ".gpkg") as part:
            raw.write(
                part,
                geometry=shapely.to_wkb(geometries),
                field_data=[values for values, _ in columns.values()],
                field_mask=[missing for _, missing in columns.values()],
                fields=list(columns),
                geometry_type=kind,
                promote_to_multi=kind.startswith("Multi"),
                crs=its_system.to_wkt(),
                driver="GPKG",
                layer=layer,
            )
            store_style(part, layer, style_text(is_point=kind == "Point"))
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


def store_style(path: Path, layer: str, style: str, geometry: str = "geom") -> None:
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
            "VALUES ('', '', ?, ?, 'score', ?, '', 1, 'coloured by score')",
            (layer, geometry, style),
        )
        database.execute(
            "INSERT INTO gpkg_contents (table_name, data_type, identifier) "
            "VALUES ('layer_styles', 'attributes', 'layer_styles')"
        )


def style_text(*, is_point: bool) -> str:
    """Return a QGIS style (QML): the page's colours, in classes of `score`, grey for none."""
    classes = [(-1.0, -0.5, "no score, see the column reason", _qgis(NO_SCORE))]
    for step, colour in enumerate(SCORE_COLOURS):
        low, high = step / len(SCORE_COLOURS), (step + 1) / len(SCORE_COLOURS)
        classes.append((low, high, f"{low:.1f} to {high:.1f}", _qgis(colour)))
    return str(render("geo/output/style.qml", classes=classes, is_point=is_point)) + "\n"


def _qgis(colour: Colour) -> str:
    return ",".join(map(str, colour))
