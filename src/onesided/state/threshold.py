"""The self-adaptive threshold (SAT) of calling a sample negative.

Symbols (paper, section 3.2): tau~ = `confidence`, rho~ = `class_share`, tau = `threshold`,
gamma = `momentum`.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from onesided.core.labels import NEGATIVE


class SelfAdaptiveThreshold(nn.Module):
    """Low at first, so that many rows train as negative; it rises with the confidence."""

    confidence: Tensor
    class_share: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("confidence", torch.tensor(0.5))
        self.register_buffer("class_share", torch.full((2,), 0.5))

    @torch.no_grad()
    def follow(
        self, probabilities: Float[Tensor, "n 2"], *, momentum: float, cap: float = 1.0
    ) -> None:
        """Move towards this batch's mean confidence and class shares (Eq. 12).

        Args:
            probabilities: Softmax outputs of the rows that count; no rows, no change.
            momentum: gamma, per step.
            cap: Upper limit of `confidence`; the released code uses 0.8, the paper none.
        """
        if len(probabilities) == 0:
            return
        surest = probabilities.amax(dim=1).mean()
        # lerp_ weighs in the buffer's own precision
        self.confidence.lerp_(surest.to(self.confidence), 1 - momentum).clamp_(max=cap)
        self.class_share.lerp_(probabilities.mean(dim=0).to(self.class_share), 1 - momentum)

    @property
    def threshold(self) -> Float[Tensor, ""]:
        """The probability of negative from which a sample counts as surely negative (Eq. 13)."""
        return self.class_share[NEGATIVE] / self.class_share.max() * self.confidence
