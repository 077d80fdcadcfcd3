"""DistPU: predicted labels must have the distribution of the true ones.

| symbol | code                      | meaning                                               |
|--------|---------------------------|-------------------------------------------------------|
| g      | `margin`                  | logit of positive minus logit of negative             |
| p      | sigmoid(`margin`)         | probability of positive                               |
| pi     | `prior`                   | share of positives in U                               |
| R_lab  | `label_distribution_risk` | 2 pi abs(mean_P p - 1) + abs(mean_U p - pi)           |
| H      | mean of `binary_entropy`  | -p log p - (1 - p) log(1 - p)                         |
| lambda | `share`                   | share of the first sample in a mixed one              |
| t      | `first`, `second`         | soft pseudo labels of the two samples that were mixed |

Two numbers per batch are compared with two known ones: all of P is positive, and the share pi
of U. No single sample is constrained, so a constant prediction also meets the second demand.
Entropy and mixup, which act on single samples, exclude that solution.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from onesided.losses.classification import mean_or_zero
from onesided.losses.pseudo_labels import soft_label_cost
from onesided.losses.risk import require_prior


def label_distribution_risk(
    margin: Float[Tensor, "n"], labelled: Bool[Tensor, "n"], *, prior: float
) -> Float[Tensor, ""]:
    """Return how far the predicted shares of positives in P and U are from 1 and the prior.

    R_lab of DistPU (Zhao et al., 2022). The released code minimises R_lab / (2 pi), and the
    published weights of the other terms belong to that scale. In a batch without P, or without
    U, that term is zero.
    """
    require_prior(prior, "DistPU")
    probability = margin.sigmoid()
    on_positive = _distance(probability, labelled, 1.0)
    on_unlabelled = _distance(probability, ~labelled, prior)
    return 2 * prior * on_positive + on_unlabelled


def binary_entropy(margin: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
    """Return the entropy of each prediction, in nats.

    DistPU minimises it so that decided predictions meet the shares, and not a small probability
    for every sample. Sigmoid and logarithm are one function: a saturated prediction has entropy
    0, not NaN.
    """
    on_yes = margin.sigmoid() * F.logsigmoid(margin)
    on_no = (-margin).sigmoid() * F.logsigmoid(-margin)
    return -(on_yes + on_no)


def mixup_cost(
    margin: Float[Tensor, "n"],
    first: Float[Tensor, "n"],
    second: Float[Tensor, "n"],
    *,
    share: float,
) -> Float[Tensor, ""]:
    """Return the mean cost of mixed samples under the soft labels of both samples.

    lambda BCE(p, t_i) + (1 - lambda) BCE(p, t_j), as DistPU writes it, where p belongs to
    lambda x_i + (1 - lambda) x_j. Cross entropy is linear in its target, so this is the cross
    entropy against the mixed label.
    """
    cost = share * soft_label_cost(margin, first) + (1 - share) * soft_label_cost(margin, second)
    return cost.mean()


def _distance(
    probability: Float[Tensor, "n"], mask: Bool[Tensor, "n"], goal: float
) -> Float[Tensor, ""]:
    distance = (mean_or_zero(probability, mask) - goal).abs()
    return torch.where(mask.any(), distance, 0.0)
