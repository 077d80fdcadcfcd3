"""Which unlabelled rows are taught as negative: all but those that rank highest.

Symbols (Garg et al. 2021): alpha = `share`, the share of positives in U.
"""

import math

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

# 0.29 x 100 is 28.999999999999996 in binary, and its floor one row too few.
ROUNDING = 1e-9


class KeptRows(nn.Module):
    """One mark per training row. At first all are kept, as nobody is suspected."""

    keep: Tensor

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.register_buffer("keep", torch.ones(rows, dtype=torch.bool))

    @torch.no_grad()
    def reject_top(
        self,
        scores: Float[Tensor, "rows"],
        labelled: Bool[Tensor, "rows"],
        *,
        share: float,
        at_least: int = 1,
    ) -> None:
        """Reject the floor(share x |U|) unlabelled rows with the highest scores (CVIR).

        What was rejected before is forgotten: a row may come back. Of equal scores the
        earlier row goes first. Labelled rows are always kept.

        Args:
            scores: One per row of the training set; only their order matters.
            labelled: Rows whose positive label was observed.
            share: Estimated share of positives among the unlabelled, alpha.
            at_least: Unlabelled rows to keep even if the share is 1: with none there would
                be no negatives to learn from.
        """
        unlabelled = (~labelled).nonzero()[:, 0]
        wanted = math.floor(share * len(unlabelled) + ROUNDING)
        count = max(0, min(wanted, len(unlabelled) - at_least))
        order = scores[unlabelled].argsort(descending=True, stable=True)
        self.keep.fill_(True)
        self.keep[unlabelled[order[:count]]] = False

    def read(self, row: Int64[Tensor, "batch"]) -> Bool[Tensor, "batch"]:
        """Return whether each of these rows is kept."""
        return self.keep[row]
