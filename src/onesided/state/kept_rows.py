"""Which unlabelled rows are labelled as negative: all except those with the highest scores.

Symbols (Garg et al. 2021): alpha = `share`, the share of positives in U.
"""

import math

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn


def rows_in_share(share: float, rows: int) -> int:
    """Return floor(share x rows), safe from rounding: 0.29 x 100 is 28.999999999999996."""
    return math.floor(share * rows + 1e-9)


class KeptRows(nn.Module):
    """One mark per training row; at first all rows are kept."""

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

        Earlier rejections are undone first. Of equal scores the earlier row is rejected first.
        Labelled rows are always kept.

        Args:
            share: Estimated share of positives among the unlabelled, alpha.
            at_least: Unlabelled rows to keep even if the share is 1, so that some negatives
                remain to learn from.
        """
        unlabelled = (~labelled).nonzero()[:, 0]
        wanted = rows_in_share(share, len(unlabelled))
        count = max(0, min(wanted, len(unlabelled) - at_least))
        order = scores[unlabelled].argsort(descending=True, stable=True)
        self.keep.fill_(True)
        self.keep[unlabelled[order[:count]]] = False

    def read(self, row: Int64[Tensor, "batch"]) -> Bool[Tensor, "batch"]:
        """Return whether each of these rows is kept."""
        return self.keep[row]
