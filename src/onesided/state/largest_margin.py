"""The largest margin on the training set, which turns a relative score into a decision.

Symbols (vPU, Chen et al. 2020): Phi = sigmoid(z), z = margin; Phi / max Phi estimates the
posterior, so a sample is positive if Phi > max Phi / 2.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class LargestMargin(nn.Module):
    """One number; infinite before the first `measure`, which gives a shift of 0."""

    value: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("value", torch.tensor(math.inf, dtype=torch.float64))

    @torch.no_grad()
    def measure(self, margins: Float[Tensor, "n"], *, quantile: float = 1.0) -> None:
        """Store the largest margin, or a high quantile where outliers are likely.

        Phi grows with the margin, so the largest margin belongs to the largest Phi.
        """
        if quantile < 1:
            # By counting and not by torch.quantile, which refuses more than 16 million values.
            rank = max(1, math.ceil(quantile * len(margins)))
            largest = margins.kthvalue(rank).values
        else:
            largest = margins.max()
        self.value.copy_(largest)

    def shift(self) -> Float[Tensor, ""]:
        """Return what to add to a margin so that above 0 means Phi > max Phi / 2.

        With Phi = 1 / (1 + e^-z) the condition is z > -log(1 + 2 e^-z_max): nothing changes
        if max Phi is 1, and if all Phi are tiny the margin is compared with z_max - log 2.
        """
        # Not softplus: torch's turns linear above 20, an error of 2e-9 that float64 would show.
        return -F.logsigmoid(self.value - math.log(2))
