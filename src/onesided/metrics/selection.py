"""Choosing among models by proxy AUC, and what the choice itself does to the winner's figure.

    A_k     proxy AUC of model k, out of fold
    d_i     difference of two models' placements of item i

The best of several estimates is too high on average: it won partly by luck. Tsamardinos,
Greasidou and Borboudakis (Machine Learning 2018) measure that luck without training anything
again: draw items with replacement, choose the best model on those drawn, evaluate it on those
that were not drawn. The mean of these evaluations is what the best figure is compared with.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float64, Int32

from onesided.core.folds import Groups
from onesided.core.rng import numpy_generator
from onesided.metrics.intervals import placements

RESAMPLES = 200
"""Draws of items; some two seconds for ten models of 40 000 items."""
CELLS = 2**23
"""Items times draws that are in memory at once, 32 MB for each array of them: all draws at once
would be gigabytes for a million items."""
SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")

Scores = Float64[np.ndarray, "n"]
Labelled = Bool[np.ndarray, "n"]


@dataclass(frozen=True)
class Difference:
    """Proxy AUC of one model less that of another, on the same items, with its standard error."""

    value: float
    error: float


def difference(first: Scores, second: Scores, labelled: Labelled) -> Difference:
    """Return the difference of two models' proxy AUCs.

    DeLong et al. (1988) for paired models: both scored the same items, so the variance is that of
    the differences of placements, and what the two have in common cancels. A single positive, or
    a single unlabelled item, says nothing of the spread: the error is then infinite.
    """
    of_positive, of_unlabelled = (
        placements(first[of], first[against]) - placements(second[of], second[against])
        for of, against in ((labelled, ~labelled), (~labelled, labelled))
    )
    parts = (of_positive, of_unlabelled)
    variance = sum(part.var(ddof=1) / len(part) if len(part) > 1 else np.inf for part in parts)
    return Difference(float(of_positive.mean()), float(np.sqrt(variance)))


def optimism(
    scores: Float64[np.ndarray, "models n"], labelled: Labelled, groups: Groups, *, seed: int = 0
) -> float:
    """Return by how much the best proxy AUC of these models is too high on average, at least 0.

    Items of one group are drawn together. With a single model nothing was chosen, and it is 0.
    """
    if len(scores) < 2:
        return 0.0
    models = [_ranked(row, labelled) for row in scores]
    every = np.ones((1, len(labelled)), np.int32)
    best = max(float(model.auc(every)[0]) for model in models)
    drawn = [
        [
            np.stack([model.auc(counted) for model in models])
            for counted in (times, (times == 0).astype(np.int32))
        ]
        for times in _draws(groups, numpy_generator(seed, "optimism"))
    ]
    inside, outside = (np.concatenate(parts, axis=1) for parts in zip(*drawn, strict=True))
    chosen = np.nan_to_num(inside, nan=-1.0).argmax(axis=0)
    elsewhere = outside[chosen, np.arange(RESAMPLES)]
    if np.isnan(elsewhere).all():
        return 0.0  # a single group of positives: nothing is left outside a draw
    return max(0.0, best - float(np.nanmean(elsewhere)))


def _draws(groups: Groups, random: np.random.Generator) -> Iterator[Int32[np.ndarray, "draws n"]]:
    """Yield how often each item is drawn, some draws at a time; the stream is that of all at once.

    As many groups are drawn as there are.
    """
    _, group_of = np.unique(groups, return_inverse=True)
    count = int(group_of.max()) + 1
    at_once = max(1, CELLS // len(groups))
    for start in range(0, RESAMPLES, at_once):
        drawn = random.integers(count, size=(min(at_once, RESAMPLES - start), count))
        times = np.stack([np.bincount(row, minlength=count) for row in drawn])
        yield times.astype(np.int32)[:, group_of]


@dataclass(frozen=True)
class _Ranked:
    """Where the scores of a model put P among U; sorted once for all draws.

    Attributes:
        labelled: Which items are of P.
        pool: The items of U, the lowest score first.
        below: How many of U each positive outscores.
        not_above: The same with ties.
    """

    labelled: Labelled
    pool: Int32[np.ndarray, "u"]
    below: Int32[np.ndarray, "p"]
    not_above: Int32[np.ndarray, "p"]

    def auc(self, times: Int32[np.ndarray, "draws n"]) -> Float64[np.ndarray, "draws"]:
        """Return the proxy AUC in which item i counts `times[i]` times, for every draw.

        NaN for a draw without positives or without unlabelled items. The sums are of halves of
        whole numbers, so they are exact in any order.
        """
        summed = np.zeros((len(times), len(self.pool) + 1), np.int32)
        np.cumsum(times[:, self.pool], axis=1, out=summed[:, 1:])
        weight = times[:, self.labelled]
        wins = (weight * (summed[:, self.below] + summed[:, self.not_above]) / 2).sum(axis=1)
        pairs = weight.sum(axis=1) * summed[:, -1].astype(np.float64)
        missing = np.full(len(times), np.nan)
        auc: np.ndarray = np.divide(wins, pairs, out=missing, where=pairs > 0)
        return auc


def _ranked(scores: Scores, labelled: Labelled) -> _Ranked:
    pool = np.flatnonzero(~labelled)
    pool = pool[np.argsort(scores[pool], kind="stable")]
    below, not_above = (
        np.searchsorted(scores[pool], scores[labelled], side=side).astype(np.int32)
        for side in SIDES
    )
    return _Ranked(labelled, pool.astype(np.int32), below, not_above)
