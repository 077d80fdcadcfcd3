"""The class prior from a kernel matrix: how far one can move away from the positives.

Ramaswamy, Scott, Tewari, Mixture proportion estimation via kernel embeddings of
distributions, ICML 2016. In words: start at the positives and move in a straight line in the
space of distributions, through the unlabelled and beyond. This removes positives from U. As long
as positives remain, the point is near the distributions that the samples can express. Where the
distance from these begins to grow, no positives are left, and the length of the move gives
their share.

| formula | here |
|---|---|
| H, M / F, N | labelled positives and their number / unlabelled and their number |
| mu_H, mu_F | mean of the kernel columns of H, of F |
| lambda >= 1 | `stretch`: the line ends at lambda mu_F + (1 - lambda) mu_H |
| d(lambda) | `distance` of that end from the convex hull of all samples |
| D = norm(mu_F - mu_H) | `DistanceCurve.between_means`, the slope of d for large lambda |
| kappa = 1 - 1/lambda | the class prior |
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int64
from scipy.spatial.distance import cdist

from onesided.priors.simplex_qp import SMALL, minimise_on_simplex

LONGEST, RESOLUTION, AHEAD = 8.0, 0.04, 0.02
CELL = (LONGEST - 1) / 2**8
"""Eight halvings of [1, 8] bring the width below the resolution."""
REACHABLE = (1 - 1 / (1 + CELL / 2), 1 - 1 / (LONGEST - CELL / 2))
WIDTHS = (0.1, 10**-0.5, 1.0, 10**0.5, 10.0)


@dataclass(frozen=True)
class CurvePoint:
    """One value of d, a lower bound of its derivative, and the rows of the nearest mixture."""

    distance: float
    slope_at_least: float
    support: Int64[np.ndarray, "k"]


class DistanceCurve:
    """The convex, non-decreasing function d of a kernel matrix, unlabelled rows first.

    Every value is a quadratic program on the simplex. Neighbouring values have weight on nearly
    the same rows, so a new program starts with the rows of the nearest solved one.
    """

    def __init__(self, kernel: Float[np.ndarray, "n n"], n_unlabelled: int) -> None:
        self.kernel = kernel
        self.n_unlabelled, self.n_positive = n_unlabelled, len(kernel) - n_unlabelled
        self._to_unlabelled = kernel[:, :n_unlabelled].mean(axis=1)
        self._to_positive = kernel[:, n_unlabelled:].mean(axis=1)
        self._witness = self._to_unlabelled - self._to_positive
        self._solved: dict[float, CurvePoint] = {}
        self.between_means = float(np.sqrt(max(self._over_means(self._witness, 1.0, -1.0), 0.0)))

    def at(self, stretch: float) -> CurvePoint:
        """Return d at this stretch; the solver starts from the nearest solved value."""
        if stretch not in self._solved:
            if self._solved:
                nearest = min(self._solved, key=lambda known: abs(known - stretch))
                start = self._solved[nearest].support
            else:
                # The rest after removing positives is least similar to positives.
                start = np.argsort(-self._witness)[:SMALL]
            self._solved[stretch] = self._solve(stretch, start)
        return self._solved[stretch]

    def first_slope(self) -> float:
        """Return (d(1.05) - d(1)) / 0.05; d(1) is 0, as the unlabelled mean is a mixture.

        Not stored: nearly all unlabelled rows have weight here, and few at any later value,
        for which this would be an expensive start.
        """
        return self._solve(1.05, np.arange(self.n_unlabelled)).distance / 0.05

    def _solve(self, stretch: float, start: Int64[np.ndarray, "k"]) -> CurvePoint:
        rest = 1 - stretch
        linear = stretch * self._to_unlabelled + rest * self._to_positive
        nearest = minimise_on_simplex(self.kernel, linear, start=start)
        used = nearest.support
        weights = nearest.weights[used]
        within = weights @ self.kernel[np.ix_(used, used)] @ weights
        squared = self._over_means(linear, stretch, rest) - 2 * linear[used] @ weights + within
        distance = float(np.sqrt(max(squared, 0.0)))
        # Envelope theorem: only the end of the line changes. The solver's weights are at most
        # sqrt(gap) from the optimal ones in the norm of d.
        along = self._over_means(self._witness, stretch, rest) - self._witness[used] @ weights
        certain = along - np.sqrt(nearest.gap) * self.between_means
        return CurvePoint(distance, certain / distance if distance > 0 else -np.inf, used)

    def _over_means(
        self, column: Float[np.ndarray, "n"], unlabelled: float, positive: float
    ) -> float:
        cut = self.n_unlabelled
        return float(unlabelled * column[:cut].mean() + positive * column[cut:].mean())


ThresholdRule = Callable[[DistanceCurve], float]


def km2_threshold(curve: DistanceCurve) -> float:
    """Return KM2's slope: one fifth of the way from the first slope of d to the last."""
    return 0.8 * curve.first_slope() + 0.2 * curve.between_means


def km1_threshold(curve: DistanceCurve) -> float:
    """Return KM1's slope, or KM2's where d hardly reaches KM1's."""
    threshold = 1 / np.sqrt(min(curve.n_unlabelled, curve.n_positive))
    if threshold > 0.9 * curve.between_means:
        return km2_threshold(curve)
    return float(threshold)


def prior_from_kernel(
    kernel: Float[np.ndarray, "n n"], n_unlabelled: int, rule: ThresholdRule = km2_threshold
) -> float:
    """Return the prior where the slope of d passes the rule's threshold, by bisection.

    The kernel matrix has its unlabelled rows first and is positive semi-definite.
    """
    curve = DistanceCurve(kernel, n_unlabelled)
    if curve.between_means < 1e-7:
        return REACHABLE[1]  # U equals P: d is 0 everywhere
    threshold = rule(curve)
    left, right = 1.0, LONGEST
    while right - left > RESOLUTION:
        middle = (left + right) / 2
        if _rises_faster(curve, middle, threshold):
            right = middle
        else:
            left = middle
    return 1 - 2 / (left + right)


def _rises_faster(curve: DistanceCurve, stretch: float, threshold: float) -> bool:
    """Return whether (d(stretch + .02) - d(stretch)) / .02 is above the threshold."""
    here = curve.at(stretch)
    # d is convex, so the forward slope is at least the derivative. That saves a program.
    if here.slope_at_least > threshold:
        return True
    return (curve.at(stretch + AHEAD).distance - here.distance) / AHEAD > threshold


def distinctness(kernel: Float[np.ndarray, "n n"], n_unlabelled: int) -> float:
    """Return the distance between the means of U and P, in units of what chance alone gives.

    Two samples of one distribution have means at a squared distance of (1/N + 1/M)(1 - K) in
    expectation, K being the mean of the kernel over pairs.
    """
    n_positive = len(kernel) - n_unlabelled
    by_chance = (1 / n_unlabelled + 1 / n_positive) * (1 - float(kernel.mean()))
    apart = DistanceCurve(kernel, n_unlabelled).between_means
    return apart / float(np.sqrt(max(by_chance, np.finfo(float).tiny)))


def gaussian_kernel(
    features: Float[np.ndarray, "n d"], n_unlabelled: int
) -> Float[np.ndarray, "n n"]:
    """Return the Gaussian kernel matrix whose width separates unlabelled and positive best.

    Candidates are 0.1 to 10 times the root of the median squared distance over all pairs; the
    best has the largest distance between the two means.
    """
    squared = cdist(features, features, "sqeuclidean")
    middle = float(np.median(squared))
    rounding = 1e-20 * float(squared.max())
    if middle <= rounding:  # at least half of all pairs are duplicates
        middle = float(np.median(squared[squared > rounding]))
    kernel = np.empty_like(squared)

    def fill(width: float) -> float:
        np.multiply(squared, -0.5 / (width**2 * middle), out=kernel)
        np.exp(kernel, out=kernel)
        return DistanceCurve(kernel, n_unlabelled).between_means

    fill(max(WIDTHS, key=fill))
    return kernel
