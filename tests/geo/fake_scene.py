"""A georeferenced image with footprints in other coordinates, marks and the truth."""

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tests.geo.drawing import FakeBuilding, draw_pair, draw_subtypes, place_buildings

GSD, DEGREES = 0.5, 5e-6
"""Metres per pixel, or degrees where the image is in degrees."""
LON, LAT = -90.80, 14.39
"""The north-western corner, a place in Guatemala; the image starts at the next whole metre."""

Ring = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class FakeScene:
    """A georeferenced image before and after, and the buildings on it.

    Attributes:
        post: GeoTIFF after the disaster.
        pre: GeoTIFF before it, on the same grid.
        geojson: Footprints with a column `id`, in the footprints' coordinates.
        gpkg: The same footprints as a GeoPackage.
        positives: CSV with the column id: the marked buildings, all of them damaged.
        truth: CSV with the columns id and damaged (1 or 0), for every building.
        buildings: What was drawn, in the order of the footprints.
        marked: Names of the marked buildings.
        transform: From pixels to the image's coordinates: a, b, c, d, e, f as in rasterio.
    """

    post: Path
    pre: Path
    geojson: Path
    gpkg: Path
    positives: Path
    truth: Path
    buildings: tuple[FakeBuilding, ...]
    marked: tuple[str, ...]
    transform: tuple[float, float, float, float, float, float]


def write_geotiff_scene(
    folder: Path,
    *,
    seed: int,
    size: int = 512,
    buildings: int = 64,
    crs_image: str = "EPSG:32615",
    crs_footprints: str = "EPSG:4326",
    bands: int = 3,
    dtype: Literal["uint8", "uint16", "float32"] = "uint8",
    damaged_share: float = 0.4,
    marked: int = 20,
    nodata: float | None = None,
) -> FakeScene:
    """Write a tiled GeoTIFF before and after, footprints in another CRS, marks and truth.

    The first three bands are red, green and blue, further ones near infrared of a kind;
    one band is grey. 16 bits hold 0 to 4080, floats 0 to 1, as sensors and products do.
    """
    from pyproj import Transformer

    random = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    outlines = place_buildings(size, buildings, random)
    subtypes = draw_subtypes(buildings, damaged_share, random)
    pair = draw_pair(size, outlines, subtypes, random)
    west, north, step = _grid_in(crs_image)
    transform = (step, 0.0, west, 0.0, -step, north)
    pre, post = folder / "pre.tif", folder / "post.tif"
    for path, pixels in zip((pre, post), pair, strict=True):
        _write_geotiff(path, _as_bands(pixels, bands, dtype), crs_image, transform, nodata)
    to_footprints = Transformer.from_crs(crs_image, crs_footprints, always_xy=True)
    to_degrees = Transformer.from_crs(crs_image, "EPSG:4326", always_xy=True)
    drawn = []
    for number, (outline, subtype) in enumerate(zip(outlines, subtypes, strict=True)):
        x, y = outline.centre
        lon, lat = to_degrees.transform(west + x * step, north - y * step)
        drawn.append(FakeBuilding(f"b{number:05d}", "post.tif", subtype, outline, lon, lat))
    rings = [
        [to_footprints.transform(west + x * step, north - y * step) for x, y in outline.ring]
        for outline in outlines
    ]
    names = [building.name for building in drawn]
    damaged = [building.name for building in drawn if building.damaged]
    chosen = tuple(sorted(str(name) for name in random.permutation(damaged)[:marked]))
    _write_table(folder / "ids.csv", ("id",), [(name,) for name in chosen])
    truth = [(building.name, int(building.damaged)) for building in drawn]
    _write_table(folder / "truth.csv", ("id", "damaged"), truth)
    geojson, gpkg = folder / "buildings.geojson", folder / "buildings.gpkg"
    _write_geojson(geojson, names, rings, crs_footprints)
    _write_geopackage(gpkg, names, rings, crs_footprints)
    return FakeScene(
        post,
        pre,
        geojson,
        gpkg,
        folder / "ids.csv",
        folder / "truth.csv",
        tuple(drawn),
        chosen,
        transform,
    )


def _grid_in(crs: str) -> tuple[float, float, float]:
    """Return the north-western corner of the scene and the size of its pixels."""
    from pyproj import CRS, Transformer

    if CRS.from_user_input(crs).is_geographic:
        return LON, LAT, DEGREES
    x, y = Transformer.from_crs("EPSG:4326", crs, always_xy=True).transform(LON, LAT)
    return float(round(x)), float(round(y)), GSD


def _as_bands(pixels: np.ndarray, bands: int, dtype: str) -> np.ndarray:
    grey = pixels.mean(axis=0, keepdims=True).astype(np.uint8)
    if bands == 1:
        pixels = grey
    elif bands > 3:
        infrared = np.roll(grey, 1, axis=1)
        pixels = np.concatenate([pixels, *[infrared] * (bands - 3)])
    else:
        pixels = pixels[:bands]
    if dtype == "uint16":
        return pixels.astype(np.uint16) * 16
    return pixels.astype(np.float32) / 255 if dtype == "float32" else pixels


def _write_geotiff(
    path: Path,
    pixels: np.ndarray,
    crs: str,
    transform: tuple[float, float, float, float, float, float],
    nodata: float | None,
) -> None:
    import rasterio  # type: ignore[import-untyped, unused-ignore]

    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        height=pixels.shape[1],
        width=pixels.shape[2],
        count=len(pixels),
        dtype=pixels.dtype,
        crs=crs,
        transform=rasterio.Affine(*transform),
        tiled=True,
        blockxsize=256,
        blockysize=256,
        nodata=nodata,
    ) as file:
        file.write(pixels)


def _write_table(path: Path, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])


def _write_geojson(path: Path, names: Sequence[str], rings: Sequence[Ring], crs: str) -> None:
    content: dict[str, Any] = {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "properties": {"id": name},
                "geometry": {"type": "Polygon", "coordinates": [[list(point) for point in ring]]},
            }
            for name, ring in zip(names, rings, strict=True)
        ],
    }
    if crs != "EPSG:4326":  # GeoJSON is in degrees unless it says otherwise, in the old way
        authority, code = crs.split(":")
        name = f"urn:ogc:def:crs:{authority}::{code}"
        content["crs"] = {"type": "name", "properties": {"name": name}}
    path.write_text(json.dumps(content))


def _write_geopackage(path: Path, names: Sequence[str], rings: Sequence[Ring], crs: str) -> None:
    from pyogrio.raw import write  # type: ignore[import-untyped, unused-ignore]
    from shapely import polygons, to_wkb  # type: ignore[import-untyped, unused-ignore]

    write(
        path,
        geometry=to_wkb(polygons([np.array(ring) for ring in rings])),
        field_data=[np.array(names, dtype=object)],
        fields=["id"],
        geometry_type="Polygon",
        crs=crs,
        driver="GPKG",
    )
