"""The risk of a node that predicts one class for all its rows.

Wilton, Koay, Ko, Xu, Ye, Positive-Unlabeled Learning using Random Forests via Recursive
Greedy Risk Minimization, NeurIPS 2022.

| paper           | here                                                                    |
|-----------------|-------------------------------------------------------------------------|
| n_p, n_u        | `labelled`, `unlabelled` of the root                                     |
| W_p             | `positive`: pi x (share of P in the node), the mass of positives         |
| W_n             | `negative`: (share of U in the node) - W_p; below zero if P outweighs U  |
| v* = W_p / W    | `positive / (positive + negative)`; above one half means positive        |

Quadratic loss leaves 4 W v (1 - v), as Gini's index does, and logistic loss W times the
entropy of v. Where W_n is below zero the non-negative estimator (nnPU) counts no risk at all,
the unbiased one (uPU) less than none.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

from onesided.kernels.compiled import compiled

NON_NEGATIVE, UNBIASED = 0, 1
QUADRATIC, LOGISTIC = 0, 1

ROUNDING = 1e-12
"""Masses sum to one; a difference this small is rounding, not a majority."""


class Risk(NamedTuple):
    """Which risk to reduce, as numbers for compiled code."""

    per_labelled: float
    """Mass of one labelled positive, pi / n_p."""
    per_unlabelled: float
    """Mass of one unlabelled sample, 1 / n_u."""
    estimator: int
    """NON_NEGATIVE or UNBIASED."""
    loss: int
    """QUADRATIC or LOGISTIC."""


@compiled
def masses(risk: Risk, labelled: int, unlabelled: int) -> tuple[float, float]:
    """Return the mass of positives and of negatives in a node, W_p and W_n."""
    positive = risk.per_labelled * labelled
    return positive, risk.per_unlabelled * unlabelled - positive


@compiled
def impurity(risk: Risk, labelled: int, unlabelled: int) -> float:
    """Return the risk of a node with its best constant prediction.

    PUET (Wilton et al. 2022): a split reduces the risk by this, minus the sum of it over the
    two children. Empty sides are found by their counts, as masses have rounding errors.
    """
    positive, negative = masses(risk, labelled, unlabelled)
    if labelled == 0:
        return 0.0
    if risk.estimator == NON_NEGATIVE and negative <= ROUNDING:
        return 0.0
    if unlabelled == 0:
        return -math.inf
    total = positive + negative
    if risk.loss == QUADRATIC:
        return 4.0 * positive * negative / total
    if negative < -ROUNDING:
        return -math.inf
    if negative <= ROUNDING:
        return 0.0
    return -positive * math.log(positive / total) - negative * math.log(negative / total)


@compiled
def is_settled(risk: Risk, labelled: int, unlabelled: int) -> bool:
    """Return whether no split of this node can lower its risk."""
    left = impurity(risk, labelled, unlabelled)
    if risk.estimator == NON_NEGATIVE:
        return left == 0.0
    return labelled == 0 or left == -math.inf


@compiled
def majority(risk: Risk, labelled: int, unlabelled: int) -> int:
    """Return 1 if a node is rather positive (v > 1/2), -1 if negative, 0 if neither."""
    positive, negative = masses(risk, labelled, unlabelled)
    if abs(positive - negative) <= ROUNDING:
        return 0
    return 1 if positive > negative else -1


@compiled
def impurities(
    risk: Risk, labelled: Int64[np.ndarray, "nodes"], unlabelled: Int64[np.ndarray, "nodes"]
) -> Float64[np.ndarray, "nodes"]:
    """Return the risk of each node."""
    found = np.empty(len(labelled))
    for node in range(len(labelled)):
        found[node] = impurity(risk, labelled[node], unlabelled[node])
    return found
