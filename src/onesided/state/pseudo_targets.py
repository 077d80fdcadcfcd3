"""Pseudo targets: the soft label of each training row, with and without a gate.

Symbols (paper, section 3.2): s' = `phantom`, s = what `read` returns, r = `vote`,
beta = `momentum`.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from onesided.core.labels import NEGATIVE, POSITIVE


class PseudoTargets(nn.Module):
    """One soft label per training row. Unlabelled rows start as negative."""

    phantom: Tensor

    def __init__(self, rows: int) -> None:
        super().__init__()
        start = torch.zeros(rows, 2)
        start[:, NEGATIVE] = 1.0
        self.register_buffer("phantom", start)

    @torch.no_grad()
    def vote(
        self,
        row: Int64[Tensor, "batch"],
        labelled: Bool[Tensor, "batch"],
        vote: Int64[Tensor, "batch"],
        *,
        momentum: float,
    ) -> None:
        """Move the phantom of these rows towards their vote (Eq. 10); labelled stay positive."""
        ballot = F.one_hot(vote, 2).to(self.phantom)
        moved = momentum * self.phantom[row] + (1 - momentum) * ballot
        self.phantom[row] = _positive_where(labelled, moved)

    @torch.no_grad()
    def forget(self, row: Int64[Tensor, "batch"]) -> None:
        """Overwrite the phantom of these rows with negative: the gate without regret (Table 2)."""
        self.phantom[row] = F.one_hot(torch.full_like(row, NEGATIVE), 2).to(self.phantom)

    def read(
        self,
        row: Int64[Tensor, "batch"],
        labelled: Bool[Tensor, "batch"],
        surely_negative: Bool[Tensor, "batch"],
    ) -> Float[Tensor, "batch 2"]:
        """Return negative where the gate is closed, the phantom elsewhere (Eq. 11).

        Nothing is written: a row released by the gate continues from its phantom, not from
        the beginning. That is the regret in regret-based updating.
        """
        target = self.phantom[row]
        certain = F.one_hot(torch.full_like(row, NEGATIVE), 2).to(target)
        target = torch.where(surely_negative[:, None], certain, target)
        return _positive_where(labelled, target)


class SoftLabels(PseudoTargets):
    """Pseudo targets of PiCO and LaGAM, without a gate.

    Args:
        rows: Training rows.
        positive: Initial probability of positive of unlabelled rows.
    """

    def __init__(self, rows: int, *, positive: float = 0.0) -> None:
        super().__init__(rows)
        self.phantom[:, POSITIVE] = positive
        self.phantom[:, NEGATIVE] = 1 - positive

    def current(
        self, row: Int64[Tensor, "batch"], labelled: Bool[Tensor, "batch"]
    ) -> Float[Tensor, "batch 2"]:
        """Return the labels of these rows; labelled ones are always positive."""
        return self.read(row, labelled, torch.zeros_like(labelled))


def _positive_where(
    labelled: Bool[Tensor, "batch"], target: Float[Tensor, "batch 2"]
) -> Float[Tensor, "batch 2"]:
    positive = torch.zeros_like(target)
    positive[:, POSITIVE] = 1.0
    return torch.where(labelled[:, None], positive, target)
