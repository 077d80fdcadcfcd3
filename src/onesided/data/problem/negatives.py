"""Samples known to be negative: some are trained on, some are held out to count false alarms.

Known negatives are seldom a random sample of all negatives: people note what looked odd or
was at hand. So they are never mixed into U, and only a method that declares
`uses_negatives` gets them.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from jaxtyping import Bool, Int64

from onesided.core.errors import DataError
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.core.rng import numpy_generator
from onesided.data.problem.content import first_of_each
from onesided.data.problem.dataset import (
    LabelledDataset,
    PUDataset,
    PUSplit,
    Selection,
    at_rows,
)
from onesided.data.problem.samples import Samples

MOST_HELD_OUT = 5000


@dataclass(frozen=True)
class KnownNegatives:
    """Known negatives to train on, and held-out ones (maybe none), the same for all methods."""

    train: LabelledDataset
    held_out: LabelledDataset

    def __len__(self) -> int:
        return len(self.train) + len(self.held_out)


def divide_negatives(
    samples: Samples,
    *,
    held_out_share: float,
    seed: int,
    held_out: Bool[np.ndarray, "n"] | None = None,
    content: Int64[np.ndarray, "n"] | None = None,
) -> KnownNegatives | None:
    """Hold the same share out of the known negatives as of P and U; None where there are none.

    `held_out` marks the samples to hold out, where whole groups or contents are; `content` is
    that of the samples, see `PUDataset`.
    """
    known = partial(_known, samples, content)
    rows = np.flatnonzero(samples.classes == NEGATIVE)
    if not len(rows):
        return None
    rows = numpy_generator(seed, "known-negatives").permutation(rows)
    if held_out is not None:
        kept = ~held_out[rows]
        return KnownNegatives(known(rows[kept]), known(rows[~kept]))
    out = min(round(len(rows) * held_out_share), MOST_HELD_OUT)
    return KnownNegatives(known(rows[out:]), known(rows[:out]))


def joined(first: LabelledDataset, second: LabelledDataset) -> LabelledDataset:
    """Return two selections of one set as one."""
    assert first.values.pool is second.values.pool
    return LabelledDataset(
        Selection(first.values.pool, np.concatenate([first.values.index, second.values.index])),
        np.concatenate([first.truth, second.truth]),
        first.names + second.names,
        both(first.groups, second.groups),
        both(first.weights, second.weights),
        both(first.content, second.content),
    )


def add_negatives(split: PUSplit, negatives: LabelledDataset) -> PUSplit:
    """Return the split with these samples as further training rows, labelled as negative.

    They come last, so the rows of P and U keep their index.
    """
    train = split.train
    if not len(negatives):
        return split
    known = LabelledDataset(
        train.values, train.truth, train.names, train.groups, train.weights, train.content
    )
    both = joined(known, negatives)
    negative = np.arange(len(both)) >= len(train)
    labelled = np.concatenate([train.labelled, np.zeros(len(negatives), dtype=bool)])
    whole = PUDataset(
        both.values,
        labelled,
        both.truth,
        both.names,
        negative,
        both.groups,
        both.weights,
        both.content,
    )
    return replace(split, train=whole)


def not_trained_on(negatives: LabelledDataset, train: PUDataset) -> LabelledDataset:
    """Return the negatives that show nothing that is trained on, each content once."""
    if negatives.content is None or train.content is None:
        return negatives
    fresh = ~np.isin(negatives.content, train.content)
    return _part(negatives, np.flatnonzero(first_of_each(negatives.content, fresh)))


def clean_from_negatives(
    split: PUSplit, negatives: LabelledDataset
) -> tuple[PUSplit, LabelledDataset]:
    """Return the split with a clean set, and the known negatives that are left for training.

    The clean set is known negatives and as many labelled positives.

    The positives leave P: a clean sample shows whether a step helped on data that the step
    did not see. At most half of P leaves, so that enough remains to train on. The first rows
    of both are taken, since a split has them in random order.
    """
    rows = np.flatnonzero(split.train.labelled)
    count = min(len(negatives), len(rows) // 2)
    if not count:
        raise DataError(
            f"A clean set needs known negatives and labelled positives to spare; there are "
            f"{len(negatives)} negatives and {len(rows)} positives to train on. Give more with -n."
        )
    taken = rows[:count]
    positives = split.train.some(taken)
    clean = joined(
        LabelledDataset(
            positives.values,
            np.full(count, POSITIVE),
            positives.names,
            positives.groups,
            positives.weights,
            positives.content,
        ),
        _part(negatives, np.arange(count)),
    )
    rest = np.setdiff1d(np.arange(len(split.train)), taken)
    kept = replace(split, train=split.train.some(rest), clean=clean)
    return kept, _part(negatives, np.arange(count, len(negatives)))


def _known(samples: Samples, content: np.ndarray | None, rows: np.ndarray) -> LabelledDataset:
    return LabelledDataset(
        Selection(samples.values, rows),
        np.full(len(rows), NEGATIVE),
        tuple(samples.names[row] for row in rows),
        at_rows(samples.own_groups, rows),
        at_rows(samples.weights, rows),
        at_rows(content, rows),
    )


def _part(data: LabelledDataset, rows: np.ndarray) -> LabelledDataset:
    return LabelledDataset(
        Selection(data.values.pool, data.values.index[rows]),
        data.truth[rows],
        tuple(data.names[row] for row in rows),
        at_rows(data.groups, rows),
        at_rows(data.weights, rows),
        at_rows(data.content, rows),
    )


def both(first: np.ndarray | None, second: np.ndarray | None) -> np.ndarray | None:
    """Return two arrays one after the other; None where one of them is missing."""
    return None if first is None or second is None else np.concatenate([first, second])
