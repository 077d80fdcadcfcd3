"""A small convolutional network for processors without a graphics card.

Written for this library after what made CIFAR training fast (DAWNBench's ResNet-9,
airbench): few layers, an early loss of resolution, wide late layers. The stem halves the
image until it has at most 24x24 places; so the network costs about the same at every
size: 0.057 GMAC at 3x32x32 (a tenth of ResNet-18), 0.067 at 3x64x64, 0.15 at 3x96x96,
0.094 at 6x128x128.

With `normalisation="none"` convolutions have a bias, keep the variance of what goes
forward (Kaiming, fan-in), and the last one of each residual starts at zero, so that
depth adds nothing at first (Fixup, Zhang et al., ICLR 2019).
"""

from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from onesided.nets.standardise import (
    Backbone,
    Normalisation,
    Standardise,
    global_average,
    normalise_maps,
)

WIDTHS = (64, 128, 256)
MOST_PLACES = 24 * 24


class Residual(nn.Module):
    """Two 3x3 convolutions beside an identity shortcut, rectified after the sum."""

    def __init__(self, channels: int, *, normalisation: Normalisation) -> None:
        super().__init__()
        self.first = _rectified(channels, channels, normalisation=normalisation)
        self.last = _convolution(channels, channels, normalisation=normalisation)

    def forward(self, maps: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
        """Return the rectified sum of input and residual."""
        return F.relu(maps + self.last(self.first(maps)), inplace=True)


class SmallNetwork(Backbone):
    """Stem, then one stage per width: 64 channels, 128 and 256, each at half the size.

    Args:
        size: Height and width of the images; decides how often the stem halves them.
            Other sizes run too, they only cost more or see less.
        multiplier: Widens or narrows all layers, to the nearest multiple of 8 channels.
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
        self.stem = _stem(standardise.channels, low, halvings=halvings(*size), norm=normalisation)
        self.stages = nn.Sequential(
            _rectified(low, low, normalisation=normalisation),
            _rectified(low, middle, stride=2, normalisation=normalisation),
            Residual(middle, normalisation=normalisation),
            _rectified(middle, high, stride=2, normalisation=normalisation),
            Residual(high, normalisation=normalisation),
        )
        self.reset_parameters()

    def features(self, samples: Float[Tensor, "b c h w"]) -> Float[Tensor, "b width"]:
        """Return the spatial mean of the last residual, so features are not negative."""
        return global_average(self.stages(self.stem(samples)))

    def reset_parameters(self) -> None:
        """Draw convolutions as Kaiming normal; see the module for those without BatchNorm."""
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
        if self.normalisation == "none":
            for layer in self.modules():
                if isinstance(layer, Residual):
                    nn.init.zeros_(layer.last.get_parameter("0.weight"))


def halvings(height: int, width: int) -> int:
    """Return how often the stem halves an image; no side falls below four places."""
    count = 0
    while height * width > MOST_PLACES and min(height, width) >= 8:
        height, width, count = height // 2, width // 2, count + 1
    return count


def _scaled(channels: int, multiplier: float) -> int:
    # Multiples of 8 fill the vector registers of every current processor.
    return max(8, 8 * round(channels * multiplier / 8))


def _stem(channels_in: int, channels: int, *, halvings: int, norm: Normalisation) -> nn.Sequential:
    if halvings == 0:
        return nn.Sequential(_rectified(channels_in, channels, normalisation=norm))
    # All but the last halving run at half width: they see the most places.
    widths = [_scaled(channels, 0.5)] * (halvings - 1) + [channels]
    layers = []
    for width in widths:
        # Four taps at stride two are symmetric about each pair of pixels; three are not.
        layers.append(_rectified(channels_in, width, kernel=4, stride=2, normalisation=norm))
        channels_in = width
    return nn.Sequential(*layers)


def _convolution(
    channels_in: int,
    channels_out: int,
    *,
    normalisation: Normalisation,
    kernel: int = 3,
    stride: int = 1,
) -> nn.Sequential:
    bias = normalisation == "none"
    convolution = nn.Conv2d(channels_in, channels_out, kernel, stride=stride, padding=1, bias=bias)
    return nn.Sequential(convolution, normalise_maps(normalisation, channels_out))


def _rectified(
    channels_in: int,
    channels_out: int,
    *,
    normalisation: Normalisation,
    kernel: int = 3,
    stride: int = 1,
) -> nn.Sequential:
    layers = _convolution(
        channels_in, channels_out, normalisation=normalisation, kernel=kernel, stride=stride
    )
    return layers.append(nn.ReLU(inplace=True))
