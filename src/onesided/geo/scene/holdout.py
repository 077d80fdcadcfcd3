"""Which buildings are held out from training, to evaluate the model on them.

Neighbours have the same roofs and the same light, and their windows overlap: a network that
was trained on the house next door has half seen this one. So whole neighbourhoods are held out.
"""

from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float64, Int64

from onesided.core.errors import DataError
from onesided.core.labels import UNKNOWN
from onesided.data.problem.content import copies_of, repetition_notice
from onesided.data.problem.dataset import PUDataset, PUSplit, Selection
from onesided.data.problem.split import MINIMUM_POSITIVES
from onesided.geo.input.footprints import Buildings
from onesided.geo.input.positives import holds_answers
from onesided.geo.scene.chips import Chips
from onesided.geo.scene.halving import halved, middles, with_middle_for_none
from onesided.run.config import ChipsConfig
from onesided.run.load import LoadedData, channel_statistics
from onesided.run.scored import Scored

NEIGHBOURHOODS = 64
"""Parts with equal numbers of buildings into which a place is divided, at most."""
FEWEST_IN_ONE = 4


def load_chips(
    buildings: Buildings, chips: Chips, marked: Bool[np.ndarray, "n"], config: ChipsConfig
) -> LoadedData:
    """Return the PU problem of a map: marked buildings against all others that have a chip."""
    kept = chips.kept
    if not kept.any():
        first = next(iter(chips.reasons.values()))
        raise DataError(f"None of the {len(kept)} buildings can be seen; the first: {first}.")
    check_enough(marked[kept], "can be seen in the image")
    rows = np.flatnonzero(kept)
    group = neighbourhoods(with_middle_for_none(middles(buildings.geometries[rows])))
    out, notices = choose_held_out(group, marked[rows], config.held_out, config.seed)
    # Copies alone: neighbours look alike, and are on one side already.
    contents = copies_of([Selection(chips.values, rows)])
    content = np.full(len(kept), -1)
    content[rows] = contents.number
    part = partial(_part, buildings, chips, marked, content if contents.repeated else None)
    train, held_out = part(rows[~out], group[~out]), part(rows[out], group[out])
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
    notices += repetition_notice(contents)
    return LoadedData(split, mean, std, notices=notices, skipped=skipped)


def check_enough(marked: Bool[np.ndarray, "n"], where: str, positives: Path | None = None) -> None:
    """Refuse too few marked or unmarked buildings; `where` ends the phrase that counts them.

    `positives` is the file that marks them: answers alone lack the marks of the map before.
    """
    for count, what in ((int(marked.sum()), "marked"), (int((~marked).sum()), "unmarked")):
        if count < MINIMUM_POSITIVES:
            raise DataError(
                f"{count} {what} buildings {where}, which is too few to train on; at least "
                f"{MINIMUM_POSITIVES} are needed, and fifty or more are better."
                f"{_advice(positives)}"
            )


def _advice(positives: Path | None) -> str:
    if positives is None or not holds_answers(positives):
        return ""
    return (
        f" {positives} holds answers alone; to add them to the marks of the map before, give its "
        f"run folder: onesided review RUN --import {positives.name}, then onesided review RUN "
        "--apply."
    )


def _part(
    buildings: Buildings,
    chips: Chips,
    marked: Bool[np.ndarray, "n"],
    content: Int64[np.ndarray, "n"] | None,
    rows: Int64[np.ndarray, "m"],
    group: Int64[np.ndarray, "m"],
) -> PUDataset:
    return PUDataset(
        values=Selection(chips.values, rows),
        labelled=marked[rows],
        truth=np.full(len(rows), UNKNOWN, np.int64),
        names=tuple(buildings.names[row] for row in rows),
        groups=group,
        content=None if content is None else content[rows],
    )


def neighbourhoods(places: Float64[np.ndarray, "n 2"]) -> Int64[np.ndarray, "n"]:
    """Return the number of the neighbourhood of each place."""
    return halved(places, parts=NEIGHBOURHOODS, fewest=FEWEST_IN_ONE)


def choose_held_out(
    group: Int64[np.ndarray, "n"], marked: Bool[np.ndarray, "n"], share: float, seed: int
) -> tuple[Bool[np.ndarray, "n"], tuple[str, ...]]:
    """Return which rows are held out, and notices about the choice.

    Whole neighbourhoods that hold about this share of the marked buildings. Where the marked
    ones stand too close together for that, single buildings, with a notice.
    """
    wanted = round(share * int(marked.sum()))
    if wanted == 0:
        return np.zeros(len(group), bool), ()
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
        return held_out, ()
    for rows in (np.flatnonzero(marked), np.flatnonzero(~marked)):
        held_out[rows] = False
        held_out[random.permutation(rows)[: round(share * len(rows))]] = True
    notice = (
        "The marked buildings stand close together, so single buildings were held out to test the "
        "model instead of whole neighbourhoods. Figures from them are biased high where "
        "neighbours look alike."
    )
    return held_out, (notice,)


def out_of_fold_scores(split: PUSplit, scored: Scored, count: int) -> Float64[np.ndarray, "n"]:
    """Return the scores of buildings by models that saw none of their neighbours; NaN elsewhere."""
    scores = np.full(count, np.nan)
    if scored.fold is not None:
        scores[split.train.values.index] = scored.train
    return scores


def copied_rows(split: PUSplit, scored: Scored, count: int) -> Bool[np.ndarray, "n"]:
    """Return which of so many buildings look the same as another that counts in figures."""
    copied = np.zeros(count, bool)
    for part, counted in (
        (split.train, scored.train_counted),
        (split.held_out, scored.held_out_counted),
    ):
        if part is not None and counted is not None:
            copied[part.values.index[~counted]] = True
    return copied


def held_out_rows(split: PUSplit, count: int) -> Bool[np.ndarray, "n"]:
    """Return which of so many buildings a split holds out."""
    held_out = np.zeros(count, bool)
    if split.held_out is not None:
        held_out[split.held_out.values.index] = True
    return held_out


def labelled_rows(split: PUSplit, count: int) -> Bool[np.ndarray, "n"]:
    """Return which of so many buildings are P: marked, or confirmed by reviewers."""
    labelled = np.zeros(count, bool)
    for part in (split.train, split.held_out):
        if part is not None:
            labelled[part.values.index[part.labelled]] = True
    return labelled
