"""Row labels: one soft label per training row."""

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn


class RowLabels(nn.Module):
    """One label in [0, 1] per row, without votes and momentum.

    Rows start as negative. DistPU stores its last predictions here, HolisticPU the classes
    from its trend scores.
    """

    positive: Tensor

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.register_buffer("positive", torch.zeros(rows))

    @torch.no_grad()
    def fill(self, positive: Float[Tensor, "rows"]) -> None:
        """Set the labels of all rows."""
        self.positive.copy_(positive)

    @torch.no_grad()
    def overwrite(self, row: Int64[Tensor, "batch"], positive: Float[Tensor, "batch"]) -> None:
        """Set the labels of these rows."""
        self.positive[row] = positive.to(self.positive)

    def read(
        self, row: Int64[Tensor, "batch"], labelled: Bool[Tensor, "batch"]
    ) -> Float[Tensor, "batch"]:
        """Return the labels of these rows; observed positives are always positive."""
        return self.positive[row].masked_fill(labelled, 1.0)
