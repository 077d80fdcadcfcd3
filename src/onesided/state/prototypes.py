"""Class prototypes: one direction per class, a moving average of its embeddings.

Symbols (paper, section 3.2): mu_c = `vectors[c]`, alpha = `momentum`, q~ = `query`.
"""

import math
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

Normalisation = Literal["sample", "batch"]

SHORTEST = 1e-12
"""Least length of a moved prototype: an opposite row could make it zero, which has no direction."""


class Prototypes(nn.Module):
    """One unit vector per class; all start at zero."""

    vectors: Tensor

    def __init__(self, classes: int, width: int) -> None:
        super().__init__()
        self.register_buffer("vectors", torch.zeros(classes, width))

    @torch.no_grad()
    def follow(
        self,
        query: Float[Tensor, "batch width"],
        label: Int64[Tensor, "batch"],
        *,
        momentum: float,
        normalise: Normalisation,
    ) -> None:
        """Move each class towards the embeddings predicted to be of it (Eq. 9).

        Args:
            query: Normalised embeddings, in batch order.
            label: Class predicted for each row.
            momentum: alpha, per sample.
            normalise: After each sample (paper) or once per batch (released code).
        """
        average = _average_normalising_each if normalise == "sample" else _average
        for label_index in range(len(self.vectors)):
            rows = query[label == label_index]
            if len(rows):
                moved = average(self.vectors[label_index].double(), rows.double(), momentum)
                self.vectors[label_index] = F.normalize(moved, dim=0)

    def cosines(self, query: Float[Tensor, "batch width"]) -> Float[Tensor, "batch classes"]:
        """Return how similar each embedding is to each prototype."""
        return query @ self.vectors.T.to(query.dtype)

    def nearest(self, query: Float[Tensor, "batch width"]) -> Int64[Tensor, "batch"]:
        """Return the class whose prototype is most similar: the vote r of Eq. 10."""
        return self.cosines(query).argmax(dim=1)

    def similarity(self) -> Float[Tensor, ""]:
        """Return the cosine of the first two prototypes; near 1 they do not separate classes."""
        return self.vectors[0] @ self.vectors[1]


def _average(
    start: Float[Tensor, "width"], rows: Float[Tensor, "n width"], momentum: float
) -> Float[Tensor, "width"]:
    """Return the moving average after all rows, without a loop over them.

    mu_n = alpha^n mu_0 + (1 - alpha) sum_t alpha^(n-t) q_t.
    """
    powers = momentum ** torch.arange(len(rows), -1, -1, dtype=rows.dtype, device=rows.device)
    return powers[0] * start + (1 - momentum) * (powers[1:] @ rows)


def _average_normalising_each(
    start: Float[Tensor, "width"], rows: Float[Tensor, "n width"], momentum: float
) -> Float[Tensor, "width"]:
    """Return the moving average, normalised to unit length after every row.

    Each length depends on all rows before, so there is no closed form. Steps this small cost less
    in numpy than in torch, also on the way from and to another device.
    """
    average = start.cpu().numpy().copy()
    for entering in ((1 - momentum) * rows).cpu().numpy():
        average *= momentum
        average += entering
        average /= max(math.sqrt(average.dot(average)), SHORTEST)
    return torch.from_numpy(average).to(start.device)
