"""The paper's backbone: pre-activation ResNet for small images.

Residual blocks with the activation before the convolution (He et al., "Identity
Mappings in Deep Residual Networks", ECCV 2016), with a stem for images of 32 to 128
pixels: no stride and no pooling before the first block. Nothing is normalised or
rectified after the last block, so features may be negative and carry their scale.

Cost of one forward pass of ResNet-18: 0.56 GMAC at 3x32x32, 2.2 at 64 pixels,
8.9 at 128. On a CPU prefer the small network above 32 pixels.
"""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from onesided.nets.convolution import Convolution3x3
from onesided.nets.standardise import Backbone, Standardise, global_average, reset_kaiming

WIDTHS = (64, 128, 256, 512)


class PreActivationBlock(nn.Module):
    """Two 3x3 convolutions, each after BatchNorm and ReLU, plus a shortcut.

    Where the shape changes, the shortcut is a 1x1 convolution of the activated input;
    elsewhere it is the untouched input.
    """

    def __init__(self, channels_in: int, channels_out: int, *, stride: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(channels_in)
        self.conv1 = _conv3x3(channels_in, channels_out, stride=stride)
        self.norm2 = nn.BatchNorm2d(channels_out)
        self.conv2 = _conv3x3(channels_out, channels_out, stride=1)
        self.shortcut: nn.Conv2d | None = None
        if stride != 1 or channels_in != channels_out:
            self.shortcut = nn.Conv2d(channels_in, channels_out, 1, stride=stride, bias=False)

    def forward(self, maps: Float[Tensor, "b c h w"]) -> Float[Tensor, "b out rows columns"]:
        """Return the sum of shortcut and residual, neither normalised nor rectified."""
        activated = F.relu(self.norm1(maps), inplace=True)
        shortcut = maps if self.shortcut is None else self.shortcut(activated)
        residual = self.conv2(F.relu(self.norm2(self.conv1(activated)), inplace=True))
        total: Tensor = residual + shortcut
        return total


class PreActivationResNet(Backbone):
    """Stem (3x3 convolution, BatchNorm, ReLU), four stages of blocks, global average.

    NcPU's network (Sec. 4, "ResNet-18"): widths 64-128-256-512, the first block of each
    later stage halves the image, convolutions start as Kaiming normal (fan-out) and
    have no bias. `blocks` is (2, 2, 2, 2) for ResNet-18 and (3, 4, 6, 3) for ResNet-34.
    """

    def __init__(self, standardise: Standardise, *, blocks: Sequence[int] = (2, 2, 2, 2)) -> None:
        super().__init__(standardise, width=WIDTHS[-1])
        self.stem = nn.Sequential(
            _conv3x3(standardise.channels, WIDTHS[0], stride=1),
            nn.BatchNorm2d(WIDTHS[0]),
            nn.ReLU(inplace=True),
        )
        stages: list[nn.Module] = []
        channels = WIDTHS[0]
        for stage, (count, width) in enumerate(zip(blocks, WIDTHS, strict=True)):
            strides = [1 if stage == 0 else 2] + [1] * (count - 1)
            layers: list[nn.Module] = []
            for stride in strides:
                layers.append(PreActivationBlock(channels, width, stride=stride))
                channels = width
            stages.append(nn.Sequential(*layers))
        self.stages = nn.Sequential(*stages)
        self.reset_parameters()

    def features(self, samples: Float[Tensor, "b c h w"]) -> Float[Tensor, "b 512"]:
        """Return the spatial mean of the last block's sum."""
        return global_average(self.stages(self.stem(samples)))

    def reset_parameters(self) -> None:
        """Draw convolutions as Kaiming normal, fan-out; reset BatchNorm."""
        reset_kaiming(self, "fan_out")


def resnet18(standardise: Standardise) -> PreActivationResNet:
    """Return the paper's network."""
    return PreActivationResNet(standardise, blocks=(2, 2, 2, 2))


def resnet34(standardise: Standardise) -> PreActivationResNet:
    """Return the deeper network, for ablations."""
    return PreActivationResNet(standardise, blocks=(3, 4, 6, 3))


def _conv3x3(channels_in: int, channels_out: int, *, stride: int) -> nn.Conv2d:
    if stride == 1:
        return Convolution3x3(channels_in, channels_out)
    return nn.Conv2d(channels_in, channels_out, 3, stride=stride, padding=1, bias=False)
