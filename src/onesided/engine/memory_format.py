"""In which order a network's numbers lie in memory."""

from collections.abc import Sequence

import torch
from torch import nn


def arrange(method: nn.Module, sample_shape: Sequence[int], device: torch.device) -> None:
    """Lay out the kernels of a network for images as the processor's convolutions like it.

    With channels last, a convolution reads the numbers of one place side by side, which
    saves time on a CPU (`benchmarks/step.py` measures it). Torch carries the order from
    the kernels to what they give, so views and states may come in any. All values stay;
    sums inside a convolution are taken in another order, so its last bits differ.
    """
    if device.type == "cpu" and len(sample_shape) == 3:
        # Modules keep their parameters: an optimizer that holds them already goes on.
        method.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
