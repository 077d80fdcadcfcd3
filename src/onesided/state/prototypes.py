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
LARGEST_EXPONENT = 300.0
"""Exponent of e; half of the largest for a double."""


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
    """Return the moving average, normalised to unit length after every row."""
    if momentum == 0:  # no memory: only the last row counts
        return rows[-1]
    if not start.any():  # no rows before: the first row is the start
        start, rows = F.normalize(rows[0], dim=0), rows[1:]
    # Weights are stored as two factors, and a double holds those of this many rows.
    for some in rows.split(max(1, int(LARGEST_EXPONENT / -math.log(momentum)))):  # type: ignore[no-untyped-call]
        start = _average_of_some(start, some, momentum)
    return start


def _average_of_some(
    start: Float[Tensor, "width"], rows: Float[Tensor, "n width"], momentum: float
) -> Float[Tensor, "width"]:
    """Return the same average after a bounded number of rows, without a loop over them.

    If n_t is the length before the t-th normalisation, unrolling the recursion gives
    weights alpha^(T-t) / (n_t ... n_T). The lengths depend on each other only
    backwards in time, through n_t^2 = alpha^2 |mu_{t-1}|^2 + (1-alpha)^2 |q_t|^2
    + 2 alpha (1-alpha) mu_{t-1}.q_t, so iterating all of them at once from any guess
    is exact after at most T rounds. With alpha = .99 it takes five to ten, each a
    product of a (T, T) matrix with a vector, instead of T steps.
    """
    sources = torch.cat([start[None], rows])  # (T + 1, width): mu_0, q_1 .. q_T
    earlier = (rows @ sources.T).tril()  # (T, T + 1): q_t with what mu_{t-1} is made of
    squared = rows.square().sum(dim=1)
    length = torch.ones(len(rows), dtype=rows.dtype, device=rows.device)
    for _ in range(len(rows)):
        faded, entering = _unrolled_weights(length, momentum)
        before = faded[:-1] * (earlier @ entering)  # mu_{t-1} . q_t
        updated = (
            momentum**2 + (1 - momentum) ** 2 * squared + 2 * momentum * (1 - momentum) * before
        ).clamp(min=SHORTEST**2)
        updated = updated.sqrt()
        settled = torch.allclose(updated, length, rtol=0, atol=1e-14)
        length = updated
        if settled:
            break
    faded, entering = _unrolled_weights(length, momentum)
    return faded[-1] * (entering @ sources)


def _unrolled_weights(
    length: Float[Tensor, "t"], momentum: float
) -> tuple[Float[Tensor, "t_plus_1"], Float[Tensor, "t_plus_1"]]:
    """Return two factors: source s has the weight first[t] x second[s] in mu_t, s <= t."""
    faded = F.pad((momentum / length).log().cumsum(0), (1, 0)).exp()  # prod alpha / n
    # A source entering at s is scaled by (alpha / n) of the later rows s+1 .. t and,
    # unless it is mu_0, by its own (1 - alpha) / n_s.
    own = F.pad((1 - momentum) / length, (1, 0), value=1.0)
    return faded, own / faded
