"""EfficientNet-Lite0, a network with weights pretrained on ImageNet, for images of any size.

Mobile inverted bottlenecks (Sandler et al., CVPR 2018) in the arrangement that Tan and Le
(EfficientNet, ICML 2019) found; "Lite" leaves out squeeze-and-excitation and takes ReLU6,
both for small devices. Convolutions are padded as in TensorFlow, where the weights were
trained: with stride two the odd zero goes to the right and to the bottom.

Differs: no dropout and no stochastic depth, which draw from the global generator.
"""

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from onesided.nets.folded import SHALLOW, FoldedConvolution, Maps, NextMaps, batch_of, few_images
from onesided.nets.standardise import (
    Backbone,
    Inference,
    Standardise,
    global_average,
    reset_layers,
)

STEM, FEATURES = 32, 1280
# Repeats, kernel, stride of the first, expansion, channels (Table 1 of the EfficientNet paper).
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
# The inputs of its training: (pixel - 127) / 128, here in the 0-1 scale of the views.
MEAN, STD = 127 / 255, 128 / 255
SMALLEST, LARGEST = 96, 224
BLOCKS = sum(repeats for repeats, *_ in STAGES)
Layers = Literal["last", "several"]
MIDDLE = (3, 4, 5)
"""Stages whose maps are features too with layers "several". The last layer knows the objects of
ImageNet; these know texture, edges and parts. benchmarks/layers.py measures what they add. Mean and
deviation: how much of it there is, and how unevenly."""
TUNED_PACE = 0.1
"""Factor of the learning rate of pretrained blocks: a new head needs large steps, they do not."""

PARTS = {
    "_conv_stem": "stem.0",
    "_bn0": "stem.1",
    "_conv_head": "head.0",
    "_bn1": "head.1",
    "_expand_conv": "expand.0",
    "_depthwise_conv": "depthwise.0",
    "_project_conv": "project.0",
}
NORMS_IN_BLOCKS = {"_bn0": "expand.1", "_bn1": "depthwise.1", "_bn2": "project.1"}


class SameConvolution(nn.Conv2d):
    """A convolution with ceil(size / stride) outputs, padded as TensorFlow's SAME."""

    def forward(self, maps: Float[Tensor, "b c h w"]) -> Float[Tensor, "b out rows columns"]:
        """Return the convolution of the maps with just enough zeros around them."""
        down, across = (
            same_padding(int(size), kernel, stride)  # an export traces sizes as tensors
            for size, kernel, stride in zip(
                maps.shape[2:], self.kernel_size, self.stride, strict=True
            )
        )
        return super().forward(F.pad(maps, (*across, *down)))


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Return how many zeros go before and after one side; an odd one goes after."""
    total = max((math.ceil(size / stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


class InvertedBottleneck(nn.Module):
    """Widen, convolve each channel, narrow; with a shortcut where the shape allows."""

    def __init__(
        self, channels_in: int, channels_out: int, *, kernel: int, stride: int, expansion: int
    ) -> None:
        super().__init__()
        inside = channels_in * expansion
        self.expand: nn.Module = nn.Identity()
        if expansion > 1:
            self.expand = _rectified(channels_in, inside, kernel=1)
        self.depthwise = _rectified(inside, inside, kernel=kernel, stride=stride, groups=inside)
        self.project = _convolution(inside, channels_out, kernel=1)
        self.has_shortcut = stride == 1 and channels_in == channels_out

    def forward(self, maps: Float[Tensor, "b c h w"]) -> Float[Tensor, "b out rows columns"]:
        """Return the narrow maps, not rectified, so that no information is lost."""
        narrow: Tensor = self.project(self.depthwise(self.expand(maps)))
        return narrow + maps if self.has_shortcut else narrow


class EfficientNetLite0(Backbone):
    """Resize, stem, sixteen inverted bottlenecks, a last 1x1 convolution, global average.

    Args:
        size: Height and width to which images are resized first; see `working_size`.
        tuned: How many of the last blocks learn, with the last convolution, and slowly; all before
            them stays as it is, BatchNorm's statistics too. 0: everything learns.
        layers: Whose maps are averaged: the last one's, or also those of the stages `MIDDLE`.
    """

    def __init__(
        self,
        standardise: Standardise,
        *,
        size: tuple[int, int],
        tuned: int = 0,
        layers: Layers = "last",
    ) -> None:
        middle = middle_blocks() if layers == "several" else {}
        super().__init__(standardise, width=FEATURES + 2 * sum(middle.values()))
        self.size, self.tuned, self.seen = size, tuned, tuple(middle)
        self.stem = _rectified(standardise.channels, STEM, kernel=3, stride=2)
        blocks: list[nn.Module] = []
        channels = STEM
        for repeats, kernel, stride, expansion, width in STAGES:
            for number in range(repeats):
                step = stride if number == 0 else 1
                blocks.append(
                    InvertedBottleneck(
                        channels, width, kernel=kernel, stride=step, expansion=expansion
                    )
                )
                channels = width
        self.blocks = nn.Sequential(*blocks)
        self.head = _rectified(channels, FEATURES, kernel=1)
        self.reset_parameters()
        if tuned:
            self.pace = TUNED_PACE
            for part in self._fixed():
                part.requires_grad_(False)

    def train(self, mode: bool = True) -> "EfficientNetLite0":
        """Change the mode; parts that do not learn are always evaluated."""
        super().train(mode)
        for part in self._fixed():
            part.train(False)
        return self

    def _fixed(self) -> list[nn.Module]:
        """Return the parts that never change."""
        return [self.stem, *list(self.blocks)[: BLOCKS - self.tuned]] if self.tuned else []

    def features(self, samples: Float[Tensor, "b c h w"]) -> Float[Tensor, "b width"]:
        """Return the spatial mean of the last layer, each feature between 0 and 6.

        With several layers their means and deviations follow, from the first of them to the last.
        """
        # Channels last nearly doubles the speed of thin convolutions on CPUs.
        resized = resize(samples, self.size).contiguous(memory_format=torch.channels_last)
        return _pooled([*self.blocks, self.head], self.stem(resized), self.seen)

    def extra_repr(self) -> str:
        """Return what decides features and is no weight: the working size, several layers."""
        return f"size={self.size}{', layers=several' if self.seen else ''}"

    def inference(self) -> Inference:
        """Return the same features on a CPU, faster; elsewhere those of the network as it is."""
        if self.standardise.mean.device.type != "cpu":
            return super().inference()
        folded = FoldedEfficientNet(self)
        return Inference(folded, batch=folded.batch, in_threads=True)

    def reset_parameters(self) -> None:
        """Draw convolutions as normal by their outputs per group, as published."""

        def draw(layer: nn.Conv2d | nn.Linear) -> None:
            assert isinstance(layer, nn.Conv2d)
            outputs = layer.out_channels * math.prod(layer.kernel_size) // layer.groups
            nn.init.normal_(layer.weight, std=math.sqrt(2 / outputs))

        reset_layers(self, draw)


Layer = Callable[[Tensor], Tensor]


class FoldedBlock:
    """An inverted bottleneck whose layers are folded."""

    def __init__(self, layers: Sequence[FoldedConvolution], *, has_shortcut: bool) -> None:
        self.layers, self.has_shortcut = layers, has_shortcut

    def __call__(self, maps: Maps) -> NextMaps:
        """Return the narrow maps."""
        narrow = maps
        for layer in self.layers:
            narrow = layer(narrow)
        return narrow.add_(maps) if self.has_shortcut else narrow


class FoldedEfficientNet:
    """The features of a frozen EfficientNet-Lite0, as `EfficientNetLite0` computes them.

    Args:
        network: In evaluation mode; later changes of its weights are not seen.
    """

    def __init__(self, network: EfficientNetLite0) -> None:
        self.standardise, self.size = network.standardise, network.size
        few, many = self.few, self.batch = few_images(network.size), batch_of(network.size)
        stem = FoldedConvolution(network.stem, network.size, few)
        size, blocks = stem.outputs, []
        for number, block in enumerate(network.blocks):
            assert isinstance(block, InvertedBottleneck)
            parts = (block.expand, block.depthwise, block.project)
            layers = []
            for part in parts[isinstance(block.expand, nn.Identity) :]:
                layers.append(FoldedConvolution(part, size, few if number < SHALLOW else many))
                size = layers[-1].outputs
            blocks.append(FoldedBlock(layers, has_shortcut=block.has_shortcut))
        self.shallow: list[Layer] = [stem, *blocks[:SHALLOW]]
        self.deep: list[Layer] = [*blocks[SHALLOW:], FoldedConvolution(network.head, size, many)]
        self.seen = [number - SHALLOW for number in network.seen]

    def __call__(self, samples: Maps) -> Float[Tensor, "b width"]:
        """Return one feature vector per image in [0, 1]."""
        # First the memory format: resizing is faster with channels last.
        images = self.standardise(samples.contiguous(memory_format=torch.channels_last))
        resized = resize(images, self.size).contiguous(memory_format=torch.channels_last)
        maps = torch.cat([_through(self.shallow, few) for few in torch.split(resized, self.few)])
        return _pooled(self.deep, maps, self.seen)


def _through(layers: Sequence[Layer], maps: Maps) -> NextMaps:
    for layer in layers:
        maps = layer(maps)
    return maps


def middle_blocks() -> dict[int, int]:
    """Return the last block of each stage of `MIDDLE`, with its channels."""
    ends = accumulate(repeats for repeats, *_ in STAGES)
    last = {stage: end - 1 for stage, end in enumerate(ends)}
    return {last[stage]: STAGES[stage][-1] for stage in MIDDLE}


def _pooled(layers: Iterable[Layer], maps: Maps, seen: Container[int]) -> Float[Tensor, "b width"]:
    """Return the mean of what the layers make of the maps, and mean and deviation on the way."""
    on_the_way: list[Tensor] = []
    for number, layer in enumerate(layers):
        maps = layer(maps)
        if number in seen:
            mean = global_average(maps)
            spread = global_average((maps - mean[:, :, None, None]).square())
            on_the_way += [mean, spread.sqrt()]
    last = global_average(maps)
    return torch.cat([last, *on_the_way], dim=1) if on_the_way else last


def resize(
    images: Float[Tensor, "b c h w"], size: tuple[int, int]
) -> Float[Tensor, "b c rows columns"]:
    """Return the images at another size, bilinear; smoothed first where they shrink."""
    if tuple(images.shape[2:]) == size:
        return images
    # Smoothing changes nothing where both sides grow, and takes twice as long.
    shrinks = size[0] < images.shape[2] or size[1] < images.shape[3]
    return F.interpolate(images, size=size, mode="bilinear", antialias=shrinks)


def working_size(height: int, width: int, shorter: int = 0) -> tuple[int, int]:
    """Return the height and width to which images of this size are resized.

    The network was trained at 224 pixels and halves the image five times, so 32 pixels are too
    few for it; and its cost grows with the area. So small images are enlarged up to threefold,
    to 96 to 128 pixels; larger ones keep their size up to 224. `shorter` sets the length of the
    shorter side instead, unless it is 0.
    """
    side = min(height, width)
    chosen = shorter or min(max(side, min(3 * side, 128), SMALLEST), LARGEST)
    return round(height * chosen / side), round(width * chosen / side)


def from_published(tensors: Mapping[str, Tensor], channels: int) -> dict[str, Tensor]:
    """Return published weights under our names, with the preprocessing they were trained for.

    The layer of 1000 ImageNet classes is left out. Unknown names stay; `set_initial_weights`
    refuses them.
    """
    state = {our_name(name): value for name, value in tensors.items() if name[:4] != "_fc."}
    if "stem.0.weight" in state:
        state["stem.0.weight"] = stem_for_channels(state["stem.0.weight"], channels)
    state["standardise.mean"] = torch.full((channels,), MEAN)
    state["standardise.std"] = torch.full((channels,), STD)
    return state


def our_name(published: str) -> str:
    """Return our name of a tensor, for example blocks.3.expand.1.bias."""
    *path, layer, tensor = published.split(".")
    if path[:1] == ["_blocks"]:
        part = NORMS_IN_BLOCKS.get(layer) or PARTS.get(layer, layer)
        return ".".join(("blocks", *path[1:], part, tensor))
    return ".".join((*path, PARTS.get(layer, layer), tensor))


def stem_for_channels(
    weight: Float[Tensor, "out 3 k k"], channels: int
) -> Float[Tensor, "out channels k k"]:
    """Return the first convolution for another number of channels than red, green, blue.

    Stacked RGB images, such as before and after, share the weights equally: the same image
    twice gives the same output as once. Any other channels are taken as grey, each with its
    share of the sum over colours: one grey channel gives exactly what the same image in RGB
    gives.
    """
    if channels % 3 == 0:
        groups = channels // 3
        return weight.repeat(1, groups, 1, 1) / groups
    grey = weight.sum(dim=1, keepdim=True)
    return grey.repeat(1, channels, 1, 1) / channels


def channels_in_words(channels: int) -> str:
    """Return what a network for colour photographs does with this many channels; "" for three."""
    if channels == 3:
        return ""
    if channels % 3 == 0:
        return f", the mean of {channels // 3} stacked RGB images"
    return ", grey as three equal colours" if channels == 1 else f", {channels} channels as grey"


def _convolution(
    channels_in: int, channels_out: int, *, kernel: int, stride: int = 1, groups: int = 1
) -> nn.Sequential:
    # At stride 1 SAME is symmetric, and torch pads without a copy.
    layer, padding = (nn.Conv2d, kernel // 2) if stride == 1 else (SameConvolution, 0)
    convolution = layer(
        channels_in, channels_out, kernel, stride, padding, groups=groups, bias=False
    )
    # TensorFlow's epsilon; torch's default would change the pretrained features.
    return nn.Sequential(convolution, nn.BatchNorm2d(channels_out, eps=1e-3))


def _rectified(
    channels_in: int, channels_out: int, *, kernel: int, stride: int = 1, groups: int = 1
) -> nn.Sequential:
    layers = _convolution(channels_in, channels_out, kernel=kernel, stride=stride, groups=groups)
    return layers.append(nn.ReLU6(inplace=True))
