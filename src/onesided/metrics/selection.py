"""Choosing among models by proxy AUC, and what the choice itself does to the winner's figure.

    A_k     proxy AUC of model k, out of fold
    d_i     difference of two models' placements of item i

The best of several estimates is too high on average: it won partly by luck. Tsamardinos,
Greasidou and Borboudakis (Machine Learning 2018) measure that luck without training anything
again: draw items with replacement, choose the best model on those drawn, evaluate it on those
that were not drawn. The mean of these evaluations is what the best figure is compared with.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int32, Shaped

from onesided.core.folds import Groups
from onesided.core.rng import numpy_generator
from onesided.metrics.intervals import placements

RESAMPLES = 200
"""Draws of items; some two seconds for ten models of 40 000 items."""

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
    times = _draws(groups, numpy_generator(seed, "optimism"))
    every = np.ones((1, len(labelled)), np.int32)
    best = max(float(_weighted_auc(row, labelled, every)[0]) for row in scores)
    inside = np.stack([_weighted_auc(row, labelled, times) for row in scores])
    outside = np.stack([_weighted_auc(row, labelled, times == 0) for row in scores])
    chosen = np.nan_to_num(inside, nan=-1.0).argmax(axis=0)
    elsewhere = outside[chosen, np.arange(RESAMPLES)]
    if np.isnan(elsewhere).all():
        return 0.0  # a single group of positives: nothing is left outside a draw
    return max(0.0, best - float(np.nanmean(elsewhere)))


def _draws(groups: Groups, random: np.random.Generator) -> Int32[np.ndarray, "draws n"]:
    """Return how often each item is drawn; as many groups are drawn as there are."""
    _, group_of = np.unique(groups, return_inverse=True)
    count = int(group_of.max()) + 1
    drawn = random.integers(count, size=(RESAMPLES, count))
    times = np.stack([np.bincount(row, minlength=count) for row in drawn])
    return times.astype(np.int32)[:, group_of]


def _weighted_auc(
    scores: Scores, labelled: Labelled, times: Shaped[np.ndarray, "draws n"]
) -> Float64[np.ndarray, "draws"]:
    """Return the proxy AUC in which item i counts `times[i]` times, for every draw.

    NaN for a draw without positives or without unlabelled items.
    """
    pool = np.flatnonzero(~labelled)
    pool = pool[np.argsort(scores[pool], kind="stable")]
    below = np.searchsorted(scores[pool], scores[labelled], side="left")
    not_above = np.searchsorted(scores[pool], scores[labelled], side="right")
    summed = np.zeros((len(times), len(pool) + 1), np.int32)
    np.cumsum(times[:, pool], axis=1, out=summed[:, 1:])
    weight = times[:, labelled]
    wins = (weight * (summed[:, below] + summed[:, not_above]) / 2).sum(axis=1)
    pairs = weight.sum(axis=1) * summed[:, -1].astype(np.float64)
    missing = np.full(len(times), np.nan)
    auc: np.ndarray = np.divide(wins, pairs, out=missing, where=pairs > 0)
    return auc
