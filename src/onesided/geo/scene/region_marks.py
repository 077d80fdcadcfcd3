"""Which buildings of a region are marked, and which of them a model is trained on."""

from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int64

from onesided.core import rng
from onesided.core.errors import ConfigError, DataError
from onesided.geo.input.footprints import Buildings
from onesided.geo.input.positives import (
    Marks,
    column_values,
    drawn_marks,
    listed_ids,
    marked_pairs,
)
from onesided.geo.scene.pieces import Division
from onesided.geo.scene.sources import TABLES, MapSources

TRAINED_ON = 10_000
"""Unmarked buildings that a model is trained on; more takes longer and finds hardly more."""


def region_marks(division: Division, sources: MapSources) -> Marks:
    """Return which buildings are marked, by their numbers; a piece at a time."""
    marked = np.zeros(division.count, bool)
    if sources.positives_column is not None:
        for piece in division.all(attributes=True):
            holds = column_values(piece.buildings, sources.positives_column)[2]
            marked[piece.numbers[holds]] = True
        return _some(marked, f"No building has {sources.positives_column}.")
    path = sources.positives
    if path is None:
        return Marks(marked)
    if path.is_dir():
        raise ConfigError(
            f"{path} is a folder; --positives takes a CSV file of ids or a vector layer."
        )
    if path.suffix.lower() in TABLES:
        return _by_ids(division, path, marked, sources.id_column)
    marks = drawn_marks(path, division.system, layer_name=sources.positives_layer)
    hit = np.zeros(len(marks), bool)
    for piece in division.all():
        pairs = marked_pairs(marks, piece.buildings.geometries)
        hit[pairs[0]] = True
        marked[piece.numbers[pairs[1]]] = True
    stray = int((~hit).sum())
    told = f"{stray} of {len(marks)} marks in {path} lie on no building and were left out."
    found = _some(marked, f"None of the {len(marks)} marks in {path} lies on a building.")
    return Marks(found.marked, (told,) if stray else ())


def _by_ids(
    division: Division, path: Path, marked: Bool[np.ndarray, "n"], id_column: str | None
) -> Marks:
    wanted = set(listed_ids(path, id_column).wanted)
    found = set[str]()
    for piece in division.all():
        rows = [row for row, name in enumerate(piece.buildings.names) if name in wanted]
        found.update(piece.buildings.names[row] for row in rows)
        marked[piece.numbers[rows]] = True
    unknown = len(wanted) - len(found)
    told = f"{unknown} of {len(wanted)} ids in {path} belong to no building and were left out."
    some = _some(
        marked,
        f"None of the {len(wanted)} ids in {path} is the id of a building. If another column "
        "holds the ids, name it with --id-column.",
    )
    return Marks(some.marked, (told,) if unknown else ())


def _some(marked: Bool[np.ndarray, "n"], otherwise: str) -> Marks:
    if not marked.any():
        raise DataError(otherwise)
    return Marks(marked)


def training_sample(
    division: Division, marked: Bool[np.ndarray, "n"], seed: int
) -> tuple[Int64[np.ndarray, "m"], Buildings]:
    """Return numbers and buildings to train on: all marked, and unmarked ones drawn at random.

    They are drawn from the whole region, so the figures of the sample are those of the region.
    """
    unmarked = np.flatnonzero(~marked)
    random = rng.numpy_generator(seed, "region")
    drawn = random.permutation(unmarked)[:TRAINED_ON]
    chosen = np.zeros(division.count, bool)
    chosen[drawn] = True
    chosen |= marked
    numbers, names, shapes = [np.zeros(0, np.int64)], list[str](), [np.zeros(0, object)]
    for piece in division.all():
        rows = np.flatnonzero(chosen[piece.numbers])
        numbers.append(piece.numbers[rows])
        names += [piece.buildings.names[row] for row in rows]
        shapes.append(piece.buildings.geometries[rows])
    every = np.concatenate(shapes)
    return np.concatenate(numbers), Buildings(tuple(names), every, division.system, {})
