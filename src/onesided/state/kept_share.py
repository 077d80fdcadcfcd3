"""A constant share of positive votes: as much of U is called positive later as at first.

Not in the paper. Short runs need it, because they have no time to correct wrong votes.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

PACE = 0.05
"""How far the threshold moves per step, in logits per excess share of the batch."""


class KeptShare(nn.Module):
    """A threshold that keeps the share of U called positive as it was before votes began.

    A classifier of P against U with equal weights has its boundary where positives and
    negatives are equally dense, whatever their share: no prior is needed. Once it learns from
    its own votes, every wrong positive makes its neighbours positive too, and nothing corrects
    that. So the share called positive until then is stored, and the threshold moves to keep it
    (distribution alignment, as in ReMixMatch, with an estimated share).
    """

    share: Tensor
    line: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("share", torch.tensor(0.5))
        self.register_buffer("line", torch.tensor(0.0))

    @torch.no_grad()
    def remember(self, margin: Float[Tensor, "n"], *, momentum: float) -> None:
        """Move the share towards that of this batch; `margin` is of unlabelled rows only."""
        if len(margin):
            called = (margin > 0).to(self.share).mean()
            self.share.lerp_(called, 1 - momentum)

    @torch.no_grad()
    def keep(self, margin: Float[Tensor, "n"]) -> None:
        """Move the threshold up if more than the share lie above it, down if fewer do."""
        if len(margin):
            called = (margin > self.line).to(self.share).mean()
            self.line.add_(PACE * (called - self.share))

    def positive(self, margin: Float[Tensor, "n"]) -> Bool[Tensor, "n"]:
        """Return which margins lie above the threshold."""
        return margin > self.line
