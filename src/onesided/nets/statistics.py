"""Looking without learning: a network by batch statistics that leaves no trace."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import functional_call

from onesided.nets.standardise import Backbone


@torch.no_grad()
def glance(
    backbone: Backbone, samples: Float[Tensor, "batch *sample"]
) -> Float[Tensor, "batch width"]:
    """Return features without gradient; BatchNorm's running statistics stay as they are.

    In train mode BatchNorm uses the statistics of these samples and would remember them;
    it works on copies instead (a few KB). Batch statistics are also the same on every
    process that is given the same samples, where running ones differ by shard.
    """
    copies = {name: value.clone() for name, value in backbone.named_buffers()}
    features: Tensor = functional_call(backbone, copies, (samples,))
    return features
