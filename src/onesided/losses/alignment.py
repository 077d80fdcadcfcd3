"""Non-contrastive alignment: pull each query towards the keys of its own class.

| symbol | code           | meaning                                                           |
|--------|----------------|-------------------------------------------------------------------|
| q, k   | `query`, `key` | embeddings by the online and the target network                   |
| c      | `cosine`       | cosine of q and k; the functions normalise, callers need not      |
| 1 - c  | `gap`          | what is left to close                                             |
| Q      | `same_class`   | row i: the keys that query i is aligned with                      |

All three losses take (query, key, same_class), so one can be swapped for another, and
average over Q, then over the batch (third term of Eq. 14 of the NcPU paper).
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

    L_self-r (NcPU, Eq. 4). Needs no labels, so nothing in it can be mislabelled.

    Args:
        query: What is moved: embeddings by the online network.
        key: Where to: embeddings by the target network, row by row of the same samples.
        same_class: Not looked at; accepted so that the three losses share one call.
    """
    cosine = (F.normalize(query, dim=1) * F.normalize(key, dim=1)).sum(dim=1)
    return 2 * (1 - cosine).mean()


def class_alignment_loss(
    query: Float[Tensor, "batch dim"],
    key: Float[Tensor, "batch dim"],
    same_class: Bool[Tensor, "batch batch"],
) -> Float[Tensor, ""]:
    """Align every query with the keys of its own class, all pairs alike.

    L_r (NcPU, Eq. 5). The squared gradient is 4 (1 - c^2) / |q|^2 (Eq. 6): distant
    pairs, among them the mislabelled ones, pull hardest.

    Args:
        query: What is moved: embeddings by the online network.
        key: Where to: embeddings by the target network, row by row of the same samples.
        same_class: Which (query, key) pairs count; every row needs at least one, or the
            loss is NaN.
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
    """Align every query with the keys of its own class, trusting close pairs more.

    NoiSNCL (NcPU, Eq. 7). The square root turns the gradient around: its square is
    (1 + c) / |q|^2 (Eq. 8), so a pair that is already close pulls harder than a
    distant, probably mislabelled one. `bound="coordinate", self_pair="plain"` is what
    the authors released.

    Args:
        query: What is moved: embeddings by the online network.
        key: Where to: embeddings by the target network, row by row of the same samples.
        same_class: Which (query, key) pairs count; every row needs at least one, or the
            loss is NaN.
        bound: "similarity" keeps the cosine inside [margin, 1 - margin]: pairs with a
            negative cosine get no gradient, and 2 sqrt(1 - c) >= 2 (1 - c) holds, which
            it does not for c < 0. "coordinate" does so with each coordinate of the
            normalised vectors. "none" is the bare formula; at c = 1, where the square
            root is vertical, the gradient is 0 (the pair can come no closer).
        self_pair: Cost of a sample's pair with itself.
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


def same_class_pairs(
    probabilities: Float[Tensor, "batch 2"], *, threshold: float = 0.5
) -> Bool[Tensor, "batch batch"]:
    """Return which samples the classifier puts into one class, without gradient.

    The set Q of Eq. 14: pairs with f_i . f_j >= threshold, and each sample with itself.
    At one half this is "same predicted class"; a sample at exactly one half sits on the
    fence and pairs with everybody. A lower threshold also admits pairs of opposite
    classes when the classifier is unsure (0.2 in the paper's plug-in study).

    Args:
        probabilities: Rows that sum to 1. Labelled positives can be put on their side by
            writing their known class into their row first.
        threshold: Agreement from which on two samples form a pair, in [0, 1].
    """
    # f_i . f_j = (1 + d_i d_j) / 2 with d the difference of the two columns. The sign of
    # d_i d_j is exact, whereas the product of probabilities near one half rounds to 0.5
    # and would pair opposite classes. It is also an outer product, cheaper than a matmul.
    negative, positive = probabilities.detach().unbind(dim=1)
    lean = positive - negative
    pairs = lean[:, None] * lean >= 2 * threshold - 1
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
