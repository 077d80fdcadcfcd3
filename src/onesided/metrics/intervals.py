"""Intervals of a share or an AUC: exact bounds, and draws for what is derived from them.

A derived figure (precision, F1, accuracy) depends on several estimated numbers. Its
interval comes from melding (Fay, Proschan and Brittain, Biometrics 2015): each number is
drawn from its confidence distribution, whose quantiles are its bounds, and the figure is
computed for every draw. A share has two such distributions, one for lower bounds and one
for upper bounds; using the cautious one at each end keeps the caution of the exact
interval, also where none or all of the items were called positive.

Items of one group (photographs of one house, buildings of one block) resemble each other and are
worth fewer than as many independent ones. Counts are scaled to that worth, so they need not be
whole.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Real
from scipy.special import betaincinv, expit, logit, ndtri
from scipy.stats import t as student

from onesided.core.folds import Groups, GroupsOfBoth

DRAWS = 5_000
"""Some 10 ms for one evaluation; chance then moves an end by 1 % of the width."""

Interval = tuple[float, float]
Count = int | float
"""Of items; not whole where items of groups are worth fewer than they are."""
Draws = Float[np.ndarray, "draws"]


def clopper_pearson(successes: Count, trials: Count, *, coverage: float = 0.95) -> Interval:
    """Return the exact binomial interval of a share.

    Clopper and Pearson (1934): it covers at least as often as it says, for every true
    share and every number of trials.
    """
    error = (1 - coverage) / 2
    counts = np.array([successes], dtype=np.float64)
    low, high = lower_bounds(counts, trials, error), upper_bounds(counts, trials, error)
    return float(low[0]), float(high[0])


def lower_bounds(
    successes: Real[np.ndarray, "n"], trials: Count | Float[np.ndarray, "n"], error: float
) -> Float[np.ndarray, "n"]:
    """Return bounds that exceed the true share with probability at most `error`."""
    some = np.where(successes == 0, 1, successes)
    return np.where(successes == 0, 0.0, betaincinv(some, trials - some + 1, error))


def upper_bounds(
    successes: Real[np.ndarray, "n"], trials: Count | Float[np.ndarray, "n"], error: float
) -> Float[np.ndarray, "n"]:
    """Return bounds that fall below the true share with probability at most `error`."""
    return 1 - lower_bounds(trials - successes, trials, error)


def worth(hits: Bool[np.ndarray, "n"], groups: Groups | None, *, coverage: float = 0.95) -> float:
    """Return how many independent items give the share of hits as exactly as these do.

    Korn and Graubard (Survey Methodology 1998): n / deff (t_n / t_k)^2, with deff the variance of
    the share over groups divided by that over items, and quantiles of Student's t with one degree
    of freedom less than items, and than groups. Never more than n: groups that vary less than
    items would are mostly luck. Where all items are hits, or none is, nothing shows how groups
    vary, and each counts as one item.
    """
    count = len(hits)
    if groups is None:
        return float(count)
    _, group_of, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    number = len(sizes)
    if number == count:
        return float(count)
    share = float(hits.mean())
    if number < 2 or share in (0.0, 1.0):
        return float(number)
    excess = np.bincount(group_of, weights=hits - share)
    variance = number / (number - 1) * float((excess**2).sum()) / count**2
    few = _student(count, coverage) / _student(number, coverage)
    return float(min(count, share * (1 - share) / variance * few**2)) if variance else float(count)


def _student(items: int, coverage: float) -> float:
    """Return the quantile of Student's t for a mean of so many items."""
    return float(student.ppf((1 + coverage) / 2, items - 1))


def share_interval(hits: Bool[np.ndarray, "n"], groups: Groups | None) -> Interval:
    """Return the exact interval of the share of hits, of as many items as those are worth."""
    trials = worth(hits, groups)
    return clopper_pearson(float(hits.mean()) * trials, trials)


def share_draws(successes: Count, trials: Count, rng: np.random.Generator) -> tuple[Draws, Draws]:
    """Draw a share for lower ends, Beta(k, n - k + 1), and for upper ends, Beta(k + 1, n - k).

    Their quantiles are the bounds of Clopper and Pearson; with k = 0 the first is 0,
    with k = n the second is 1.
    """
    failures = trials - successes
    low = rng.beta(successes, failures + 1, DRAWS) if successes else np.zeros(DRAWS)
    high = rng.beta(successes + 1, failures, DRAWS) if failures else np.ones(DRAWS)
    return low, high


def less(value: float, interval: Interval, optimism: float, *, coverage: float = 0.95) -> Interval:
    """Return the interval of a share that is lowered by an optimism, which also widens it.

    The optimism is itself an estimate, as uncertain as it is large.
    """
    if optimism == 0:
        return interval
    wider = ndtri((1 + coverage) / 2) * optimism
    lowered = max(value - optimism, 0.0)
    low = lowered - float(np.hypot(value - interval[0], wider))
    high = lowered + float(np.hypot(interval[1] - value, wider))
    return max(low, 0.0), min(high, 1.0)


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


def auc_spread(
    higher: Float[np.ndarray, "higher"],
    lower: Float[np.ndarray, "lower"],
    groups: GroupsOfBoth | None = None,
) -> AucSpread:
    """Return the AUC of one class against another with DeLong's variance.

    DeLong et al. (1988) rather than a bootstrap: the variance of the statistic in two
    sorts instead of a thousand. Differs: for the variance, each class gets one more item
    that ties with everything; otherwise a perfect AUC, or a handful of positives all on
    top, would have an interval of width zero. And no class varies less than under a perfect
    AUC: where all scores are equal, nothing would vary at all.

    With groups, of the items of both classes, the variance is that of the sums over groups
    (Obuchowski, Biometrics 1997), with Student's quantile for as many groups as hold the rarer
    class; it is never below that without groups.
    """
    of_higher, of_lower = placements(higher, lower), placements(lower, higher)
    value = float(of_higher.mean())
    classes = (np.append(of_higher, 0.5), np.append(of_lower, 0.5))
    variance = sum(max(float(c.var(ddof=1)), 0.25 / len(c)) / len(c) for c in classes)
    fewest = min(len(higher), len(lower))
    if groups is not None:
        numbers = [len(np.unique(one)) for one in groups]
        # One more group that ties with everything, as above: all groups on top may be luck.
        least = sum(0.25 / (number + 1) ** 2 for number in numbers)
        variance = max(variance, least, variance_over_groups(of_higher, of_lower, groups))
        fewest = min(numbers)
    edge = 0.5 / fewest
    inside = min(max(value, edge), 1 - edge)
    return AucSpread(value, float(logit(inside)), variance**0.5 / (inside * (1 - inside)))


def variance_over_groups(
    of_higher: Float[np.ndarray, "higher"],
    of_lower: Float[np.ndarray, "lower"],
    groups: GroupsOfBoth,
) -> float:
    """Return the variance of an AUC whose items come in groups; 0 where each is its own group.

    Of placements, or of differences of placements.
    """
    # A group whose items of both classes score high raises one part and lowers the other.
    signed = ((of_higher, 1), (of_lower, -1))
    excess = [sign * (part - part.mean()) / len(part) for part, sign in signed]
    _, group_of = np.unique(np.concatenate(groups), return_inverse=True)
    number = int(group_of.max()) + 1
    if number == len(group_of):
        return 0.0
    sums = np.bincount(group_of, weights=np.concatenate(excess))
    fewest = min(len(np.unique(one)) for one in groups)
    if fewest < 2:
        return 0.25  # of a share between 0 and 1, none varies more: nothing is known
    few = _student(fewest, 0.95) / ndtri(0.975)
    return float(number / (number - 1) * (sums**2).sum() * few**2)


def placements(
    scores: Float[np.ndarray, "n"], reference: Float[np.ndarray, "m"]
) -> Float[np.ndarray, "n"]:
    """Return for each score the share of the reference below it, ties counting half."""
    ordered = np.sort(reference)
    below = np.searchsorted(ordered, scores, side="left")
    not_above = np.searchsorted(ordered, scores, side="right")
    return (below + not_above) / (2 * len(reference))
