"""How far probabilities are from what they say, against known classes.

p, y   probability and class (1 positive) of an item; w how many items of the pool it stands for
ECE    expected calibration error: over bins, the mean of |mean p - share of positives|,
       each bin weighed by its items
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int64

from onesided.core.errors import DataError
from onesided.metrics.intervals import Interval, clopper_pearson

BINS = 10
FEWEST = 50
"""Items of known class below which no error is told: ten bins would hold a handful each."""
RESAMPLES = 500
"""Of a bootstrap; some 30 ms for a thousand items."""


@dataclass(frozen=True)
class Bin:
    """Items of similar probability: what they say, and what share of them is positive."""

    probability: float
    share: float
    low: float
    high: float
    items: int


@dataclass(frozen=True)
class Reliability:
    """The expected calibration error with its interval, and the bins that it was taken over.

    `by_chance` is the error that right probabilities would show with as many items.
    """

    error: float
    low: float
    high: float
    by_chance: float
    items: int
    bins: tuple[Bin, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "bins": [asdict(each) for each in self.bins]}

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "Reliability":
        """Return what `to_json` wrote."""
        return cls(**{**content, "bins": tuple(Bin(**each) for each in content["bins"])})

    @property
    def sentence(self) -> str:
        """The error in words."""
        return (
            f"On {self.items:,} items of known class, probabilities are off by "
            f"{self.error:.1%} on average (expected calibration error, 95 % interval "
            f"{self.low:.1%} to {self.high:.1%}; right ones would show {self.by_chance:.1%} by "
            "chance)."
        )


def reliability(
    probabilities: Float[np.ndarray, "n"],
    positive: Bool[np.ndarray, "n"],
    weights: Float[np.ndarray, "n"] | None = None,
) -> Reliability:
    """Return how far probabilities are from the shares of positives, over bins of equal size.

    The error of a sample is biased high, since chance moves every bin. The interval is the basic
    bootstrap's: the spread of resampled errors around that of the sample, turned round, which
    takes that bias off.
    """
    # Here, because the report reads the types above and must not load torch.
    from onesided.core.rng import numpy_generator

    if len(probabilities) < FEWEST:
        raise DataError(
            f"A calibration error needs {FEWEST} items of known class; got {len(probabilities)}."
        )
    weight = np.ones(len(probabilities)) if weights is None else weights
    place = _bins(probabilities)
    error = _error(probabilities, positive, weight, place)
    random = numpy_generator(0, "reliability", len(probabilities))
    drawn, chance = np.empty(RESAMPLES), np.empty(RESAMPLES)
    for number in range(RESAMPLES):
        rows = random.integers(0, len(place), len(place))
        drawn[number] = _error(probabilities[rows], positive[rows], weight[rows], place[rows])
        right = random.random(len(place)) < probabilities
        chance[number] = _error(probabilities, right, weight, place)
    low, high = basic_interval(error, drawn)
    bins = tuple(
        _bin(probabilities[rows], positive[rows], weight[rows])
        for number in range(place.max() + 1)
        for rows in (np.flatnonzero(place == number),)
    )
    return Reliability(error, low, high, float(chance.mean()), len(place), bins)


def basic_interval(value: float, resampled: Float[np.ndarray, "m"]) -> Interval:
    """Return the basic bootstrap's interval of a number that is never below 0."""
    ends = np.quantile(resampled, [0.025, 0.975])
    return max(0.0, 2 * value - float(ends[1])), max(0.0, 2 * value - float(ends[0]))


def _bins(probabilities: Float[np.ndarray, "n"]) -> Int64[np.ndarray, "n"]:
    """Return the bin of every item: ten of equal size, fewer where probabilities are tied."""
    edges = np.unique(np.quantile(probabilities, np.linspace(0, 1, BINS + 1)[1:-1]))
    _, place = np.unique(np.searchsorted(edges, probabilities, side="left"), return_inverse=True)
    return place.astype(np.int64)


def _error(
    probabilities: Float[np.ndarray, "n"],
    positive: Bool[np.ndarray, "n"],
    weights: Float[np.ndarray, "n"],
    place: Int64[np.ndarray, "n"],
) -> float:
    gaps = np.bincount(place, weights * (probabilities - positive))
    return float(np.abs(gaps).sum() / weights.sum())


def _bin(
    probabilities: Float[np.ndarray, "n"],
    positive: Bool[np.ndarray, "n"],
    weights: Float[np.ndarray, "n"],
) -> Bin:
    share = float(np.average(positive, weights=weights))
    # Of as many items as the weights are worth; all of them where they are equal.
    worth = max(1, round(float(weights.sum() ** 2 / (weights**2).sum())))
    low, high = clopper_pearson(round(share * worth), worth)
    mean = float(np.average(probabilities, weights=weights))
    return Bin(mean, share, min(low, share), max(high, share), len(probabilities))
