"""What all backbones share: preprocessing as the first layer, width and normalisation."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Float32, Shaped
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.func import functional_call

from onesided.core.errors import ConfigError, ContractError

Normalisation = Literal["batch", "none"]
"""BatchNorm, or nothing. BatchNorm takes the statistics of one process's share of a batch, so
tests that two processes equal one to the last digit need networks without it."""

Numbers = ArrayLike | Sequence[float] | Tensor
"""One number per channel or feature. Tuples are listed separately, because numpy's ArrayLike
does not include them in checks at run time."""


FORMAT = 1
"""Version of the mathematics from images to features; another one makes stored features unknown."""


class Standardise(nn.Module):
    """Shift and scale every channel, so that a saved model carries its preprocessing.

    Mean and standard deviation are float32 buffers with one number per channel of an
    image (in the 0-1 scale of the views) or per feature of a vector. A constant channel
    is only shifted: its standard deviation is rounding noise, and a division by noise would
    make it the largest input. (The border pixels of small digits are constant.)
    """

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Numbers, std: Numbers) -> None:
        super().__init__()
        centre, spread = _numbers(mean), _numbers(std)
        if centre.ndim != 1 or centre.shape != spread.shape or not len(centre):
            raise ConfigError(
                "Mean and standard deviation need one number per channel (or feature), "
                f"and equally many; got shapes {centre.shape} and {spread.shape}."
            )
        if not (np.isfinite(centre).all() and np.isfinite(spread).all() and (spread >= 0).all()):
            raise ConfigError(
                "Mean and standard deviation must be finite, and the second not negative; "
                f"got mean {centre.tolist()[:6]} and std {spread.tolist()[:6]}. "
                "Look for NaN or infinity in the data."
            )
        spread[spread <= 1e-6 * np.abs(centre)] = 1.0
        self.register_buffer("mean", torch.from_numpy(centre))
        self.register_buffer("std", torch.from_numpy(spread))

    @property
    def channels(self) -> int:
        """Number of channels or features that inputs must have."""
        return len(self.mean)

    def forward(self, samples: Shaped[Tensor, "batch *sample"]) -> Float[Tensor, "batch *sample"]:
        """Return (samples - mean) / std, per channel."""
        if not samples.is_floating_point():
            raise ContractError(
                f"Networks take floating-point images in [0, 1]; got {samples.dtype}. "
                "Divide uint8 images by 255 first."
            )
        if samples.ndim < 2 or samples.shape[1] != self.channels:
            raise ContractError(
                f"This network was built for {self.channels} channels (or features); "
                f"got samples of shape {tuple(samples.shape)}."
            )
        shape = (-1,) + (1,) * (samples.ndim - 2)
        return (samples - self.mean.reshape(shape)) / self.std.reshape(shape)


def _numbers(values: Numbers) -> Float32[np.ndarray, "..."]:
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    # np.array copies, so later changes of the caller's array have no effect here.
    return np.array(values, dtype=np.float32)


@dataclass(frozen=True)
class Inference:
    """How a frozen backbone computes features.

    Attributes:
        features: From images in [0, 1], or vectors, to one feature vector each.
        batch: How many to give it at once.
        in_threads: Whether each thread should take a batch of its own, because the function does
            not depend on the network's mode and is made of many small steps. Otherwise one batch
            follows the other, and torch divides the work inside.
    """

    features: Callable[[Tensor], Tensor]
    batch: int = 64  # the first layers hold a hundred times as much as an image
    in_threads: bool = False


class Backbone(nn.Module):
    """A network from samples to features: standardise, then `features`.

    Attributes:
        width: Number of features that it returns.
        normalisation: What follows its layers; heads are built with the same.
        pace: Factor of the learning rate of its parameters; below 1 where they are pretrained and
            only tuned.
    """

    width: int
    normalisation: Normalisation
    pace: float = 1.0

    def __init__(
        self, standardise: Standardise, *, width: int, normalisation: Normalisation = "batch"
    ) -> None:
        super().__init__()
        self.standardise = standardise
        self.width = width
        self.normalisation = normalisation

    def forward(self, samples: Float[Tensor, "batch *sample"]) -> Float[Tensor, "batch width"]:
        """Return one feature vector per image in [0, 1] or per vector."""
        return self.features(self.standardise(samples))

    def features(self, samples: Float[Tensor, "batch *sample"]) -> Float[Tensor, "batch width"]:
        """Return one feature vector per standardised sample."""
        raise NotImplementedError

    def initialise_from(self, samples: Float[Tensor, "n *sample"]) -> None:
        """Compute what depends on the data before training; by default nothing does.

        `samples` are some plain training samples, without their labels.
        """

    def inference(self) -> Inference:
        """Return the fastest way to its features with the weights it has now, as evaluated."""
        return Inference(self)

    def identity(self) -> str:
        """Return a hash of all that decides features: the network, its settings and weights.

        Settings that are no tensors are those that the network prints (`extra_repr`).
        """
        digest = hashlib.sha256(f"{FORMAT} {type(self).__name__}({self.extra_repr()})".encode())
        for name, tensor in sorted(self.state_dict().items()):
            values = tensor.detach().cpu().contiguous()
            digest.update(f" {name} {values.dtype} {tuple(values.shape)} ".encode())
            digest.update(values.flatten().view(torch.uint8).numpy().data)
        return digest.hexdigest()

    def reset_parameters(self) -> None:
        """Draw all weights anew from torch's current generator."""
        raise NotImplementedError


def normalise_maps(normalisation: Normalisation, channels: int) -> nn.Module:
    """Return the layer that follows a convolution; Identity keeps names in files equal."""
    return nn.BatchNorm2d(channels) if normalisation == "batch" else nn.Identity()


def normalise_vectors(normalisation: Normalisation, features: int) -> nn.Module:
    """Return the layer that follows a linear layer; Identity keeps names in files equal."""
    return nn.BatchNorm1d(features) if normalisation == "batch" else nn.Identity()


def reset_layers(network: nn.Module, draw: Callable[[nn.Conv2d | nn.Linear], object]) -> None:
    """Draw the weights of every layer by a function; biases become 0, BatchNorm is reset."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            draw(layer)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        elif isinstance(layer, nn.modules.batchnorm._BatchNorm):
            layer.reset_parameters()


def reset_kaiming(network: nn.Module, mode: Literal["fan_in", "fan_out"]) -> None:
    """Draw the weights of every layer as Kaiming normal."""
    reset_layers(
        network, lambda layer: nn.init.kaiming_normal_(layer.weight, mode=mode, nonlinearity="relu")
    )


def global_average(maps: Float[Tensor, "batch width h w"]) -> Float[Tensor, "batch width"]:
    """Return the mean over all pixels, for maps in any memory format."""
    return maps.mean(dim=(2, 3))


@torch.no_grad()
def features_by_batch_statistics(
    backbone: Backbone, samples: Float[Tensor, "batch *sample"]
) -> Float[Tensor, "batch width"]:
    """Return features without gradient; BatchNorm's running statistics stay as they are.

    In train mode BatchNorm uses the statistics of these samples and updates the running ones;
    here it updates copies (a few KB). Batch statistics are also equal in all processes that get
    the same samples, whereas running ones differ by shard.
    """
    copies = {name: value.clone() for name, value in backbone.named_buffers()}
    features: Tensor = functional_call(backbone, copies, (samples,))
    return features
