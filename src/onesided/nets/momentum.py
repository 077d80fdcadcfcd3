"""Networks that follow another one without gradient: a slow target and a moving average."""

from copy import deepcopy

import torch
from jaxtyping import Float
from torch import Tensor, nn

from onesided.core.errors import ContractError


class TargetNetwork(nn.Module):
    """Copies of the given modules, run one after the other, that follow their originals.

    NcPU's key encoder (backbone and projector; step 6 of its algorithm), as in BYOL and
    MoCo. The parameters need no gradient, so DistributedDataParallel and optimizers leave them
    out; the `state_dict` still holds them.

    Only parameters follow. BatchNorm's running statistics are the copy's own: its forward
    passes in train mode update them, and averaging in the online ones would mix the statistics
    of two networks.
    """

    def __init__(self, *online: nn.Module) -> None:
        super().__init__()
        if not online:
            raise ContractError("TargetNetwork needs at least one module to copy; got none.")
        self.copies = nn.ModuleList(deepcopy(module) for module in online)
        self.copies.requires_grad_(False)

    def forward(self, samples: Float[Tensor, "batch *sample"]) -> Float[Tensor, "batch dim"]:
        """Return the output of the last copy, without gradient."""
        return self.layers(samples)[-1]

    @torch.no_grad()
    def layers(self, samples: Float[Tensor, "batch *sample"]) -> list[Tensor]:
        """Return the output of every copy, each applied to the one before, without gradient."""
        outputs = [samples]
        for module in self.copies:
            outputs.append(module(outputs[-1]))
        return outputs[1:]

    @torch.no_grad()
    def follow(self, *online: nn.Module, momentum: float) -> None:
        """Set every parameter to momentum x itself + (1 - momentum) x the online one.

        Costs one pass over the weights: the loop over tensors is torch's, not Python's.

        Args:
            online: The modules that were copied, in the same order.
            momentum: eta in the paper, 0.99. At 1 nothing changes, 0 copies the online network.
        """
        if not 0.0 <= momentum <= 1.0:
            raise ContractError(f"Momentum must lie between 0 and 1; got {momentum}.")
        mine: list[Tensor] = list(self.copies.parameters())
        theirs: list[Tensor] = [parameter for module in online for parameter in module.parameters()]
        if [parameter.shape for parameter in mine] != [parameter.shape for parameter in theirs]:
            raise ContractError(
                "A target network follows the modules it was copied from, in the same order; "
                f"these have {len(theirs)} parameters against {len(mine)}, or other shapes."
            )
        torch._foreach_lerp_(mine, theirs, 1.0 - momentum)


class AveragedNetwork(TargetNetwork):
    """A target network for evaluation: weights are averaged, everything else is copied.

    HolisticPU evaluates its first network by it. It gets no training batches and thus has no
    BatchNorm statistics of its own: it copies the online ones, and always stays in evaluation
    mode.
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
        """Move the weights towards the online ones; copy their buffers."""
        super().follow(*online, momentum=momentum)
        theirs = [buffer for module in online for buffer in module.buffers()]
        for mine, buffer in zip(self.copies.buffers(), theirs, strict=True):
            mine.copy_(buffer)
