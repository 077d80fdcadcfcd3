"""How much work a network is: the multiplications of one sample."""

import torch
from torch import Tensor, nn

from onesided.nets.standardise import Backbone


def multiplications(backbone: Backbone, sample_shape: tuple[int, ...]) -> int:
    """Return the multiplications of a sample in the backbone's linear and convolutional layers.

    Every weight of such a layer is used once for each position of its output. (Torch's own
    counter also counts functions, but its first use takes two seconds.)
    """
    counts: list[int] = []

    def count(layer: nn.Module, _inputs: object, output: Tensor) -> None:
        weight = layer.weight
        assert isinstance(weight, Tensor)
        counts.append(weight.numel() * output.numel() // len(weight))

    layers = [m for m in backbone.modules() if isinstance(m, nn.Linear | nn.Conv2d)]
    hooks = [layer.register_forward_hook(count) for layer in layers]
    training = backbone.training
    try:
        with torch.no_grad():
            backbone.eval()(torch.zeros(1, *sample_shape))
    finally:
        backbone.train(training)
        for hook in hooks:
            hook.remove()
    return sum(counts)
