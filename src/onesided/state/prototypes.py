"""Class prototypes: one direction per class, following the embeddings of that class.

Symbols (paper, section 3.2): mu_c = `vectors[c]`, alpha = `momentum`, q~ = `query`.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

Normalisation = Literal["sample", "batch"]


class Prototypes(nn.Module):
    """One unit vector per class; both start at zero, as nothing is known."""

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
        """Return the cosine between the first two prototypes; near 1 they tell nothing apart."""
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
    """Return the moving average that is brought back to unit length after every row.

    If n_t is the length before the t-th normalisation, unrolling the recursion gives
    weights alpha^(T-t) / (n_t ... n_T). The lengths depend on each other only
    backwards in time, through n_t^2 = alpha^2 |mu_{t-1}|^2 + (1-alpha)^2 |q_t|^2
    + 2 alpha (1-alpha) mu_{t-1}.q_t, so iterating all of them at once from any guess
    is exact after at most T rounds. With alpha = .99 it takes five to ten: a few
    (T, T) products instead of T steps.
    """
    if momentum == 0:  # no memory: the last row decides alone
        return rows[-1]
    if not start.any():  # nothing known yet: the first row is the start
        start, rows = F.normalize(rows[0], dim=0), rows[1:]
    sources = torch.cat([start[None], rows])  # (T + 1, width): mu_0, q_1 .. q_T
    gain = torch.full((len(sources),), 1 - momentum, dtype=rows.dtype, device=rows.device)
    gain[0] = 1.0
    inner = sources @ rows.T  # (T + 1, T)
    squared = rows.square().sum(dim=1)
    length = torch.ones(len(rows), dtype=rows.dtype, device=rows.device)
    for _ in range(len(rows)):
        weights = _unrolled_weights(length, gain, momentum)  # (T + 1, T + 1)
        before = (weights[:-1] * inner.T).sum(dim=1)  # mu_{t-1} . q_t
        updated = (
            momentum**2 + (1 - momentum) ** 2 * squared + 2 * momentum * (1 - momentum) * before
        ).sqrt()
        settled = torch.allclose(updated, length, rtol=0, atol=1e-15)
        length = updated
        if settled:
            break
    return _unrolled_weights(length, gain, momentum)[-1] @ sources


def _unrolled_weights(
    length: Float[Tensor, "t"], gain: Float[Tensor, "t_plus_1"], momentum: float
) -> Float[Tensor, "t_plus_1 t_plus_1"]:
    """Return row t = the weight of every source in mu_t, for t = 0 .. T."""
    shrink = F.pad((momentum / length).log().cumsum(0), (1, 0))  # log of prod alpha / n
    # A source entering at s is scaled by (alpha / n) of the later rows s+1 .. t and,
    # unless it is mu_0, by 1 / n_s of its own.
    own = F.pad(-length.log(), (1, 0))
    return ((shrink[:, None] - shrink[None, :] + own[None, :]).exp() * gain).tril()
