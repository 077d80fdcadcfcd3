"""Items of the pool that people answered: confirmed positives join P, the others are negatives.

All of them are trained on, also those that were held out: they were shown because of their scores,
so they are no random sample, and figures must not rest on them. What was held out and not answered
stays held out, so figures before and after a round are of the same items but for the answered ones.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool

from onesided.core.errors import DataError
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.data.problem.dataset import (
    LabelledDataset,
    PUDataset,
    PUSplit,
    Selection,
    at_rows,
)
from onesided.data.problem.negatives import KnownNegatives, both, joined
from onesided.storage.names import printable


@dataclass(frozen=True)
class Answered:
    """A split after a review.

    Attributes:
        split: With the confirmed positives in P, and without the confirmed negatives.
        negatives: The known negatives, with those that were confirmed; None if there are none.
        positives: How many items joined P.
        rejected: How many became known negatives.
        known: How many answered items were in P, or known negatives, before.
    """

    split: PUSplit
    negatives: KnownNegatives | None
    positives: int
    rejected: int
    known: int


def with_answers(
    split: PUSplit,
    negatives: KnownNegatives | None,
    *,
    positive: Collection[str],
    negative: Collection[str],
) -> Answered:
    """Return the split with answered items of U as what people say they are.

    Names are as `printable` writes them. A name that is nowhere in the data is refused.
    """
    said = {**dict.fromkeys(negative, NEGATIVE), **dict.fromkeys(positive, POSITIVE)}
    train, held_out = split.train, split.held_out
    in_train = _meant(train, said)
    in_held_out = None if held_out is None else _meant(held_out, said)
    moved = {
        printable(name)
        for part, meant in ((train, in_train), (held_out, in_held_out))
        if part is not None and meant is not None
        for name, says in zip(part.names, meant, strict=True)
        if says != UNKNOWN
    }
    known = _known_before(split, negatives, said.keys() - moved)
    leaving = [_known(train, in_train == NEGATIVE)]
    parts = [_confirmed(train.some(np.flatnonzero(in_train != NEGATIVE)), said)]
    if held_out is not None and in_held_out is not None:
        found = held_out.some(np.flatnonzero(in_held_out == POSITIVE))
        parts.append(_confirmed(found, said))
        leaving.append(_known(held_out, in_held_out == NEGATIVE))
        held_out = held_out.some(np.flatnonzero(in_held_out == UNKNOWN))
    _check_left(parts[0], held_out)
    rejected = sum(map(len, leaving))
    return Answered(
        replace(split, train=_together(parts), held_out=held_out),
        _with_confirmed(negatives, [part for part in leaving if len(part)]),
        positives=len(moved) - rejected,
        rejected=rejected,
        known=known,
    )


def _meant(part: PUDataset, said: dict[str, int]) -> np.ndarray:
    """Return what was said of each row of U; UNKNOWN elsewhere."""
    answers = [said.get(printable(name), UNKNOWN) for name in part.names]
    return np.where(part.unlabelled, np.array(answers, np.int64), UNKNOWN)


def _known_before(split: PUSplit, negatives: KnownNegatives | None, names: Collection[str]) -> int:
    """Return how many of these names are labelled already; refuse those that are nowhere."""
    if not names:
        return 0
    parts: list[PUDataset | LabelledDataset | None] = [split.train, split.held_out]
    parts += [negatives.train, negatives.held_out] if negatives else []
    there = {printable(name) for part in parts if part is not None for name in part.names}
    lacking = sorted(set(names) - there)
    if lacking:
        others = f" (nor are {len(lacking) - 1} others)" if len(lacking) > 1 else ""
        raise DataError(
            f"The answers name '{lacking[0]}', which is not in the data{others}. Restore the "
            "items, or remove these lines from the file of answers."
        )
    return len(names)


def _confirmed(part: PUDataset, said: dict[str, int]) -> PUDataset:
    """Return rows of a part in which those that people call positive are labelled."""
    joins = (
        np.array([said.get(printable(name)) == POSITIVE for name in part.names], bool)
        & part.unlabelled
    )
    truth = np.where(joins & (part.truth == UNKNOWN), POSITIVE, part.truth)
    found = joins if part.found is None else part.found | joins
    return replace(part, labelled=part.labelled | joins, truth=truth, found=found)


def _together(parts: list[PUDataset]) -> PUDataset:
    """Return parts of one set as one."""
    first, *others = parts
    for other in others:
        assert first.values.pool is other.values.pool
        index = np.concatenate([first.values.index, other.values.index])
        first = PUDataset(
            Selection(first.values.pool, index),
            np.concatenate([first.labelled, other.labelled]),
            np.concatenate([first.truth, other.truth]),
            first.names + other.names,
            groups=both(first.groups, other.groups),
            weights=both(first.weights, other.weights),
            content=both(first.content, other.content),
            found=both(first.found, other.found),
        )
    return first


def _known(part: PUDataset, chosen: Bool[np.ndarray, "n"]) -> LabelledDataset:
    rows = np.flatnonzero(chosen)
    return LabelledDataset(
        Selection(part.values.pool, part.values.index[rows]),
        np.full(len(rows), NEGATIVE),
        tuple(part.names[row] for row in rows),
        at_rows(part.groups, rows),
        at_rows(part.weights, rows),
        at_rows(part.content, rows),
    )


def _with_confirmed(
    negatives: KnownNegatives | None, confirmed: list[LabelledDataset]
) -> KnownNegatives | None:
    for part in confirmed:
        if negatives is None:
            nothing = np.zeros(0, np.int64)
            none = LabelledDataset(
                Selection(part.values.pool, nothing),
                nothing,
                (),
                at_rows(part.groups, nothing),
                at_rows(part.weights, nothing),
                at_rows(part.content, nothing),
            )
            negatives = KnownNegatives(none, none)
        negatives = replace(negatives, train=joined(negatives.train, part))
    return negatives


def _check_left(train: PUDataset, held_out: PUDataset | None) -> None:
    """Refuse a review that leaves no unlabelled items: nothing would be left to learn from."""
    for part, what in ((train, "to train on"), (held_out, "held out")):
        if part is not None and not part.unlabelled.any():
            raise DataError(
                f"Every unlabelled item {what} has an answer, so no pool is left to rank. Nothing "
                "needs to be trained any more: the answers are the result."
            )
