"""The limit of a step: its convolutions and matrix products, and nothing else."""

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from onesided.nets.small import Whitening

FORMATS = (torch.contiguous_format, torch.channels_last)


@dataclass(frozen=True)
class Product:
    """One call of a convolution, or of a linear layer seen as a 1x1 convolution of one place.

    Attributes:
        shape: (B, C, H, W) of what goes in.
        kernel: (out, in, rows, columns).
        stride: Of the convolution.
        padding: Of the convolution.
        learns: Whether gradients of the kernel are asked for.
        passes_on: Whether gradients of what goes in are asked for; not so in a first layer.
    """

    shape: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    learns: bool
    passes_on: bool

    def flop(self) -> float:
        """Return its multiplications and additions."""
        batch, _, height, width = self.shape
        out, channels, rows, columns = self.kernel
        down = (height + 2 * self.padding[0] - rows) // self.stride[0] + 1
        across = (width + 2 * self.padding[1] - columns) // self.stride[1] + 1
        passes = 1 + self.learns + self.passes_on
        return 2.0 * batch * down * across * out * channels * rows * columns * passes

    def work(self, precision: torch.dtype, memory_format: torch.memory_format) -> "Work":
        """Return the call as a function, its tensors ready in this memory format."""
        random = torch.Generator().manual_seed(0)
        inputs = torch.randn(self.shape, generator=random).to(precision)
        kernel = torch.randn(self.kernel, generator=random).to(precision)
        inputs = inputs.contiguous(memory_format=memory_format)
        kernel = kernel.contiguous(memory_format=memory_format)

        def forward() -> Tensor:
            if self.kernel[2:] == self.shape[2:] == (1, 1):
                return inputs.flatten(1) @ kernel.flatten(1).T
            return torch.conv2d(inputs, kernel, None, self.stride, self.padding)

        slope = torch.ones_like(forward())

        def both() -> None:
            forward()
            if self.kernel[2:] == self.shape[2:] == (1, 1):
                slope.T @ inputs.flatten(1)
                if self.passes_on:
                    slope @ kernel.flatten(1)
                return
            asked = [self.passes_on, self.learns, False]
            ways = (self.stride, self.padding, (1, 1), False, (0, 0), 1, asked)
            torch.ops.aten.convolution_backward(slope, inputs, kernel, None, *ways)

        return both if self.learns or self.passes_on else forward


Work = Callable[[], object]


@contextmanager
def noting_products(*modules: nn.Module) -> Iterator[list[Product]]:
    """Note every convolution and linear layer that runs meanwhile in these modules."""
    products: list[Product] = []

    def note(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        products.append(_noted(layer, inputs[0]))

    layers = [
        layer
        for module in modules
        for layer in module.modules()
        if isinstance(layer, nn.Conv2d | nn.Linear | Whitening)
    ]
    hooks = [layer.register_forward_hook(note) for layer in layers]
    try:
        yield products
    finally:
        for hook in hooks:
            hook.remove()


def _noted(layer: nn.Module, seen: Tensor) -> Product:
    if isinstance(layer, Whitening):
        # Computed, not learned: no gradient goes to its filters, nor to the pictures before it.
        # The negative filters' answers are the negatives of the others', and no product.
        kernel = tuple(layer.filters.shape)
        return Product(tuple(seen.shape), kernel, (layer.stride,) * 2, (1, 1), False, False)
    weight = layer.get_parameter("weight")
    learns = torch.is_grad_enabled() and weight.requires_grad
    is_map = isinstance(layer, nn.Conv2d)
    return Product(
        shape=tuple(seen.shape) if is_map else (*seen.shape, 1, 1),
        kernel=tuple(weight.shape) if is_map else (*weight.shape, 1, 1),
        stride=tuple(layer.stride) if isinstance(layer, nn.Conv2d) else (1, 1),
        padding=_padding(layer) if isinstance(layer, nn.Conv2d) else (0, 0),
        learns=learns,
        passes_on=learns and seen.requires_grad,
    )


def seconds_of_products(
    products: Sequence[Product], precision: torch.dtype, *, repeats: int
) -> float:
    """Return the sum of the products' times, each in the format in which it is faster."""
    return sum(
        count * min(_seconds(product.work(precision, form), repeats) for form in FORMATS)
        for product, count in Counter(products).items()
    )


def _seconds(work: Work, repeats: int) -> float:
    taken = []
    # Once more than asked for: the first call prepares kernels and memory.
    for _ in range(repeats + 1):
        began = time.perf_counter()
        with torch.no_grad():
            work()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken[1:])


def _padding(layer: nn.Conv2d) -> tuple[int, ...]:
    assert not isinstance(layer.padding, str)
    return tuple(layer.padding)
