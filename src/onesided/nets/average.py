"""The averaged network: a steadier copy of one that learns, for looking and not for training."""

import torch
from torch import nn

from onesided.nets.momentum import TargetNetwork


class AveragedNetwork(TargetNetwork):
    """A target network for evaluation: weights are averaged, everything else is copied.

    HolisticPU watches its first network through it. It never sees a training batch, so it
    has no BatchNorm statistics of its own: it takes the online ones as they are, and stays
    in evaluation mode whatever its owner does.
    """

    def __init__(self, *online: nn.Module) -> None:
        super().__init__(*online)
        self.eval()

    def train(self, mode: bool = True) -> "AveragedNetwork":
        """Stay in evaluation mode."""
        super().train(False)
        return self

    @torch.no_grad()
    def follow(self, *online: nn.Module, momentum: float) -> None:
        """Move the weights towards the online ones; take their buffers over."""
        super().follow(*online, momentum=momentum)
        theirs = [buffer for module in online for buffer in module.buffers()]
        for mine, buffer in zip(self.copies.buffers(), theirs, strict=True):
            mine.copy_(buffer)
