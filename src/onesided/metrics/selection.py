"""Choosing among models by proxy AUC, and what the choice itself does to the winner's figure.

    A_k     proxy AUC of model k, out of fold
    d_i     difference of two models' placements of item i
    s       share of U called positive

The best of several estimates is too high on average: it won partly by luck. Tsamardinos,
Greasidou and Borboudakis (Machine Learning 2018) measure that luck without training anything
again: draw items with replacement, choose the best model on those drawn, evaluate it on those
that were not drawn. The mean of these evaluations is what the best figure is compared with. The
recall of the chosen model is too high for the same reason, and is compared likewise.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float64, Int32

from onesided.core.folds import Groups
from onesided.core.rng import numpy_generator
from onesided.metrics.intervals import placements, variance_over_groups

RESAMPLES = 200
"""Draws of items; some two seconds for ten models of 40 000 items."""
CELLS = 2**23
"""Items times draws that are in memory at once, 32 MB for each array of them: all draws at once
would be gigabytes for a million items."""
SHARES = tuple(float(share) for share in np.linspace(0.05, 0.95, 19))
"""Shares of U called at which the optimism of recall is measured; others are interpolated."""
SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")

Scores = Float64[np.ndarray, "n"]
Labelled = Bool[np.ndarray, "n"]


@dataclass(frozen=True)
class Difference:
    """Proxy AUC of one model less that of another, on the same items, with its standard error."""

    value: float
    error: float


def difference(
    first: Scores, second: Scores, labelled: Labelled, groups: Groups | None = None
) -> Difference:
    """Return the difference of two models' proxy AUCs.

    DeLong et al. (1988) for paired models: both scored the same items, so the variance is that of
    the differences of placements, and what the two have in common cancels. A single positive, or
    a single unlabelled item, says nothing of the spread: the error is then infinite. With groups
    it is never below that of sums over them.
    """
    of_positive, of_unlabelled = (
        placements(first[of], first[against]) - placements(second[of], second[against])
        for of, against in ((labelled, ~labelled), (~labelled, labelled))
    )
    parts = (of_positive, of_unlabelled)
    variance = sum(part.var(ddof=1) / len(part) if len(part) > 1 else np.inf for part in parts)
    if groups is not None:
        both = (groups[labelled], groups[~labelled])
        variance = max(variance, variance_over_groups(*parts, both))
    return Difference(float(of_positive.mean()), float(np.sqrt(variance)))


@dataclass(frozen=True)
class Optimism:
    """By how much figures of a model are too high on average because it was chosen by them.

    Attributes:
        auc: Of the proxy AUC.
        recall: Of recall, at each of `SHARES`; empty where nothing was chosen.
    """

    auc: float = 0.0
    recall: tuple[float, ...] = ()

    def of_recall(self, share: float) -> float:
        """Return that of recall where a share of U is called; none if nothing or all is."""
        if not self.recall:
            return 0.0
        return float(np.interp(share, (0.0, *SHARES, 1.0), (0.0, *self.recall, 0.0)))

    def to_json(self) -> dict[str, Any]:
        """Return the entries of `result.json`."""
        return {"optimism": self.auc, "recall_optimism": list(self.recall)}

    @classmethod
    def of_result(cls, result: Mapping[str, Any]) -> "Optimism":
        """Return what a `result.json` records; older ones have nothing of recall."""
        return cls(float(result.get("optimism", 0.0)), tuple(result.get("recall_optimism", ())))


def optimism(
    scores: Float64[np.ndarray, "models n"], labelled: Labelled, groups: Groups, *, seed: int = 0
) -> Optimism:
    """Return the optimism of the model with the best proxy AUC; no part of it is below 0.

    Items of one group are drawn together. With a single model nothing was chosen, and it is 0.
    """
    if len(scores) < 2:
        return Optimism()
    models = [_ranked(row, labelled) for row in scores]
    every = np.ones((1, len(labelled)), np.int32)
    best = max(models, key=lambda model: float(model.auc(every)[0]))
    seen = np.append(best.auc(every), best.recall(every, every))
    outside = np.concatenate(
        [_outside(models, times) for times in _draws(groups, numpy_generator(seed, "optimism"))]
    )
    known = outside[~np.isnan(outside).any(axis=1)]
    if not len(known):
        return Optimism()  # a single group of positives: nothing is left outside a draw
    auc, *recall = np.maximum(seen - known.mean(axis=0), 0.0)
    return Optimism(float(auc), tuple(map(float, recall)))


def _outside(
    models: Sequence["_Ranked"], times: Int32[np.ndarray, "draws n"]
) -> Float64[np.ndarray, "draws figures"]:
    """Return what the model that is best on the items drawn shows on the others.

    Its proxy AUC, and its recall of their positives where thresholds call `SHARES` of the U drawn.
    """
    chosen = np.nan_to_num(np.stack([model.auc(times) for model in models]), nan=-1.0).argmax(0)
    found = np.empty((len(times), 1 + len(SHARES)))
    for number in np.unique(chosen):
        rows = chosen == number
        drawn, others = times[rows], (times[rows] == 0).astype(np.int32)
        found[rows, 0] = models[number].auc(others)
        found[rows, 1:] = models[number].recall(drawn, others)
    return found


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

    def recall(
        self, drawn: Int32[np.ndarray, "draws n"], counted: Int32[np.ndarray, "draws n"]
    ) -> Float64[np.ndarray, "draws shares"]:
        """Return the recall of the counted positives if each of `SHARES` of the drawn U is called.

        NaN for a draw without unlabelled items, or where no positive is counted.
        """
        from_below, weight = drawn[:, self.pool].cumsum(axis=1), counted[:, self.labelled]
        found = np.empty((len(drawn), len(SHARES)))
        for place, share in enumerate(SHARES):
            # The threshold is the highest drawn item that is not called.
            left = np.floor((1 - share) * from_below[:, -1])
            below = [
                row.searchsorted(count) + 1 if count else 0
                for row, count in zip(from_below, left, strict=True)
            ]
            found[:, place] = np.where(self.below >= np.array(below)[:, None], weight, 0).sum(1)
        total = weight.sum(axis=1, keepdims=True) * (from_below[:, -1:] > 0)
        missing = np.full(found.shape, np.nan)
        recall: np.ndarray = np.divide(found, total, out=missing, where=total > 0)
        return recall


def _ranked(scores: Scores, labelled: Labelled) -> _Ranked:
    pool = np.flatnonzero(~labelled)
    pool = pool[np.argsort(scores[pool], kind="stable")]
    below, not_above = (
        np.searchsorted(scores[pool], scores[labelled], side=side).astype(np.int32)
        for side in SIDES
    )
    return _Ranked(labelled, pool.astype(np.int32), below, not_above)
