"""Intervals of a share or an AUC: exact bounds, and draws for what is derived from them.

A derived figure (precision, F1, accuracy) depends on several estimated numbers. Its
interval comes from melding (Fay, Proschan and Brittain, Biometrics 2015): each number is
drawn from its confidence distribution, whose quantiles are its bounds, and the figure is
computed for every draw. A share has two such distributions, one for lower bounds and one
for upper bounds; using the cautious one at each end keeps the caution of the exact
interval, also where none or all of the items were called positive.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int64
from scipy.special import betaincinv, expit, logit, ndtri

DRAWS = 5_000
"""Some 10 ms for one evaluation; chance then moves an end by 1 % of the width."""

Interval = tuple[float, float]
Draws = Float[np.ndarray, "draws"]


def clopper_pearson(successes: int, trials: int, *, coverage: float = 0.95) -> Interval:
    """Return the exact binomial interval of a share.

    Clopper and Pearson (1934): it covers at least as often as it says, for every true
    share and every number of trials.
    """
    error = (1 - coverage) / 2
    counts = np.array([successes], dtype=np.int64)
    low, high = lower_bounds(counts, trials, error), upper_bounds(counts, trials, error)
    return float(low[0]), float(high[0])


def lower_bounds(
    successes: Int64[np.ndarray, "n"], trials: int, error: float
) -> Float[np.ndarray, "n"]:
    """Return bounds that exceed the true share with probability at most `error`."""
    some = np.maximum(successes, 1)
    return np.where(successes == 0, 0.0, betaincinv(some, trials - some + 1, error))


def upper_bounds(
    successes: Int64[np.ndarray, "n"], trials: int, error: float
) -> Float[np.ndarray, "n"]:
    """Return bounds that fall below the true share with probability at most `error`."""
    return 1 - lower_bounds(trials - successes, trials, error)


def share_draws(successes: int, trials: int, rng: np.random.Generator) -> tuple[Draws, Draws]:
    """Draw a share for lower ends, Beta(k, n - k + 1), and for upper ends, Beta(k + 1, n - k).

    Their quantiles are the bounds of Clopper and Pearson; with k = 0 the first is 0,
    with k = n the second is 1.
    """
    failures = trials - successes
    low = rng.beta(successes, failures + 1, DRAWS) if successes else np.zeros(DRAWS)
    high = rng.beta(successes + 1, failures, DRAWS) if failures else np.ones(DRAWS)
    return low, high


def prior_draws(
    value: float, interval: Interval | None, rng: np.random.Generator, *, coverage: float
) -> Draws:
    """Draw priors with median `value` and `interval` as quantiles; constant without one.

    Two half normals, because intervals of prior estimators are seldom symmetric.
    """
    if interval is None:
        return np.full(DRAWS, value)
    normal = rng.standard_normal(DRAWS)
    below, above = value - interval[0], interval[1] - value
    width = np.where(normal < 0, below, above) / ndtri((1 + coverage) / 2)
    # AUC divides by 1 - pi, and F1 by pi where nothing is called positive.
    return np.clip(value + width * normal, 1e-9, 1 - 1e-9)


@dataclass(frozen=True)
class AucSpread:
    """An AUC with its normal approximation on the logit scale, which never leaves [0, 1]."""

    value: float
    centre: float
    error: float

    def interval(self, coverage: float) -> Interval:
        """Return the interval, which always holds the value."""
        half_width = ndtri((1 + coverage) / 2) * self.error
        low, high = float(expit(self.centre - half_width)), float(expit(self.centre + half_width))
        return min(low, self.value), max(high, self.value)

    def less(self, optimism: float) -> "AucSpread":
        """Return the AUC lowered by an optimism, which also widens its interval.

        The optimism is itself an estimate, as uncertain as it is large.
        """
        if optimism == 0:
            return self
        value = max(self.value - optimism, 0.0)
        inside = min(max(float(expit(self.centre)) - optimism, 1e-9), 1 - 1e-9)
        slope = inside * (1 - inside)
        own = self.error * float(expit(self.centre) * (1 - expit(self.centre)))
        return AucSpread(value, float(logit(inside)), float(np.hypot(own, optimism)) / slope)

    def draws(self, rng: np.random.Generator) -> Draws:
        """Draw possible true AUCs."""
        drawn: Draws = expit(self.centre + self.error * rng.standard_normal(DRAWS))
        return drawn


def auc_spread(higher: Float[np.ndarray, "higher"], lower: Float[np.ndarray, "lower"]) -> AucSpread:
    """Return the AUC of one group against another with DeLong's variance.

    DeLong et al. (1988) rather than a bootstrap: the variance of the statistic in two
    sorts instead of a thousand. Differs: for the variance, each group gets one more item
    that ties with everything; otherwise a perfect AUC, or a handful of positives all on
    top, would have an interval of width zero. And no group varies less than under a perfect
    AUC: where all scores are equal, nothing would vary at all.
    """
    of_higher, of_lower = placements(higher, lower), placements(lower, higher)
    value = float(of_higher.mean())
    groups = (np.append(of_higher, 0.5), np.append(of_lower, 0.5))
    variance = sum(max(float(g.var(ddof=1)), 0.25 / len(g)) / len(g) for g in groups)
    edge = 0.5 / min(len(higher), len(lower))
    inside = min(max(value, edge), 1 - edge)
    return AucSpread(value, float(logit(inside)), variance**0.5 / (inside * (1 - inside)))


def placements(
    scores: Float[np.ndarray, "n"], reference: Float[np.ndarray, "m"]
) -> Float[np.ndarray, "n"]:
    """Return for each score the share of the reference below it, ties counting half."""
    ordered = np.sort(reference)
    below = np.searchsorted(ordered, scores, side="left")
    not_above = np.searchsorted(ordered, scores, side="right")
    return (below + not_above) / (2 * len(reference))
