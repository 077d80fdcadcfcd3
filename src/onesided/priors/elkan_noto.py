"""Class prior as the share of U that Elkan and Noto's rule calls positive.

Elkan and Noto, Learning classifiers from only positive and unlabeled data, KDD 2008.

    s        1 for a labelled item, 0 for an unlabelled one
    g(x)     P(s = 1 | x)
    c        E[g(x) | s = 1], the share of positives that is labelled (their Equation 1)

    an item is called positive where g(x) / c > 1/2

Differs: g is not the classifier's own number. The penalty that ranks best shrinks such numbers
towards the share of P, often so far that all lie above c / 2. Here g is a logistic function of the
normal quantile of an item's rank, fitted to s, so that only the order of the scores matters, as for
BBE. The share of U that is called is the estimate. Where BBE is too high because negatives have
top scores, this one is not; it is too low where c is overestimated.
"""

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike
from scipy.special import expit, ndtri
from scipy.stats import rankdata

from onesided.priors.estimate import PriorEstimate, as_numbers, check_options
from onesided.priors.logistic_line import logistic_line


def elkan_noto(
    positive_scores: ArrayLike,
    unlabelled_scores: ArrayLike,
    *,
    resamples: int = 100,
    coverage: float = 0.95,
    seed: int = 0,
) -> PriorEstimate:
    """Estimate the class prior from scores of positives and unlabelled samples.

    Pass scores of samples that the scorer was not trained on. The interval spans the middle
    `coverage` of the values from bootstrap samples of P and of U; it covers their sampling noise,
    not the assumption.
    """
    check_options(coverage=coverage, at_least=[("resamples", resamples, 1), ("seed", seed, 0)])
    positive = as_numbers(positive_scores, "positive_scores")
    unlabelled = as_numbers(unlabelled_scores, "unlabelled_scores")
    scores = np.concatenate([positive, unlabelled])
    place = ndtri((rankdata(scores) - 0.5) / len(scores))
    labelled = np.arange(len(scores)) < len(positive)
    value = _called(place, labelled, np.ones(len(scores)))
    random = np.random.default_rng(seed)
    values = [
        _called(place, labelled, _drawn(len(positive), len(unlabelled), random))
        for _ in range(resamples)
    ]
    low, high = np.quantile(values, [(1 - coverage) / 2, (1 + coverage) / 2])
    return PriorEstimate(
        value=value,
        low=float(min(low, value)),
        high=float(max(high, value)),
        method="Elkan-Noto",
        n_positive=len(positive),
        n_unlabelled=len(unlabelled),
    )


def _drawn(positives: int, unlabelled: int, random: np.random.Generator) -> np.ndarray:
    """Return how often each item is in a bootstrap sample of P and of U."""
    parts = [
        np.bincount(random.integers(count, size=count), minlength=count)
        for count in (positives, unlabelled)
    ]
    return np.concatenate(parts).astype(np.float64)


def _called(
    place: Float64[np.ndarray, "n"], labelled: np.ndarray, weight: Float64[np.ndarray, "n"]
) -> float:
    """Return the weighted share of U with g / c > 1/2."""
    slope, intercept = logistic_line(place, labelled.astype(np.float64), weight)
    g = expit(slope * place + intercept)
    c = np.average(g[labelled], weights=weight[labelled])
    return float(np.average(g[~labelled] > c / 2, weights=weight[~labelled]))
