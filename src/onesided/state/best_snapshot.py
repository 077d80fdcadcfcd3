"""The best network so far, stored beside the one in training."""

import math
from copy import deepcopy

import torch
from jaxtyping import Float
from torch import Tensor, nn

from onesided.core.errors import ContractError


class BestSnapshot(nn.Module):
    """Copies of the given modules as they were when a loss was lowest.

    They are in the `state_dict`, so a resumed run still has the best epoch before the stop.
    The price is one more copy of the weights in memory and in the checkpoint.
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
        """Store the modules if their loss is the lowest so far; NaN never is."""
        self.latest.copy_(loss)
        if bool(self.latest < self.lowest):
            self.lowest.copy_(self.latest)
            for copy, module in zip(self.copies, modules, strict=True):
                copy.load_state_dict(module.state_dict())

    @torch.no_grad()
    def restore(self, *modules: nn.Module) -> None:
        """Load the best state into the modules; without any offer they stay as they are."""
        if bool(self.lowest.isposinf()):
            return
        for copy, module in zip(self.copies, modules, strict=True):
            module.load_state_dict(copy.state_dict())
