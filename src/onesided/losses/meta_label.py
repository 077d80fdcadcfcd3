"""Meta labels: which label of a row would have lowered the loss on samples of known class.

| paper (LaGAM) | code                     | meaning                                           |
|---------------|--------------------------|---------------------------------------------------|
| g, P_i        | `margin`                 | scalar logit; P_i = sigmoid(g_i), 1 - sigmoid(g_i) |
| Y             | `target`                 | soft labels, columns NEGATIVE and POSITIVE        |
| B(g, Y)       | `balanced_soft_cross_entropy` | each class averaged over its own mass        |
| h             | `features`               | input of the linear head                          |
| eta           | `step`                   | length of the virtual step                        |
| G             | `meta_gradient`          | effect of each label on the clean loss            |

The original numbers the columns [negative, positive], as we do.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from onesided.core.labels import NEGATIVE

LEAST_PROBABILITY = 1e-4


@dataclass(frozen=True)
class LinearView:
    """Samples as features of a linear head, its margins, and the target labels."""

    features: Float[Tensor, "n dim"]
    margin: Float[Tensor, "n"]
    target: Float[Tensor, "n 2"]


def balanced_soft_cross_entropy(
    margin: Float[Tensor, "n"], target: Float[Tensor, "n 2"]
) -> Float[Tensor, ""]:
    """Return the cross entropy averaged within each class by mass, summed over classes.

    LaGAM's B(g, Y). Probabilities are kept in [1e-4, 1 - 1e-4], so a row beyond a logit of 9.21
    has no gradient, whether it is right or wrong.
    Differs: a class without any mass counts zero; the published code divides by zero.
    """
    log_probability = _clipped(margin).log()
    return -(target * log_probability * _per_mass(target)).sum()


def meta_gradient(noisy: LinearView, clean: LinearView, *, step: float) -> Float[Tensor, "n 2"]:
    """Return how the clean loss changes with each entry of the noisy target.

    LaGAM's meta label: take one virtual step of the head's weight on B(g, Y + eps), compute
    the loss of the clean samples, differentiate by eps. A negative entry is a label that
    would have lowered the loss. The head is linear, so two closed forms replace second-order
    gradients, and the clean margins after the step follow from those before it: g - eta h.u.
    The weight itself is not needed.
    """
    virtual = _head_gradient(noisy)
    after = replace(clean, margin=clean.margin - step * (clean.features @ virtual))
    agreement = noisy.features @ _head_gradient(after)
    effect = _derivative(noisy.margin) * agreement[:, None]
    # The second part is the derivative by the class's mass: without it the sign may be wrong.
    average = (noisy.target * effect * _per_mass(noisy.target)).sum(dim=0)
    return step * (effect - average) * _per_mass(noisy.target)


def _head_gradient(view: LinearView) -> Float[Tensor, "dim"]:
    """Return the derivative of B by the head's weight."""
    by_margin = (view.target * _derivative(view.margin) * _per_mass(view.target)).sum(dim=1)
    return -(by_margin @ view.features)


def _clipped(margin: Float[Tensor, "n"]) -> Float[Tensor, "n 2"]:
    probability = torch.sigmoid(margin[:, None] * _signs(margin))
    return probability.clamp(LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)


def _derivative(margin: Float[Tensor, "n"]) -> Float[Tensor, "n 2"]:
    """Return the derivative of each log probability by the margin; 0 where it is clipped."""
    signs = _signs(margin)
    probability = torch.sigmoid(margin[:, None] * signs)
    inside = (probability >= LEAST_PROBABILITY) & (probability <= 1 - LEAST_PROBABILITY)
    return signs * (1 - probability) * inside


def _signs(margin: Float[Tensor, "n"]) -> Float[Tensor, "2"]:
    """Return the sign with which the margin enters each class's probability."""
    signs = torch.ones(2, dtype=margin.dtype, device=margin.device)
    signs[NEGATIVE] = -1
    return signs


def _per_mass(target: Float[Tensor, "n 2"]) -> Float[Tensor, "2"]:
    """Return one over each class's mass; 0 for a class that has none."""
    mass = target.sum(dim=0)
    return torch.where(mass > 0, 1 / mass.where(mass > 0, 1), 0)
