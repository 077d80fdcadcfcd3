"""Row labels: one number per training row, how much of a positive it is taken to be."""

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn


class RowLabels(nn.Module):
    """One label in [0, 1] per row, written as a whole: no votes, no momentum.

    Rows start as negative. DistPU keeps its own last predictions here, HolisticPU the
    verdicts of its trend scores.
    """

    positive: Tensor

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.register_buffer("positive", torch.zeros(rows))

    @torch.no_grad()
    def fill(self, positive: Float[Tensor, "rows"]) -> None:
        """Give every row its label at once, from a sweep over all of them."""
        self.positive.copy_(positive)

    @torch.no_grad()
    def overwrite(self, row: Int64[Tensor, "batch"], positive: Float[Tensor, "batch"]) -> None:
        """Replace the labels of these rows; what they were before is forgotten."""
        self.positive[row] = positive.to(self.positive)

    def read(
        self, row: Int64[Tensor, "batch"], labelled: Bool[Tensor, "batch"]
    ) -> Float[Tensor, "batch"]:
        """Return the labels of these rows; observed positives are positive, whatever is stored."""
        return self.positive[row].masked_fill(labelled, 1.0)
