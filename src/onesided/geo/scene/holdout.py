"""Which buildings to keep out of training, to tell afterwards whether it worked.

Neighbours show the same roofs, the same light, and parts of each other: a network that was
trained on the house next door has half seen this one. So whole neighbourhoods are held out.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

from onesided.core.errors import DataError
from onesided.core.labels import UNKNOWN
from onesided.data.problem.dataset import PUDataset, PUSplit, Selection
from onesided.data.problem.split import MINIMUM_POSITIVES
from onesided.geo.input.coordinates import Geometries
from onesided.geo.input.footprints import Buildings
from onesided.geo.scene.chips import Chips
from onesided.run.config import ChipsConfig
from onesided.run.load import LoadedData, channel_statistics
from onesided.storage.optional import library

NEIGHBOURHOODS = 64
"""Pieces of equal numbers of buildings into which a place is divided, at most."""
FEWEST_IN_ONE = 4


def load_chips(
    buildings: Buildings, chips: Chips, marked: Bool[np.ndarray, "n"], config: ChipsConfig
) -> LoadedData:
    """Return the PU problem of a map: marked buildings against all others that can be seen."""
    kept = chips.kept
    _check_counts(marked, kept, chips)
    rows = np.flatnonzero(kept)
    group = neighbourhoods(_places(buildings.geometries[rows]))
    out = choose_held_out(group, marked[rows], config.held_out, config.seed)
    train = _part(buildings, chips, marked, rows[~out.held_out])
    held_out = _part(buildings, chips, marked, rows[out.held_out])
    split = PUSplit(
        train=train,
        test=None,
        held_out=held_out if len(held_out) else None,
        clean=None,
        kind="remote",
        scenario=config.scenario,
    )
    mean, std = channel_statistics(train.values)
    skipped = tuple((buildings.names[row], reason) for row, reason in chips.reasons.items())
    return LoadedData(split, mean, std, notices=out.notices, skipped=skipped)


def _check_counts(marked: Bool[np.ndarray, "n"], kept: Bool[np.ndarray, "n"], chips: Chips) -> None:
    if not kept.any():
        first = next(iter(chips.reasons.values()))
        raise DataError(f"None of the {len(kept)} buildings can be seen; the first: {first}.")
    check_enough(marked[kept], "can be seen in the image")


def check_enough(marked: Bool[np.ndarray, "n"], where: str) -> None:
    """Refuse too few marked or unmarked buildings; `where` says of which they are too few."""
    for count, what in ((int(marked.sum()), "marked"), (int((~marked).sum()), "unmarked")):
        if count < MINIMUM_POSITIVES:
            raise DataError(
                f"{count} {what} buildings {where}, which is too few to learn from; at least "
                f"{MINIMUM_POSITIVES} are needed, and fifty or more are better."
            )


def _part(
    buildings: Buildings, chips: Chips, marked: Bool[np.ndarray, "n"], rows: Int64[np.ndarray, "m"]
) -> PUDataset:
    return PUDataset(
        values=Selection(chips.values, rows),
        labelled=marked[rows],
        truth=np.full(len(rows), UNKNOWN, np.int64),
        names=tuple(buildings.names[row] for row in rows),
    )


def _places(geometries: Geometries) -> Float64[np.ndarray, "n 2"]:
    """Return the middle of every geometry; a building without one lies at the others' middle."""
    boxes = np.asarray(library("shapely", "A footprint").bounds(geometries), np.float64)
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    known = np.isfinite(middle).all(axis=1)
    middle[~known] = middle[known].mean(axis=0) if known.any() else 0.0
    return middle


def neighbourhoods(places: Float64[np.ndarray, "n 2"]) -> Int64[np.ndarray, "n"]:
    """Return a number for each place, equal for places side by side.

    Halved at the median across the longer side, again and again, so that a dense town
    and its scattered outskirts give pieces of the same number of buildings.
    """
    group = np.zeros(len(places), np.int64)
    parts = [np.arange(len(places))]
    while len(parts) < NEIGHBOURHOODS and min(map(len, parts)) >= 2 * FEWEST_IN_ONE:
        halves = []
        for part in parts:
            axis = int(np.ptp(places[part], axis=0).argmax())
            order = part[np.argsort(places[part, axis], kind="stable")]
            halves += [order[: len(order) // 2], order[len(order) // 2 :]]
        parts = halves
    for number, part in enumerate(parts):
        group[part] = number
    return group


@dataclass(frozen=True)
class HeldOut:
    """Which rows are kept out of training, and what to tell about it."""

    held_out: Bool[np.ndarray, "n"]
    notices: tuple[str, ...] = ()


def choose_held_out(
    group: Int64[np.ndarray, "n"], marked: Bool[np.ndarray, "n"], share: float, seed: int
) -> HeldOut:
    """Return whole neighbourhoods that hold about this share of the marked buildings.

    Where the marked ones stand so close together that this cannot be done, single
    buildings are held out, and that is told.
    """
    nobody = np.zeros(len(group), bool)
    wanted = round(share * int(marked.sum()))
    if wanted == 0:
        return HeldOut(nobody)
    random = np.random.RandomState(seed)
    counts = np.bincount(group, marked, minlength=int(group.max()) + 1).astype(np.int64)
    chosen: list[int] = []
    reached = 0
    for number in random.permutation(len(counts)):
        if reached < wanted and reached + counts[number] <= max(1.5 * wanted, wanted + 1):
            chosen.append(int(number))
            reached += int(counts[number])
    held_out = np.isin(group, chosen)
    enough_left = int((~marked & ~held_out).sum()) >= MINIMUM_POSITIVES
    if reached >= wanted and enough_left and (held_out & ~marked).any():
        return HeldOut(held_out)
    for rows in (np.flatnonzero(marked), np.flatnonzero(~marked)):
        held_out[rows] = False
        held_out[random.permutation(rows)[: round(share * len(rows))]] = True
    return HeldOut(
        held_out,
        (
            "The marked buildings stand in few places, so single buildings were held out instead "
            "of neighbourhoods; figures from them are too good where neighbours look alike.",
        ),
    )
