"""A small convolutional network for processors without a graphics card.

Written for this library after what made CIFAR training fast (DAWNBench's ResNet-9,
airbench): few layers, an early loss of resolution, wide late layers, halving by the largest
of four neighbours rather than by strides, and a first layer that is computed, not learned.
The stem halves the image until it has at most 24x24 places; so the network costs about the
same at every size: 0.052 GMAC at 3x32x32 (a tenth of ResNet-18), 0.070 at 3x64x64, 0.16 at
3x96x96, 0.13 at 6x128x128.

With `normalisation="none"` convolutions have a bias and keep the variance of what goes
forward (Kaiming, fan-in).
"""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from onesided.nets.convolution import Convolution3x3
from onesided.nets.standardise import (
    Backbone,
    Normalisation,
    Standardise,
    global_average,
    normalise_maps,
)

WIDTHS = (64, 128, 256)
MOST_PLACES = 24 * 24
FILTERS = 24
"""Filters of the first layer, each of which is there with both signs."""
LEAST_VARIANCE = 5e-4
"""Added to the variance of a filter's output before it is divided by: quiet patterns are made
louder, but not noise."""


class Whitening(nn.Module):
    """A first layer whose outputs are uncorrelated and of like size from the first step on.

    Neighbouring pixels are nearly equal, and a network spends its first epochs on learning
    to look at their differences. The principal patterns of small patches, each scaled to unit
    variance, say them at once (Page, 2018; airbench, Jordan, 2024). Both signs are kept,
    because the rectifier drops one. Only the bias is learned.

    Before `look_at` the filters are random and orthogonal.
    """

    filters: Tensor

    def __init__(self, channels_in: int, *, halve: bool) -> None:
        super().__init__()
        # Four taps at stride two are symmetric about each pair of pixels; three are not.
        self.kernel, self.stride = (4, 2) if halve else (3, 1)
        numbers = channels_in * self.kernel**2
        count = min(FILTERS, numbers)
        self.channels = 2 * count
        orthogonal = torch.empty(count, numbers)
        nn.init.orthogonal_(orthogonal)
        self.register_buffer("filters", orthogonal.view(count, channels_in, *2 * [self.kernel]))
        self.bias = nn.Parameter(torch.zeros(self.channels))

    def forward(self, maps: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d y x"]:
        """Return the filters' answers, and their negatives.

        The bias is added apart: a convolution with a bias would go back through itself for it,
        which takes several times as long as a sum.
        """
        answers = F.conv2d(maps, self.filters, stride=self.stride, padding=1)
        bias = self.bias.to(answers.dtype)  # or half precision would end here
        return torch.cat([answers, -answers], dim=1).add_(bias[:, None, None])

    @torch.no_grad()
    def look_at(self, samples: Float[Tensor, "n c h w"]) -> None:
        """Take the principal patterns of these images' patches, largest variance first."""
        patches = F.unfold(samples.double(), self.kernel, stride=self.kernel)
        rows = patches.transpose(1, 2).flatten(0, 1)
        rows = rows - rows.mean(dim=0)
        variance, patterns = torch.linalg.eigh(rows.T @ rows / len(rows))
        count = len(self.filters)
        scale = (variance[-count:].clamp(min=0) + LEAST_VARIANCE).rsqrt()
        chosen = (patterns[:, -count:] * scale).flip(1).T
        self.filters.copy_(chosen.reshape(self.filters.shape))


class SmallNetwork(Backbone):
    """A computed first layer, then two stages of 128 and 256 channels, each at half the size.

    Args:
        size: Height and width of the images; decides how often the stem halves them.
            Other sizes run too, they only cost more or see less.
        multiplier: Widens or narrows the learned layers, to the nearest multiple of 8 channels.
    """

    def __init__(
        self,
        standardise: Standardise,
        *,
        size: tuple[int, int] = (32, 32),
        multiplier: float = 1.0,
        normalisation: Normalisation = "batch",
    ) -> None:
        low, middle, high = (_scaled(width, multiplier) for width in WIDTHS)
        super().__init__(standardise, width=high, normalisation=normalisation)
        times = halvings(*size)
        self.first = Whitening(standardise.channels, halve=times > 0)
        self.stem = nn.Sequential(nn.ReLU(inplace=True))
        channels = self.first.channels
        for _ in range(times - 1):
            self.stem.append(_halving(channels, low, norm=normalisation))
            channels = low
        self.stages = nn.Sequential(
            _stage(channels, middle, norm=normalisation),
            _stage(middle, high, norm=normalisation),
        )
        self.reset_parameters()

    def look_at(self, samples: Float[Tensor, "n c h w"]) -> None:
        """Compute the first layer from some training images in [0, 1]."""
        self.first.look_at(self.standardise(samples))

    def features(self, samples: Float[Tensor, "b c h w"]) -> Float[Tensor, "b width"]:
        """Return the spatial mean of the last stage, so features are not negative."""
        return global_average(self.stages(self.stem(self.first(samples))))

    def reset_parameters(self) -> None:
        """Draw convolutions as Kaiming normal; the computed first layer stays."""
        nn.init.zeros_(self.first.bias)
        mode: Literal["fan_in", "fan_out"] = (
            "fan_out" if self.normalisation == "batch" else "fan_in"
        )
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode=mode, nonlinearity="relu")
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
            elif isinstance(layer, nn.modules.batchnorm._BatchNorm):
                layer.reset_parameters()


def halvings(height: int, width: int) -> int:
    """Return how often the stem halves an image; no side falls below four places."""
    count = 0
    while height * width > MOST_PLACES and min(height, width) >= 8:
        height, width, count = height // 2, width // 2, count + 1
    return count


def _scaled(channels: int, multiplier: float) -> int:
    # Multiples of 8 fill the vector registers of every current processor.
    return max(8, 8 * round(channels * multiplier / 8))


def _stage(channels_in: int, channels: int, *, norm: Normalisation) -> nn.Sequential:
    """Halve the maps and look twice.

    The largest of four is taken before BatchNorm, which then works on a quarter of the places.
    """
    return nn.Sequential(
        Convolution3x3(channels_in, channels, bias=norm == "none"),
        nn.MaxPool2d(2, ceil_mode=True),
        normalise_maps(norm, channels),
        nn.ReLU(inplace=True),
        _rectified(Convolution3x3(channels, channels, bias=norm == "none"), norm),
    )


def _halving(channels_in: int, channels_out: int, *, norm: Normalisation) -> nn.Sequential:
    """Return a layer of the stem: four taps, two places apart."""
    bias = norm == "none"
    return _rectified(nn.Conv2d(channels_in, channels_out, 4, stride=2, padding=1, bias=bias), norm)


def _rectified(convolution: nn.Conv2d, norm: Normalisation) -> nn.Sequential:
    maps = normalise_maps(norm, convolution.out_channels)
    return nn.Sequential(convolution, maps, nn.ReLU(inplace=True))
