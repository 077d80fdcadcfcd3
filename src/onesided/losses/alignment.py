"""Non-contrastive alignment: pull each query towards the keys of its own class.

| symbol | code           | meaning                                                           |
|--------|----------------|-------------------------------------------------------------------|
| q, k   | `query`, `key` | embeddings by the online and the target network                   |
| c      | `cosine`       | cosine of q and k; the functions normalise, callers need not      |
| 1 - c  | `gap`          | remaining distance                                                |
| Q      | `same_class`   | row i: the keys that query i is aligned with                      |

Row i of query and key belongs to the same sample. All three losses take (query, key, same_class),
so one can replace another. They average over Q, then over the batch (third term of Eq. 14 of the
NcPU paper). Every row of Q needs at least one pair, or the loss is NaN.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

Bound = Literal["similarity", "coordinate", "none"]
"""What is kept inside [margin, 1 - margin]: the cosine, each coordinate, or nothing."""

SelfPair = Literal["root", "plain"]
"""Cost of a sample's pair with itself: 2 sqrt(1 - c) like every pair, or 2 (1 - c)."""


def self_alignment_loss(
    query: Float[Tensor, "batch dim"],
    key: Float[Tensor, "batch dim"],
    same_class: Bool[Tensor, "batch batch"] | None = None,
) -> Float[Tensor, ""]:
    """Align every query with the key of the same sample, as BYOL does.

    L_self-r (NcPU, Eq. 4). Needs no labels, so no wrong label can harm it. `same_class` is not
    used.
    """
    cosine = (F.normalize(query, dim=1) * F.normalize(key, dim=1)).sum(dim=1)
    return 2 * (1 - cosine).mean()


def class_alignment_loss(
    query: Float[Tensor, "batch dim"],
    key: Float[Tensor, "batch dim"],
    same_class: Bool[Tensor, "batch batch"],
) -> Float[Tensor, ""]:
    """Align every query with the keys of its own class, all pairs with equal weight.

    L_r (NcPU, Eq. 5). The squared gradient is 4 (1 - c^2) / |q|^2 (Eq. 6): distant
    pairs, among them the mislabelled ones, have the largest gradient.
    """
    cosine = F.normalize(query, dim=1) @ F.normalize(key, dim=1).T
    return 2 * (1 - _mean_over_pairs(cosine, same_class))


def robust_alignment_loss(
    query: Float[Tensor, "batch dim"],
    key: Float[Tensor, "batch dim"],
    same_class: Bool[Tensor, "batch batch"],
    *,
    bound: Bound = "similarity",
    self_pair: SelfPair = "root",
    margin: float = 1e-4,
) -> Float[Tensor, ""]:
    """Align every query with the keys of its own class; close pairs have more weight.

    NoiSNCL (NcPU, Eq. 7). The square root reverses the order of gradients: the squared gradient
    is (1 + c) / |q|^2 (Eq. 8), so a close pair has a larger one than a distant, probably
    mislabelled pair. The authors released `bound="coordinate", self_pair="plain"`.

    Args:
        bound: "similarity" keeps the cosine inside [margin, 1 - margin]: pairs with a
            negative cosine get no gradient, and 2 sqrt(1 - c) >= 2 (1 - c) holds, which
            it does not for c < 0. "coordinate" does so with each coordinate of the
            normalised vectors. "none" is the plain formula; at c = 1, where the gradient
            of the square root is infinite, it is set to 0.
        margin: Distance from 0 and from 1 that the bound keeps, less than one half.
    """
    query, key = F.normalize(query, dim=1), F.normalize(key, dim=1)
    if bound == "coordinate":
        query, key = query.clamp(margin, 1 - margin), key.clamp(margin, 1 - margin)
    gap = _bounded_gap(query @ key.T, bound, margin)
    distance = gap.sqrt()
    if self_pair == "plain":
        distance = distance.diagonal_scatter(gap.diagonal())
    return 2 * _mean_over_pairs(distance, same_class)


def predicted_pairs(probabilities: Float[Tensor, "batch 2"]) -> Bool[Tensor, "batch batch"]:
    """Return which samples have the same predicted class, without gradient.

    The set Q of Eq. 14 as the paper defines it, y~ = argmax f; a tie counts as negative.
    """
    negative, positive = probabilities.detach().unbind(dim=1)
    predicted = positive > negative
    return predicted[:, None] == predicted


def same_class_pairs(
    probabilities: Float[Tensor, "batch 2"], *, threshold: float = 0.5
) -> Bool[Tensor, "batch batch"]:
    """Return which samples the classifier's probabilities put into one class, without gradient.

    The set Q of the released code and of App. H (Eq. 37): pairs with f_i . f_j >= threshold, and
    each sample with itself. At 0.5 this is "same predicted class", see `predicted_pairs`; only a
    sample with a probability of exactly 0.5 differs: it pairs with all. A lower threshold also
    admits pairs of opposite classes where the classifier is uncertain (0.2 in the paper's plug-in
    study).

    Args:
        probabilities: Rows that sum to 1. Callers may write the known class of labelled
            positives into their rows first.
    """
    # f_i . f_j = (1 + d_i d_j) / 2 with d the difference of the two columns. The sign of
    # d_i d_j is exact, whereas the product of probabilities near 0.5 rounds to 0.5 and
    # would pair opposite classes. It is also an outer product, cheaper than a matmul.
    negative, positive = probabilities.detach().unbind(dim=1)
    difference = positive - negative
    pairs = difference[:, None] * difference >= 2 * threshold - 1
    return pairs.fill_diagonal_(True)


def _bounded_gap(
    cosine: Float[Tensor, "batch batch"], bound: Bound, margin: float
) -> Float[Tensor, "batch batch"]:
    # Clamped coordinates can give a cosine of 1 + 1e-6, and rounding 1 + 1e-7: the smallest
    # normal number keeps the root real there, and clamp passes no gradient below it.
    smallest = torch.finfo(cosine.dtype).tiny
    if bound == "similarity":
        return (1 - cosine).clamp(max(margin, smallest), 1 - margin)
    return (1 - cosine).clamp(min=smallest)


def _mean_over_pairs(
    values: Float[Tensor, "batch batch"], same_class: Bool[Tensor, "batch batch"]
) -> Float[Tensor, ""]:
    # Autograd keeps the mask at one byte per pair; weights in floats would take four.
    per_query = (values * same_class).sum(dim=1) / same_class.sum(dim=1)
    return per_query.mean()
