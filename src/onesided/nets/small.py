"""A small convolutional network for machines without a GPU.

Written for this library with what made CIFAR training fast (DAWNBench's ResNet-9, airbench):
few layers, low resolution early, wide late layers, max pooling rather than strides, and a first
layer that is computed, not learned. The stem halves the image until it has at most 24x24 pixels,
so the network costs about the same at every size: 0.052 GMAC at 3x32x32 (a tenth of ResNet-18),
0.070 at 3x64x64, 0.16 at 3x96x96, 0.13 at 6x128x128.

With `normalisation="none"` convolutions have a bias and keep the variance of their inputs
(Kaiming, fan-in).
"""

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
    reset_kaiming,
)

WIDTHS = (64, 128, 256)
MOST_PIXELS = 24 * 24
FILTERS = 24
"""Filters of the first layer; each is used with both signs."""
LEAST_VARIANCE = 5e-4
"""Added to the variance of a filter's output before the division, so that weak patterns are
amplified, but not noise."""


class Whitening(nn.Module):
    """A first layer whose outputs are uncorrelated and of similar size from the first step.

    Neighbouring pixels are nearly equal, and a network needs its first epochs to learn their
    differences. The principal components of small patches, each scaled to unit variance, give
    them at once (Page, 2018; airbench, Jordan, 2024). Both signs are kept, because ReLU drops
    one. Only the bias is learned.

    Before `initialise_from` the filters are random and orthogonal.
    """

    filters: Tensor

    def __init__(self, channels_in: int, *, halve: bool) -> None:
        super().__init__()
        # A kernel of four is symmetric about each pair of pixels at stride two; three is not.
        self.kernel, self.stride = (4, 2) if halve else (3, 1)
        numbers = channels_in * self.kernel**2
        count = min(FILTERS, numbers)
        self.channels = 2 * count
        orthogonal = torch.empty(count, numbers)
        nn.init.orthogonal_(orthogonal)
        self.register_buffer("filters", orthogonal.view(count, channels_in, *2 * [self.kernel]))
        self.bias = nn.Parameter(torch.zeros(self.channels))

    def forward(self, maps: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d y x"]:
        """Return the filters' outputs and their negatives.

        The bias is added separately: the backward pass of a convolution with a bias takes
        several times as long as that of a sum.
        """
        outputs = F.conv2d(maps, self.filters, stride=self.stride, padding=1)
        bias = self.bias.to(outputs.dtype)  # so that half precision stays
        return torch.cat([outputs, -outputs], dim=1).add_(bias[:, None, None])

    @torch.no_grad()
    def initialise_from(self, samples: Float[Tensor, "n c h w"]) -> None:
        """Set the filters to the principal components of patches, largest variance first."""
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
            Other sizes work too, at a higher cost or with less detail.
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
            bias = normalisation == "none"
            halving = nn.Conv2d(channels, low, 4, stride=2, padding=1, bias=bias)
            self.stem.append(_rectified(halving, normalisation))
            channels = low
        self.stages = nn.Sequential(
            _stage(channels, middle, norm=normalisation),
            _stage(middle, high, norm=normalisation),
        )
        self.reset_parameters()

    def initialise_from(self, samples: Float[Tensor, "n c h w"]) -> None:
        """Compute the first layer from some training images in [0, 1]."""
        self.first.initialise_from(self.standardise(samples))

    def features(self, samples: Float[Tensor, "b c h w"]) -> Float[Tensor, "b width"]:
        """Return the spatial mean of the last stage, so features are not negative."""
        return global_average(self.stages(self.stem(self.first(samples))))

    def reset_parameters(self) -> None:
        """Draw convolutions as Kaiming normal; the computed first layer stays."""
        nn.init.zeros_(self.first.bias)
        reset_kaiming(self, "fan_out" if self.normalisation == "batch" else "fan_in")


def halvings(height: int, width: int) -> int:
    """Return how often the stem halves an image; no side falls below four pixels."""
    count = 0
    while height * width > MOST_PIXELS and min(height, width) >= 8:
        height, width, count = height // 2, width // 2, count + 1
    return count


def _scaled(channels: int, multiplier: float) -> int:
    # Multiples of 8 fill the vector registers of every current CPU.
    return max(8, 8 * round(channels * multiplier / 8))


def _stage(channels_in: int, channels: int, *, norm: Normalisation) -> nn.Sequential:
    """Return two convolutions with max pooling after the first.

    Pooling comes before BatchNorm, which then works on a quarter of the pixels.
    """
    return nn.Sequential(
        Convolution3x3(channels_in, channels, bias=norm == "none"),
        nn.MaxPool2d(2, ceil_mode=True),
        normalise_maps(norm, channels),
        nn.ReLU(inplace=True),
        _rectified(Convolution3x3(channels, channels, bias=norm == "none"), norm),
    )


def _rectified(convolution: nn.Conv2d, norm: Normalisation) -> nn.Sequential:
    maps = normalise_maps(norm, convolution.out_channels)
    return nn.Sequential(convolution, maps, nn.ReLU(inplace=True))
