"""The best network so far, kept beside the one that goes on learning."""

import math
from copy import deepcopy

import torch
from jaxtyping import Float
from torch import Tensor, nn

from onesided.core.errors import ContractError


class BestSnapshot(nn.Module):
    """Copies of the given modules as they were when a loss was lowest.

    They are in the `state_dict`, so a resumed run still knows the best epoch of the broken
    one; the price is one more copy of the weights in memory and in the checkpoint.
    """

    lowest: Tensor
    latest: Tensor

    def __init__(self, *modules: nn.Module) -> None:
        super().__init__()
        if not modules:
            raise ContractError("BestSnapshot needs at least one module to copy; got none.")
        self.copies = nn.ModuleList(deepcopy(module) for module in modules)
        self.copies.requires_grad_(False)
        self.register_buffer("lowest", torch.tensor(math.inf, dtype=torch.float64))
        self.register_buffer("latest", torch.tensor(math.inf, dtype=torch.float64))

    @torch.no_grad()
    def offer(self, *modules: nn.Module, loss: Float[Tensor, ""]) -> None:
        """Keep the modules as they are now if their loss is below all before.

        A loss that is not a number is never the lowest.
        """
        self.latest.copy_(loss)
        if bool(self.latest < self.lowest):
            self.lowest.copy_(self.latest)
            for copy, module in zip(self.copies, modules, strict=True):
                copy.load_state_dict(module.state_dict())

    @torch.no_grad()
    def restore(self, *modules: nn.Module) -> None:
        """Give the modules back what was best; without any offer they stay as they are."""
        if bool(self.lowest.isposinf()):
            return
        for copy, module in zip(self.copies, modules, strict=True):
            module.load_state_dict(copy.state_dict())
