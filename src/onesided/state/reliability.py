"""Reliability: which rows lie close to the prototype of the class they are believed to be of.

Symbols (PiCO+): dist_i = `distance`, the share of reliable rows = `share`.
"""

import math

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

# 0.29 x 100 is 28.999999999999996 in binary, and its floor one row too few.
ROUNDING = 1e-9


class Reliability(nn.Module):
    """One distance and one mark per training row; what was never looked at is not reliable."""

    distance: Tensor
    reliable: Tensor

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.register_buffer("distance", torch.full((rows,), torch.inf))
        self.register_buffer("reliable", torch.zeros(rows, dtype=torch.bool))

    @torch.no_grad()
    def record(self, row: Int64[Tensor, "batch"], distance: Float[Tensor, "batch"]) -> None:
        """Remember how far these rows are now; nobody is judged by it before `select`."""
        self.distance[row] = distance.to(self.distance)

    @torch.no_grad()
    def select(self, *, share: float) -> None:
        """Call the floor(share x rows) closest rows reliable, and no others.

        Of equal distances the earlier row goes first.
        """
        count = math.floor(share * len(self.distance) + ROUNDING)
        closest = self.distance.argsort(stable=True)[:count]
        self.reliable.fill_(False)
        self.reliable[closest] = self.distance[closest].isfinite()

    def read(
        self, row: Int64[Tensor, "batch"], labelled: Bool[Tensor, "batch"]
    ) -> Bool[Tensor, "batch"]:
        """Return whether each of these rows is reliable; labelled ones are, wherever they lie."""
        return self.reliable[row] | labelled
