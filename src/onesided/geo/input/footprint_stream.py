"""Footprints of a whole region, some thousand at a time: memory does not grow with their number.

GDAL's formats come through pyogrio as Arrow; GeoParquet through pyarrow alone.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onesided.core.errors import ConfigError, DataError, DataNotFound
from onesided.geo.input.coordinates import WGS84, System, known_system, same_system, system
from onesided.geo.input.footprints import USUAL_IDS, Buildings, id_text
from onesided.geo.input.shapes import without_collections
from onesided.geo.input.vector import (
    GEOPARQUET,
    chosen_layer,
    geoparquet_facts,
    is_readable,
    unreadable,
)
from onesided.storage.optional import library

BATCH = 16_384
"""Footprints in memory at a time."""
KEY, GEOMETRY = "onesided_feature", "geometry"
"""Columns of a batch beside the attributes: number of the feature in its format, and its WKB."""
PURPOSE = "Reading the footprints of a region"

Batch = Any
"""A `pyarrow.RecordBatch`."""


@dataclass(frozen=True)
class FootprintStream:
    """The footprints of a file, in its order.

    Attributes:
        batches: Some thousand footprints at a time: attributes, `KEY` and `GEOMETRY`.
        columns: Names of the attributes.
    """

    path: Path
    system: System
    columns: tuple[str, ...]
    batches: Iterator[Batch]

    def id_column(self, given: str | None) -> str | None:
        """Return the column that names buildings; None where the number of the feature does."""
        if given is not None:
            if given not in self.columns:
                raise ConfigError(
                    f"{self.path} has no column '{given}'; it has {', '.join(self.columns)}."
                )
            return given
        lower_case = {name.lower(): name for name in reversed(self.columns)}
        return next((lower_case[usual] for usual in USUAL_IDS if usual in lower_case), None)


@contextmanager
def streamed_footprints(
    path: Path, *, layer: str | None = None, given_system: str | None = None
) -> Iterator[FootprintStream]:
    """Open the footprints of a file; `given_system` is for one that names no coordinate system."""
    if not is_readable(path):
        raise DataNotFound(f"There is no file {path}. Give a GeoPackage, FlatGeobuf or GeoParquet.")
    library("pyarrow", PURPOSE)
    opened = _parquet(path) if path.suffix.lower() in GEOPARQUET else _by_gdal(path, layer)
    with opened as (named, columns, batches):
        found = named
        if given_system is not None:
            found = system(given_system)
            if named is not None and not same_system(named, found):
                raise ConfigError(
                    f"{path} says that it is in {named.name}; {found.name} was given for it. "
                    "Leave it out, or correct the file."
                )
        if found is None:
            raise DataError(
                f"{path} does not say in which coordinate system its footprints are. Name it with "
                "--footprints-crs, for example --footprints-crs EPSG:4326."
            )
        yield FootprintStream(path, found, columns, batches)


Opened = tuple[System | None, tuple[str, ...], Iterator[Batch]]


@contextmanager
def _by_gdal(path: Path, layer: str | None) -> Iterator[Opened]:
    pyogrio = library("pyogrio", PURPOSE)
    raw = library("pyogrio.raw", PURPOSE)
    chosen = chosen_layer(path, layer, "--layer")
    try:
        with raw.open_arrow(
            path, layer=chosen, use_pyarrow=True, return_fids=True, batch_size=BATCH
        ) as (meta, reader):
            fields = tuple(str(name) for name in meta["fields"])
            geometry = meta["geometry_name"] or "wkb_geometry"

            def batches() -> Iterator[Batch]:
                for batch in reader:
                    others = [name for name in batch.schema.names if name not in fields]
                    key = next(name for name in others if name != geometry)
                    yield _normalised(batch, fields, batch.column(key), batch.column(geometry))

            yield known_system(meta["crs"]), fields, batches()
    except pyogrio.errors.DataSourceError as error:
        raise unreadable(path, error) from None


@contextmanager
def _parquet(path: Path) -> Iterator[Opened]:
    arrow, parquet = library("pyarrow", PURPOSE), library("pyarrow.parquet", PURPOSE)
    try:
        file = parquet.ParquetFile(path)
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"{path} is not a Parquet file that can be read ({error}).") from None
    with file:
        facts = geoparquet_facts(path, file.schema_arrow)
        fields = tuple(name for name in file.schema_arrow.names if name != facts.geometry)

        def batches() -> Iterator[Batch]:
            first = 0
            for batch in file.iter_batches(BATCH):
                key = arrow.array(np.arange(first, first + len(batch)) + 1)
                yield _normalised(batch, fields, key, batch.column(facts.geometry))
                first += len(batch)

        yield facts.system, fields, batches()


def _normalised(batch: Batch, fields: tuple[str, ...], key: object, geometry: object) -> Batch:
    arrow = library("pyarrow", PURPOSE)
    columns = [batch.column(name) for name in fields]
    return arrow.RecordBatch.from_arrays([*columns, key, geometry], [*fields, KEY, GEOMETRY])


def buildings_of(batch: Batch, its_system: System, id_column: str | None) -> tuple[Buildings, int]:
    """Return the buildings of a batch or table, without attributes; and how many collections."""
    shapely = library("shapely", PURPOSE)
    keys = batch.column(KEY).to_pylist()
    named = keys if id_column is None else batch.column(id_column).to_pylist()
    names = tuple(id_text(name) or f"feature {key}" for name, key in zip(named, keys, strict=True))
    wkb = np.array(batch.column(GEOMETRY).to_pylist(), object)
    shapes, collections = without_collections(shapely.from_wkb(wkb, on_invalid="ignore"))
    return Buildings(names, shapes, its_system, {}), collections


def attributes_of(batch: Batch, columns: tuple[str, ...]) -> Mapping[str, np.ndarray]:
    """Return attributes as arrays of objects."""
    found = {}
    for name in columns:
        values = np.empty(len(batch), object)
        values[:] = batch.column(name).to_pylist()
        found[name] = values
    return found


def geo_metadata(its_system: System) -> dict[bytes, bytes]:
    """Return the metadata that makes a Parquet file GeoParquet 1.1."""
    column: dict[str, object] = {"encoding": "WKB", "geometry_types": []}
    if not same_system(its_system, system(WGS84)):
        column["crs"] = json.loads(its_system.to_json())
    content = {"version": "1.1.0", "primary_column": GEOMETRY, "columns": {GEOMETRY: column}}
    return {b"geo": json.dumps(content).encode()}
