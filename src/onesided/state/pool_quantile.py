"""The margin above which a given share of the unlabelled rows lies."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class PoolQuantile(nn.Module):
    """One number; 0 before the first `measure`, which changes no decision."""

    value: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("value", torch.zeros((), dtype=torch.float64))

    @torch.no_grad()
    def measure(self, margins: Float[Tensor, "n"], *, share: float) -> None:
        """Store the middle between the last margin of the top share and the next one.

        At least one row lies above it and one below, whatever the share.
        """
        descending = margins.double().sort(descending=True).values
        count = min(max(round(share * len(descending)), 1), len(descending) - 1)
        if count > 0:
            self.value.copy_((descending[count - 1] + descending[count]) / 2)
