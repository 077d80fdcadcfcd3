"""Class prior of two bell curves that overlap, from the order of scores.

The binormal model of a ROC curve (Dorfman and Alf, Journal of Mathematical Psychology 1969; Metz,
Herman and Shen, Statistics in Medicine 1998), applied to a mixture:

    P(z) = N(0, 1)              scores of positives, after some increasing function
    N(z) = N(-d, s^2)           scores of negatives, after the same function
    U(z) = pi P(z) + (1 - pi) N(z)

    c_1 < ... < c_m             cuts between cells, each a quantile of P and U together
    p_k, n_k, u_k               probability of cell k under P, N and U
    x_k, y_k                    how many of P and of U lie in cell k

The increasing function is never needed: only the counts in cells are used, and the cuts are fitted.
log L = sum_k x_k log p_k + y_k log u_k - (log s / .1)^2 / 2 is maximised over cuts, d and s for
each pi. All pi whose maximum is at most 1.92 below the highest form the interval (Wilks: 95 % for
one parameter).

BBE is right if *only* positives have the highest scores, and too high where negatives reach them
too. Two curves of one width are a symmetric ROC curve: negatives reach the highest scores as often
as positives fall to the lowest, and how often that is, P and U do tell. What the model cannot see
is a group of negatives that scores exactly as positives do.

Differs: Metz lets s be anything. Then pi rests on the far ends of the curves, where few scores are,
and intervals are twice as wide. Here a width that is a tenth larger or smaller costs half a point.
"""

import numpy as np
from jaxtyping import Float64, Int64
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import ndtr, ndtri
from scipy.stats import chi2

from onesided.priors.estimate import PriorEstimate, as_numbers, check_options

CELLS = 12
"""More cells know no more of two bell curves, and each costs a parameter."""
GRID = np.concatenate([[0.005, 0.01, 0.02, 0.035, 0.05, 0.075], np.arange(0.1, 1.0, 0.04), [0.99]])
"""Priors that are tried; the ends of the interval are interpolated between them."""
WIDTHS = 0.1
"""How much widths usually differ: standard deviation of log s."""
FURTHEST = 8.0
"""Largest d; beyond it no score of one class is among those of the other."""
TINY = 1e-12

Counts = Int64[np.ndarray, "cells"]


def binormal(
    positive_scores: ArrayLike, unlabelled_scores: ArrayLike, *, coverage: float = 0.95
) -> PriorEstimate:
    """Estimate the class prior as if scores were two bell curves under some increasing function.

    Pass scores of samples that the scorer was not trained on. A tenth of a second, whatever the
    number of scores.
    """
    check_options(coverage=coverage, at_least=[])
    positive = as_numbers(positive_scores, "positive_scores")
    unlabelled = as_numbers(unlabelled_scores, "unlabelled_scores")
    losses = profile(*cells(positive, unlabelled))
    fine = np.linspace(GRID[0], GRID[-1], 2000)
    inside = fine[np.interp(fine, GRID, losses) <= losses.min() + chi2.ppf(coverage, 1) / 2]
    value = lowest(losses)
    return PriorEstimate(
        value=value,
        low=min(float(inside.min()), value),
        high=max(float(inside.max()), value),
        method="binormal",
        n_positive=len(positive),
        n_unlabelled=len(unlabelled),
        reachable=(float(GRID[0]), float(GRID[-1])),
    )


def cells(
    positive: Float64[np.ndarray, "p"], unlabelled: Float64[np.ndarray, "u"], most: int = CELLS
) -> tuple[Counts, Counts]:
    """Return how many of P and of U lie in each cell; equal scores share one.

    Cuts are quantiles of P and U with half the weight each, so that neither has empty cells.
    """
    both = np.concatenate([positive, unlabelled])
    order = np.argsort(both, kind="stable")
    weight = np.repeat(
        [0.5 / len(positive), 0.5 / len(unlabelled)], [len(positive), len(unlabelled)]
    )
    places = np.searchsorted(weight[order].cumsum(), np.arange(1, most) / most)
    cuts = np.unique(both[order][places])
    cuts = cuts[cuts < both.max()]  # a cut above everything would leave an empty cell
    found = [np.searchsorted(cuts, part, side="left") for part in (positive, unlabelled)]
    first, second = (np.bincount(part, minlength=len(cuts) + 1) for part in found)
    return first, second


def profile(positive: Counts, unlabelled: Counts) -> Float64[np.ndarray, "grid"]:
    """Return the lowest -log L for every prior of the grid.

    Each fit starts where that of the neighbouring prior ended, once from each end of the grid:
    the likelihood of a mixture may have several maxima.
    """
    if len(positive) < 3:  # all scores are equal, or nearly: nothing speaks for any prior
        return np.zeros(len(GRID))
    upward = _along(GRID, positive, unlabelled)
    downward = _along(GRID[::-1], positive, unlabelled)[::-1]
    losses: np.ndarray = np.minimum(upward, downward)
    return losses


def lowest(losses: Float64[np.ndarray, "grid"]) -> float:
    """Return where a parabola through the lowest loss and its neighbours is lowest."""
    at = int(losses.argmin())
    if at in (0, len(GRID) - 1):
        return float(GRID[at])
    near = slice(at - 1, at + 2)
    square, slope, _ = np.polyfit(GRID[near] - GRID[at], losses[near] - losses[at], 2)
    return float(GRID[at] if square <= 0 else GRID[at] - slope / (2 * square))


def _along(grid: np.ndarray, positive: Counts, unlabelled: Counts) -> np.ndarray:
    count = len(positive)
    below = np.cumsum(positive + 0.5)[:-1] / (positive.sum() + 0.5 * count)
    cuts = ndtri(below)
    start = np.concatenate([cuts[:1], np.log(np.diff(cuts)), [1.5, 0.0]])
    bounds = [(-6.0, 6.0), *[(-7.0, 2.0)] * (count - 2), (0.0, FURTHEST), (-1.0, 1.0)]
    losses = []
    for prior in grid:
        found = minimize(
            loss,
            start,
            args=(prior, positive, unlabelled),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": 300},
        )
        start = found.x
        losses.append(found.fun)
    return np.array(losses)


def loss(
    parameters: np.ndarray, prior: float, positive: Counts, unlabelled: Counts
) -> tuple[float, np.ndarray]:
    """Return -log L and its gradient.

    Parameters are the first cut, the logarithms of the steps to the next ones, d and log s.
    """
    steps = np.exp(parameters[1:-2])
    cuts = parameters[0] + np.concatenate([[0.0], np.cumsum(steps)])
    distance, log_width = parameters[-2:]
    width = np.exp(log_width)
    moved = (cuts + distance) / width
    p, n = (np.diff(ndtr(at), prepend=0.0, append=1.0) + TINY for at in (cuts, moved))
    u = prior * p + (1 - prior) * n
    by_p, by_n = -(positive / p + prior * unlabelled / u), -(1 - prior) * unlabelled / u
    # A cut moves probability from the cell above it to the cell below.
    from_p = (by_p[:-1] - by_p[1:]) * _density(cuts)
    from_n = (by_n[:-1] - by_n[1:]) * _density(moved) / width
    later = (from_p + from_n)[::-1].cumsum()[::-1]
    by_width = log_width / WIDTHS**2 - (from_n * moved * width).sum()
    gradient = np.concatenate([later[:1], later[1:] * steps, [from_n.sum(), by_width]])
    likely = positive @ np.log(p) + unlabelled @ np.log(u) - (log_width / WIDTHS) ** 2 / 2
    return -float(likely), gradient


def _density(at: np.ndarray) -> np.ndarray:
    density: np.ndarray = np.exp(-at * at / 2) / np.sqrt(2 * np.pi)
    return density
