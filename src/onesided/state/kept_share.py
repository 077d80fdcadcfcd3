"""A share of votes that is kept: what was called positive at first is how much is called later.

Not in the paper: needed where a run is too short for mistakes to be voted down again.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

PACE = 0.05
"""How far the boundary moves per step, in logits per share of the batch that is too much."""


class KeptShare(nn.Module):
    """Where to draw the line, so that as many of U are called positive as before votes began.

    A classifier of P against U, both weighing alike, draws its line where positives and
    negatives are equally dense, whatever their share: no prior is needed. Once it learns from
    its own votes, every wrong positive makes its neighbours positive too, and nothing pulls
    back. So the share it called positive until then is remembered, and the line moves where
    it is met (distribution alignment, as in ReMixMatch, with the share estimated).
    """

    share: Tensor
    line: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("share", torch.tensor(0.5))
        self.register_buffer("line", torch.tensor(0.0))

    @torch.no_grad()
    def remember(self, margin: Float[Tensor, "n"], *, momentum: float) -> None:
        """Move the share towards that of this batch.

        Args:
            margin: Logit of positive less that of negative, of unlabelled rows; none, no change.
            momentum: Share of the past that is kept.
        """
        if len(margin):
            called = (margin > 0).to(self.share).mean()
            self.share.lerp_(called, 1 - momentum)

    @torch.no_grad()
    def keep(self, margin: Float[Tensor, "n"]) -> None:
        """Move the line: up where more than the share lie above it, down where fewer do."""
        if len(margin):
            called = (margin > self.line).to(self.share).mean()
            self.line.add_(PACE * (called - self.share))

    def positive(self, margin: Float[Tensor, "n"]) -> Bool[Tensor, "n"]:
        """Return what lies above the line."""
        return margin > self.line
