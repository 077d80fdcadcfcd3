"""Contrastive losses: against a pool, against a queue, and spectral with soft classes.

All embeddings have unit length, so a product is a cosine.

| paper             | code                    | meaning                                  |
|-------------------|-------------------------|------------------------------------------|
| q_i (PiCO, LaGAM) | `anchor`, `query`       | embedding that is moved                  |
| k_i               | `key`                   | another view of the same sample          |
| A                 | `anchor` and `others`   | all anchors, then everything else        |
| Pos(i), M_ij      | `positive`              | members of the pool of the same class    |
| tau               | `temperature`           | how much the closest ones dominate       |
| z1, z2 (WSC)      | `first`, `second`       | embeddings of two strong views           |
| Q_ij              | `same_class`            | probability of being of one class        |
| alpha, beta       | `view_`, `class_weight` | weights of the two graphs                |
| lambda_c          | `repulsion_weight`      | weight of the repulsion                  |
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor


def supervised_contrastive_loss(
    anchor: Float[Tensor, "batch dim"],
    others: Float[Tensor, "others dim"],
    positive: Bool[Tensor, "batch pool"],
    *,
    temperature: float,
    weight: Float[Tensor, "batch"] | None = None,
) -> Float[Tensor, ""]:
    """Pull every anchor towards its positives in the pool, against all of the pool.

    SupCon (Khosla et al., NeurIPS 2020), the contrastive term of PiCO and the group term
    of LaGAM. With one positive per anchor, its own key, it is the instance term. An
    anchor is not in its own pool; the other anchors are, and get gradients.

    Args:
        anchor: Also the first members of the pool.
        others: The rest of the pool.
        positive: To which members an anchor is pulled, itself left out. An anchor without
            any costs zero.
        weight: Of each anchor in the mean over the batch; None means equal weights.
    """
    similarity = _similarity_to_pool(anchor, others) / temperature
    itself = _itself(similarity)
    against = similarity.masked_fill(itself, -torch.inf).logsumexp(dim=1, keepdim=True)
    chosen = positive & ~itself
    cost = (against - similarity).where(chosen, 0).sum(dim=1)
    per_anchor = cost / chosen.sum(dim=1).clamp(min=1)
    return (per_anchor if weight is None else weight * per_anchor).mean()


def instance_contrastive_loss(
    query: Float[Tensor, "batch dim"],
    key: Float[Tensor, "batch dim"],
    negatives: Float[Tensor, "negatives dim"],
    *,
    temperature: float,
) -> Float[Tensor, ""]:
    """Find the key of the same sample among stored keys of others.

    InfoNCE of MoCo (He et al., CVPR 2020), PiCO's warm-up: before the classifier has learned,
    its classes are noise, and a sample's own key is the only safe positive.
    """
    own = (query * key).sum(dim=1, keepdim=True)
    similarity = torch.cat([own, query @ negatives.T], dim=1) / temperature
    return (similarity.logsumexp(dim=1) - similarity[:, 0]).mean()


def own_key(query: Float[Tensor, "batch dim"]) -> Bool[Tensor, "batch pool"]:
    """Return that each query's only positive among queries and keys is its own key."""
    batch = len(query)
    return F.pad(torch.eye(batch, dtype=torch.bool, device=query.device), (batch, 0))


def nearest_in_pool(
    anchor: Float[Tensor, "batch dim"], others: Float[Tensor, "others dim"], *, count: int
) -> Bool[Tensor, "batch pool"]:
    """Return which `count` members of the pool are closest to each anchor, never itself."""
    similarity = _similarity_to_pool(anchor.detach(), others.detach())
    similarity = similarity.masked_fill(_itself(similarity), -torch.inf)
    found = similarity.topk(min(count, similarity.shape[1] - 1), dim=1).indices
    return torch.zeros_like(similarity, dtype=torch.bool).scatter(1, found, True)


@dataclass(frozen=True)
class SpectralContrast:
    """The three parts of the weakly supervised spectral contrast.

    Attributes:
        views: l1, pulls the two views of a sample together.
        classes: l2, pulls samples together as far as they are probably of one class.
        repulsion: l3, pushes all pairs towards a right angle.
    """

    views: Float[Tensor, ""]
    classes: Float[Tensor, ""]
    repulsion: Float[Tensor, ""]

    @property
    def total(self) -> Float[Tensor, ""]:
        """L_wsc, the sum of the three."""
        return self.views + self.classes + self.repulsion


def spectral_contrast(
    first: Float[Tensor, "batch dim"],
    second: Float[Tensor, "batch dim"],
    same_class: Float[Tensor, "batch batch"],
    *,
    view_weight: float,
    class_weight: float,
    repulsion_weight: float,
) -> SpectralContrast:
    """Return WSC's contrast on the graph of views and, softly, of classes.

    WSC (Zhou et al., ICML 2025): spectral contrastive learning (HaoChen et al., 2021) on
    alpha x (graph of views) + beta x (graph of classes). Its first two parts pull along
    the edges of either graph, its last stands for the orthogonality constraint.
    `same_class` is Q, symmetric; its diagonal is not used.
    """
    both = torch.cat([first, second])
    across = first @ second.T
    pulled = across + first @ first.T + second @ second.T
    views = -2 * view_weight * across.diagonal().mean()
    classes = -(2 * class_weight / 3) * _mean_off_diagonal(same_class * pulled)
    # Two classes in the batch's graph: its edges weigh alpha + beta / 2 on average.
    scale = repulsion_weight * (view_weight + class_weight / 2) ** 2
    repulsion = scale * _mean_off_diagonal((both @ both.T).square())
    return SpectralContrast(views, classes, repulsion)


def _mean_off_diagonal(values: Float[Tensor, "n n"]) -> Float[Tensor, ""]:
    pairs = max(len(values) * (len(values) - 1), 1)
    return (values.sum() - values.diagonal().sum()) / pairs


def _similarity_to_pool(
    anchor: Float[Tensor, "batch dim"], others: Float[Tensor, "others dim"]
) -> Float[Tensor, "batch pool"]:
    # Copied once (4 MB for a queue of 8192 keys): a queue may change before the backward pass.
    return anchor @ torch.cat([anchor, others]).T


def _itself(similarity: Float[Tensor, "batch pool"]) -> Bool[Tensor, "batch pool"]:
    diagonal = torch.eye(len(similarity), dtype=torch.bool, device=similarity.device)
    return F.pad(diagonal, (0, similarity.shape[1] - len(similarity)))
