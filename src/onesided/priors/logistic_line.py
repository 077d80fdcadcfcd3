"""Logistic regression on one variable: from any score to a probability.

    minimise over a, b   sum_i w_i [log(1 + exp(a v_i + b)) - t_i (a v_i + b)]

with values v, targets t from 0 to 1 and weights w.
"""

import numpy as np
from jaxtyping import Float64
from scipy.special import expit

STEPS, CLOSE, RIDGE, LARGEST = 50, 1e-8, 1e-6, 5.0


def logistic_line(
    values: Float64[np.ndarray, "n"],
    target: Float64[np.ndarray, "n"],
    weight: Float64[np.ndarray, "n"],
) -> tuple[float, float]:
    """Return slope and intercept of the weighted logistic regression, by Newton's method."""
    inputs = np.stack([values, np.ones_like(values)], axis=1)
    share = float(np.average(target, weights=weight))
    line = np.array([1.0, np.log(share / (1 - share))])
    for _ in range(STEPS):
        g = expit(inputs @ line)
        gradient = inputs.T @ (weight * (g - target)) + RIDGE * line
        curvature = (inputs * (weight * g * (1 - g))[:, None]).T @ inputs + RIDGE * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        # A long step would leave the region where the quadratic model holds.
        step *= min(1.0, LARGEST / max(float(np.abs(step).max()), CLOSE))
        line -= step
        if np.abs(step).max() < CLOSE:
            break
    return float(line[0]), float(line[1])
