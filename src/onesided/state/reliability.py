"""Reliability: which rows lie close to the prototype of their predicted class.

Symbols (PiCO+): dist_i = `distance`, the share of reliable rows = `share`.
"""

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from onesided.state.kept_rows import rows_in_share


class Reliability(nn.Module):
    """One distance and one mark per training row; rows without a distance are not reliable."""

    distance: Tensor
    reliable: Tensor

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.register_buffer("distance", torch.full((rows,), torch.inf))
        self.register_buffer("reliable", torch.zeros(rows, dtype=torch.bool))

    @torch.no_grad()
    def record(self, row: Int64[Tensor, "batch"], distance: Float[Tensor, "batch"]) -> None:
        """Store the distances of these rows; they count from the next `select`."""
        self.distance[row] = distance.to(self.distance)

    @torch.no_grad()
    def select(self, *, share: float) -> None:
        """Mark the floor(share x rows) closest rows as reliable; of equal ones the earlier."""
        count = rows_in_share(share, len(self.distance))
        closest = self.distance.argsort(stable=True)[:count]
        self.reliable.fill_(False)
        self.reliable[closest] = self.distance[closest].isfinite()

    def read(
        self, row: Int64[Tensor, "batch"], labelled: Bool[Tensor, "batch"]
    ) -> Bool[Tensor, "batch"]:
        """Return whether each of these rows is reliable; labelled ones always are."""
        return self.reliable[row] | labelled
