"""A region in pieces of a spatial grid: footprints sorted into files of a few thousand.

Each piece is a Parquet file of neighbours, so every later step (marks, cutting, scoring, writing)
holds one piece in memory, and a killed command loses one piece. The grid halves the region at
medians, so pieces of a town and of open country hold equally many buildings.

A division is complete or not there: it is made in a folder of another name and renamed.
"""

import hashlib
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from onesided.core.errors import DataError
from onesided.geo.input.coordinates import System, system
from onesided.geo.input.footprint_stream import (
    GEOMETRY,
    Batch,
    attributes_of,
    buildings_of,
    streamed_footprints,
)
from onesided.geo.input.footprints import Buildings, collections_in_words
from onesided.geo.scene.chips import file_identity
from onesided.geo.scene.halving import halved, middles, with_middle_for_none
from onesided.storage.atomic import read_json, rename, write_json
from onesided.storage.optional import library
from onesided.storage.progress import Progress

DIVISION, FACTS = "pieces", "division.json"
IN_A_PIECE, MOST_PIECES = 4096, 512
"""Buildings in a piece, about; and pieces at most, since each has an open file at first."""
NUMBER, NAME = "onesided_number", "onesided_name"
"""Columns of a piece beside those of the file: place in the file from 0, and the building's id."""
RULES = 1


@dataclass(frozen=True)
class Piece:
    """The buildings of one piece.

    Attributes:
        numbers: Place of each building in the file, from 0.
        table: All columns as Arrow.
    """

    numbers: Int64[np.ndarray, "n"]
    buildings: Buildings
    table: Any


@dataclass(frozen=True)
class Division:
    """All footprints of a region, sorted into pieces.

    Attributes:
        count: Buildings in all pieces.
        pieces: How many pieces there are.
        content: Hash of all names and geometries, the same on every machine.
        columns: Attributes of the file.
        has_id: Whether one of them is called id and holds the ids of all buildings.
        warnings: Sentences for the user.
    """

    folder: Path
    count: int
    pieces: int
    content: str
    columns: tuple[str, ...]
    has_id: bool
    system: System
    warnings: tuple[str, ...] = ()

    def path(self, number: int) -> Path:
        """Return the file of a piece."""
        return self.folder / f"{number:05d}.parquet"

    def read(self, number: int, *, attributes: bool = False) -> Piece:
        """Return a piece; with `attributes` its buildings have their columns."""
        parquet = library("pyarrow.parquet", "Reading the pieces of a region")
        table = parquet.read_table(self.path(number))
        found, _ = buildings_of(table, self.system, NAME)
        columns = attributes_of(table, self.columns) if attributes else {}
        buildings = Buildings(found.names, found.geometries, self.system, columns)
        return Piece(table.column(NUMBER).to_numpy(), buildings, table)

    def all(self, *, attributes: bool = False) -> Iterator[Piece]:
        """Return one piece after the other."""
        return (self.read(number, attributes=attributes) for number in range(self.pieces))

    def of_part(self, part: tuple[int, int]) -> range:
        """Return the pieces that part k of n has to score; all parts together have each once."""
        which, parts = part
        return range((which - 1) * self.pieces // parts, which * self.pieces // parts)


def divide(
    path: Path,
    folder: Path,
    *,
    layer: str | None = None,
    id_column: str | None = None,
    given_system: str | None = None,
    progress: Progress | None = None,
) -> Division:
    """Sort the footprints of a file into pieces in a folder, or find it done."""
    settings = [RULES, IN_A_PIECE, layer, id_column, given_system, file_identity(path)]
    done = folder / DIVISION
    if (done / FACTS).is_file():
        division = read_division(folder)
        if read_json(done / FACTS)["settings"] == settings:
            return division
    unfinished = folder / f"{DIVISION}.part"
    for old in (unfinished, done):
        shutil.rmtree(old, ignore_errors=True)
    unfinished.mkdir(parents=True)
    places, duplicate, counts = _survey(path, layer, id_column, given_system)
    if not len(places):
        raise DataError(f"{path} holds no feature. Expected one for each building.")
    if duplicate is not None:
        raise DataError(
            f"The id '{duplicate}' occurs more than once in {path}, and every building needs its "
            "own. Name a column of different values with --id-column."
        )
    wanted = min(MOST_PIECES, -(-len(places) // IN_A_PIECE))
    piece_of = halved(with_middle_for_none(places), parts=wanted, fewest=1)
    sort = _Sorting(unfinished, piece_of, progress)
    with streamed_footprints(path, layer=layer, given_system=given_system) as stream:
        column = stream.id_column(id_column)
        content = sort.all(stream.batches, stream.system, column)
        facts = {
            "settings": settings,
            "count": len(places),
            "pieces": int(piece_of.max()) + 1,
            "content": content,
            "columns": list(stream.columns),
            "has_id": (column or "").lower() == "id" and not counts["nameless"],
            "system": stream.system.to_wkt(),
            "warnings": _warnings(counts, len(places), path, column),
        }
    write_json(unfinished / FACTS, facts)
    rename(unfinished, done)
    return read_division(folder)


def _warnings(counts: Counter[str], total: int, path: Path, column: str | None) -> list[str]:
    warnings = []
    if counts["nameless"]:
        warnings.append(
            f"The column '{column}' of {path} is empty for {counts['nameless']} of {total} "
            "buildings; they are called 'feature' and their number in the file."
        )
    if counts["collections"]:
        warnings.append(collections_in_words(counts["collections"], total, str(path)))
    return warnings


def read_division(folder: Path) -> Division:
    """Return the division that a folder holds."""
    facts = read_json(folder / DIVISION / FACTS)
    try:
        return Division(
            folder / DIVISION,
            int(facts["count"]),
            int(facts["pieces"]),
            str(facts["content"]),
            tuple(facts["columns"]),
            bool(facts["has_id"]),
            system(facts["system"]),
            tuple(facts["warnings"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{folder / DIVISION / FACTS} is damaged ({error}). Delete the folder {folder}, and "
            "give the same command again."
        ) from None


def _survey(
    path: Path, layer: str | None, id_column: str | None, given_system: str | None
) -> tuple[Float64[np.ndarray, "n 2"], str | None, Counter[str]]:
    """Return the middle of every footprint, a name that occurs twice, and what was counted.

    Names are compared by 8 bytes of a hash: a million take 8 MB.
    """
    places, hashes, counts = [np.zeros((0, 2))], [np.zeros(0, np.uint64)], Counter[str]()
    with streamed_footprints(path, layer=layer, given_system=given_system) as stream:
        column = stream.id_column(id_column)
        for batch in stream.batches:
            buildings, found = buildings_of(batch, stream.system, column)
            places.append(middles(buildings.geometries))
            hashes.append(_hashes(buildings.names))
            counts["collections"] += found
            counts["nameless"] += 0 if column is None else batch.column(column).null_count
    values, times = np.unique(np.concatenate(hashes), return_counts=True)
    twice = values[times > 1]
    name = _name_of(int(twice[0]), path, layer, column, given_system) if len(twice) else None
    return np.concatenate(places), name, counts


def _hashes(names: tuple[str, ...]) -> np.ndarray:
    digests = (
        hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8).digest()
        for name in names
    )
    return np.frombuffer(b"".join(digests), np.uint64)


def _name_of(
    wanted: int, path: Path, layer: str | None, column: str | None, given_system: str | None
) -> str | None:
    with streamed_footprints(path, layer=layer, given_system=given_system) as stream:
        for batch in stream.batches:
            names = buildings_of(batch, stream.system, column)[0].names
            places = np.flatnonzero(_hashes(names) == wanted)
            if len(places):
                return str(names[places[0]])
    return None


class _Sorting:
    """Writes each footprint into the file of its piece."""

    def __init__(
        self, folder: Path, piece_of: Int64[np.ndarray, "n"], progress: Progress | None
    ) -> None:
        self.folder, self.piece_of, self.progress = folder, piece_of, progress
        self.writers: dict[int, Any] = {}
        self.digest = hashlib.sha256()

    def all(self, batches: Iterator[Batch], its_system: System, column: str | None) -> str:
        """Sort all batches; return a hash of names and geometries."""
        first = 0
        with ExitStack() as stack:
            for batch in batches:
                pieces = self.piece_of[first : first + len(batch)]
                self._add(stack, _with_names(batch, its_system, column, first), pieces)
                first += len(batch)
                if self.progress is not None:
                    self.progress(first, len(self.piece_of))
        return self.digest.hexdigest()

    def _add(self, stack: ExitStack, batch: Batch, pieces: Int64[np.ndarray, "n"]) -> None:
        parquet = library("pyarrow.parquet", "Sorting footprints")
        for name, shape in zip(
            batch.column(NAME).to_pylist(), batch.column(GEOMETRY).to_pylist(), strict=True
        ):
            self.digest.update(name.encode("utf-8", "backslashreplace") + b"\x1e" + (shape or b""))
        for piece in np.unique(pieces):
            writer = self.writers.get(int(piece))
            if writer is None:
                path = self.folder / f"{piece:05d}.parquet"
                writer = stack.enter_context(parquet.ParquetWriter(path, batch.schema))
                self.writers[int(piece)] = writer
            writer.write_batch(batch.take(np.flatnonzero(pieces == piece)))


def _with_names(batch: Batch, its_system: System, column: str | None, first: int) -> Batch:
    """Return a batch with number and name of each building, and collections as polygons."""
    arrow, shapely = library("pyarrow", "Sorting"), library("shapely", "Sorting")
    buildings, _ = buildings_of(batch, its_system, column)
    shapes = arrow.array(shapely.to_wkb(buildings.geometries).tolist(), arrow.binary())
    names = [name.encode("utf-8", "backslashreplace").decode() for name in buildings.names]
    numbers = arrow.array(np.arange(first, first + len(batch)))
    kept = [name for name in batch.schema.names if name != GEOMETRY]
    columns = [*(batch.column(name) for name in kept), shapes, arrow.array(names), numbers]
    return arrow.RecordBatch.from_arrays(columns, [*kept, GEOMETRY, NAME, NUMBER])
