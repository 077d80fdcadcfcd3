"""Inverted bottlenecks for inference on a CPU: the same features, several times as fast.

What is different from training, and why (`benchmarks/embedding.py` measures it):

- BatchNorm is folded into the convolutions: evaluated, it is one more factor and one more bias.
- With stride two on an even side TensorFlow pads one zero more after than before. The kernel gets
  a row (a column) of zeros in front instead, which needs no copy of the maps.
- The first blocks take few images at a time, so that their large maps stay in the processor's
  cache; the later ones, which have large kernels and small maps, take all images of a batch.
- Convolution and ReLU6 are one call, where torch was built with oneDNN.

The weights of the network stay as they are: files hold those, never the folded ones.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.fusion import fuse_conv_bn_eval

SHALLOW = 5
"""Blocks that take few images at a time: those before maps are an eighth of the image's side."""
PIXELS = 2 * 96 * 96
"""Pixels that the first blocks take at a time, or one image: about a megabyte of maps."""
DEEP = 16
"""How many times as many images the later blocks take at a time."""
FEWEST = 4
"""Images that the later blocks take at least, so that reading their kernels pays."""

Maps = Float[Tensor, "b c h w"]
NextMaps = Float[Tensor, "b out rows columns"]


def few_images(size: tuple[int, int]) -> int:
    """Return how many images of this working size the first blocks take at a time."""
    return max(1, PIXELS // (size[0] * size[1]))


def batch_of(size: tuple[int, int]) -> int:
    """Return how many images of this working size are a batch."""
    return max(FEWEST, DEEP * PIXELS // (size[0] * size[1]))


def has_fused_convolutions() -> bool:
    """Return whether this build of torch has oneDNN's convolutions with an activation."""
    return torch.backends.mkldnn.is_available() and hasattr(
        torch.ops.mkldnn, "_convolution_pointwise"
    )


class FoldedConvolution:
    """Convolution, BatchNorm and perhaps ReLU6 as one, for maps of one size.

    Args:
        layers: Convolution, BatchNorm, and ReLU6 if it is rectified.
        size: Height and width of the maps.
        images: How many there are at a time, most often.
    """

    def __init__(self, layers: nn.Module, size: tuple[int, int], images: int) -> None:
        assert isinstance(layers, nn.Sequential)
        convolution, norm = layers[0], layers[1]
        assert isinstance(convolution, nn.Conv2d)
        assert isinstance(norm, nn.BatchNorm2d)
        folded = fuse_conv_bn_eval(convolution, norm)
        kernel, bias = folded.weight.detach(), folded.bias
        assert bias is not None
        self.stride, self.groups = list(convolution.stride), convolution.groups
        self.padding = [side // 2 for side in convolution.kernel_size]
        sides = zip(convolution.kernel_size, self.stride, size, strict=True)
        down, across = (
            int(length > 1 and step == 2 and side % 2 == 0) for length, step, side in sides
        )
        shape = [images, convolution.in_channels, *size]
        self.outputs = (-(-size[0] // self.stride[0]), -(-size[1] // self.stride[1]))
        self.bias = bias.detach()
        kernel = F.pad(kernel, (across, 0, down, 0)).contiguous(memory_format=torch.channels_last)
        self._convolve = self._fused if has_fused_convolutions() else self._plain
        if has_fused_convolutions():
            reorder = torch.ops.mkldnn._reorder_convolution_weight
            kernel = reorder(kernel, self.padding, self.stride, [1, 1], self.groups, shape)
        self.kernel: Tensor = kernel
        self.is_rectified = len(layers) == 3

    def __call__(self, maps: Maps) -> NextMaps:
        """Return the maps of the next layer."""
        return self._convolve(maps)

    def _fused(self, maps: Maps) -> NextMaps:
        activation = ("hardtanh", [0.0, 6.0], "") if self.is_rectified else ("none", [], "")
        where = (self.padding, self.stride, [1, 1], self.groups)
        convolve = torch.ops.mkldnn._convolution_pointwise
        convolved: Tensor = convolve(maps, self.kernel, self.bias, *where, *activation)
        return convolved

    def _plain(self, maps: Maps) -> NextMaps:
        where = (self.stride, self.padding, [1, 1], self.groups)
        convolved = torch.conv2d(maps, self.kernel, self.bias, *where)
        return convolved.clamp_(0, 6) if self.is_rectified else convolved
