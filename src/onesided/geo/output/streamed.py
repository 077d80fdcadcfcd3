"""The map of a region as files: written piece by piece, so that memory stays flat.

GDAL writes GeoPackage, FlatGeobuf, GeoJSON and PMTiles from a stream of Arrow batches; GeoParquet
is written by pyarrow.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int64

from onesided.core.errors import ConfigError, OnesidedError
from onesided.geo.input.footprint_stream import GEOMETRY, KEY, geo_metadata
from onesided.geo.output.layers import store_style, style_text
from onesided.geo.output.table import OURS, decisions_of, roles_of
from onesided.geo.scene.pieces import NAME, NUMBER, Division, Piece
from onesided.metrics.calibration import Calibration
from onesided.storage.atomic import replacing_by_name
from onesided.storage.optional import library

DRIVERS = {".gpkg": "GPKG", ".geojson": "GeoJSON", ".fgb": "FlatGeobuf", ".pmtiles": "PMTiles"}
PARQUET = ".parquet"
FORMATS = (*DRIVERS, PARQUET)
"""Endings of the files that can be written."""
OPTIONS: Mapping[str, Mapping[str, str]] = {
    ".geojson": {"RFC7946": "YES"},
    # From a province to a building; every building is in the largest zoom.
    ".pmtiles": {"MINZOOM": "8", "MAXZOOM": "15"},
}


@dataclass(frozen=True)
class Decided:
    """Everything that a map adds to its buildings, by their numbers.

    Attributes:
        ranks: Order in which to check open buildings, from 1; 0 for all others.
        threshold: A building with a higher score is called damaged.
        curve: From scores to probabilities; None where the map has no such column.
        rejected: Which buildings reviewers call undamaged; None where nobody did.
    """

    scores: Float64[np.ndarray, "n"]
    marked: Bool[np.ndarray, "n"]
    held_out: Bool[np.ndarray, "n"]
    ranks: Int64[np.ndarray, "n"]
    reasons: Mapping[int, str]
    threshold: float
    curve: Calibration | None = None
    rejected: Bool[np.ndarray, "n"] | None = None

    def rejected_at(self, numbers: Int64[np.ndarray, "m"]) -> Bool[np.ndarray, "m"] | None:
        """Return which of some buildings reviewers call undamaged; None where nobody did."""
        return None if self.rejected is None else self.rejected[numbers]


def write_region(division: Division, decided: Decided, path: Path) -> None:
    """Write all buildings of a region to a file, in the format of its ending."""
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise ConfigError(f"A map is written as {', '.join(FORMATS)}; got {path}.")
    arrow = library("pyarrow", "Writing a region")
    batches = _batches(division, decided)
    first = next(batches)

    def every() -> Iterator[Any]:
        yield first
        yield from batches

    if ending == PARQUET:
        _write_parquet(first.schema, every(), division, path)
        return
    pyogrio = library("pyogrio", f"Writing {path.name}")
    reader = arrow.RecordBatchReader.from_batches(first.schema, every())
    kind = _geometry_type(first)
    try:
        with replacing_by_name(path, ending) as part:
            pyogrio.write_arrow(
                reader,
                part,
                driver=DRIVERS[ending],
                layer=path.stem,
                geometry_name=GEOMETRY,
                geometry_type=kind,
                crs=division.system.to_wkt(),
                **OPTIONS.get(ending, {}),
            )
            if ending == ".gpkg":
                store_style(part, path.stem, style_text(is_point=kind == "Point"), GEOMETRY)
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError, RuntimeError) as error:
        raise OnesidedError(f"Cannot write {path} ({error}).") from None


def _geometry_type(batch: Any) -> str:  # noqa: ANN401
    shapely = library("shapely", "Writing a region")
    kinds = set(shapely.get_type_id(shapely.from_wkb(batch.column(GEOMETRY).to_pylist())).tolist())
    return "Point" if kinds - {-1} == {0} else "Unknown"


def _write_parquet(schema: Any, batches: Iterator[Any], division: Division, path: Path) -> None:  # noqa: ANN401
    parquet = library("pyarrow.parquet", "Writing GeoParquet")
    described = schema.with_metadata({**(schema.metadata or {}), **geo_metadata(division.system)})
    with (
        replacing_by_name(path, PARQUET) as part,
        parquet.ParquetWriter(part, described, compression="zstd") as writer,
    ):
        for batch in batches:
            writer.write_batch(batch.cast(described))


def _batches(division: Division, decided: Decided) -> Iterator[Any]:
    return (_batch(piece, decided, has_id=division.has_id) for piece in division.all())


def _batch(piece: Piece, decided: Decided, *, has_id: bool) -> Any:  # noqa: ANN401
    """Return the attributes of a piece and ours; on a clash theirs are renamed."""
    arrow = library("pyarrow", "Writing a region")
    numbers, table = piece.numbers, piece.table
    theirs, taken = dict[str, Any](), {*OURS, "fid", "geom", GEOMETRY}
    if not has_id:
        taken.add("id")
        theirs["id"] = table.column(NAME).combine_chunks()
    for name in table.column_names:
        if name in (KEY, GEOMETRY, NAME, NUMBER):
            continue
        column, new = table.column(name).combine_chunks(), name
        while new.lower() in taken:
            new = f"original_{new}"
        taken.add(new.lower())
        theirs[new] = column
    scores = decided.scores[numbers]
    rejected = decided.rejected_at(numbers)
    called = decisions_of(scores, decided.threshold, rejected)
    roles = roles_of(decided.marked[numbers], decided.held_out[numbers], rejected)
    ranks, missing = decided.ranks[numbers], decided.ranks[numbers] == 0
    curve = decided.curve
    ours = {
        "score": arrow.array(scores, mask=np.isnan(scores)),
        **({"probability": arrow.array(curve.of(scores), mask=np.isnan(scores))} if curve else {}),
        "rank": arrow.array(ranks, mask=missing),
        "decision": arrow.array(called, arrow.string()),
        "role": arrow.array(roles, arrow.string()),
        "reason": arrow.array(
            [decided.reasons.get(number) for number in numbers.tolist()], arrow.string()
        ),
    }
    shapes = table.column(GEOMETRY).combine_chunks()
    columns = {**theirs, **ours, GEOMETRY: shapes}
    return arrow.RecordBatch.from_arrays(list(columns.values()), list(columns))
