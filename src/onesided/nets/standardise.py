"""What every backbone shares: preprocessing as its first layer, a width, normalisation."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Float32, Shaped
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.func import functional_call

from onesided.core.errors import ConfigError, ContractError

Normalisation = Literal["batch", "none"]
"""BatchNorm, or nothing: BatchNorm sees one process's share of a batch only, so tests
that two processes equal one to the last digit need networks without it."""

Numbers = ArrayLike | Sequence[float] | Tensor
"""One number per channel or feature. Tuples are named apart: to checks at run time, numpy's
ArrayLike leaves them out."""


class Standardise(nn.Module):
    """Shift and scale every channel, so that a saved model carries its preprocessing.

    Mean and standard deviation are float32 buffers with one number per channel of an
    image (in the 0-1 scale of the views) or per feature of a vector. A constant channel
    is only shifted: its standard deviation is rounding noise, and dividing by noise
    would make it the loudest input. (The border pixels of small digits are constant.)
    """

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Numbers, std: Numbers) -> None:
        super().__init__()
        centre, spread = _numbers(mean), _numbers(std)
        if centre.ndim != 1 or centre.shape != spread.shape or not len(centre):
            raise ConfigError(
                "Mean and standard deviation need one number per channel (or feature), "
                f"as many of the one as of the other; got shapes {centre.shape} and {spread.shape}."
            )
        if not (np.isfinite(centre).all() and np.isfinite(spread).all() and (spread >= 0).all()):
            raise ConfigError(
                "Mean and standard deviation must be finite and the latter not negative; "
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
    # np.array copies: what the caller does to its own array later is not our business.
    return np.array(values, dtype=np.float32)


class Backbone(nn.Module):
    """A network from samples to features: standardise, then `features`.

    Attributes:
        width: Number of features that come out.
        normalisation: What follows its layers; heads on top are built alike.
    """

    width: int
    normalisation: Normalisation

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

    def look_at(self, samples: Float[Tensor, "n *sample"]) -> None:
        """Set what depends on the data's look before training; by default nothing does.

        Args:
            samples: Some training samples as they are, without their labels.
        """

    def reset_parameters(self) -> None:
        """Draw all weights anew from torch's current generator; what was learned is lost."""
        raise NotImplementedError


def normalise_maps(normalisation: Normalisation, channels: int) -> nn.Module:
    """Return the layer that follows a convolution; Identity keeps names in files equal."""
    return nn.BatchNorm2d(channels) if normalisation == "batch" else nn.Identity()


def normalise_vectors(normalisation: Normalisation, features: int) -> nn.Module:
    """Return the layer that follows a linear layer; Identity keeps names in files equal."""
    return nn.BatchNorm1d(features) if normalisation == "batch" else nn.Identity()


def global_average(maps: Float[Tensor, "batch width h w"]) -> Float[Tensor, "batch width"]:
    """Return the mean over all places, in whatever memory layout the maps come."""
    return maps.mean(dim=(2, 3))


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
