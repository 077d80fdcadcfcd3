"""3x3 convolutions with a quarter of the products, for CPUs in single precision.

Torch's convolutions for CPUs sum over the nine entries of a kernel. Winograd's form needs a quarter
of the products and some sums before and after them (`kernels/winograd.py`). It is faster where
channels are many; `benchmarks/step.py` compares it with torch's own. The results agree up to the
noise of single precision. It needs more memory than torch's layer: `TILES` tiles per thread (at
least one image), and four times the kernel between forward and backward pass.

`ONESIDED_CONVOLUTIONS=direct` in the environment leaves every convolution to torch. Second-order
gradients and the transforms of `torch.func` need that.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

FEWEST_CHANNELS = 48
"""In and out: with fewer, the matrices are too small to pay for the sums around them."""
LEAST_WORK = 10**6
"""Products per image that a layer must have: with fewer, there is too little to save."""
FEWEST_TILES = 128
"""In the whole batch: with fewer, preparing the kernel costs more than is saved."""
TILES = 256
"""Tiles that a thread works on at once, so that intermediate results stay in its cache."""

Maps = Float[Tensor, "b c h w"]
Kernel = Float[Tensor, "out c 3 3"]

_G = torch.tensor(
    [[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]],
    dtype=torch.float32,
    device="cpu",
).div(24)
_G_BOTH_WAYS = torch.kron(_G, _G)
"""G g G' of a kernel g whose nine entries are a vector."""


class Convolution3x3(nn.Conv2d):
    """A 3x3 convolution at stride 1 that keeps the size of its maps."""

    def __init__(self, channels_in: int, channels_out: int, *, bias: bool = False) -> None:
        super().__init__(channels_in, channels_out, 3, padding=1, bias=bias)

    def forward(self, maps: Maps) -> Float[Tensor, "b out h w"]:
        """Return the convolved maps, by the faster form."""
        if not winograd_pays(maps, self.weight):
            return super().forward(maps)
        convolved: Tensor = winograd(maps, self.weight)
        return convolved if self.bias is None else convolved + self.bias[:, None, None]


def winograd_pays(maps: Maps, kernel: Kernel) -> bool:
    """Return whether Winograd's form is the faster one.

    By shapes, never by timing: a resumed run must sum in the same order. Half precision has
    CPU instructions of its own. During compilation, and in subclasses of tensors, there are no
    numbers for numba's loops.
    """
    channels_out, channels_in = kernel.shape[:2]
    count, _, height, width = maps.shape
    return (
        type(maps) is Tensor  # first: sizes of what is traced are no numbers
        and min(channels_in, channels_out) >= FEWEST_CHANNELS
        and 9 * channels_in * channels_out * height * width >= LEAST_WORK
        and count * _tiles(height, width) >= FEWEST_TILES
        and maps.device.type == "cpu"
        and maps.dtype == kernel.dtype == torch.float32
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()
        and os.environ.get("ONESIDED_CONVOLUTIONS") != "direct"
    )


def winograd(maps: Maps, kernel: Kernel) -> Float[Tensor, "b out h w"]:
    """Return the convolution of maps, padded by one zero, with a 3x3 kernel."""
    convolved: Tensor = _Winograd.apply(maps, kernel)  # type: ignore[no-untyped-call]
    return convolved


class _Winograd(torch.autograd.Function):
    """Forward and backward, some images at a time; all maps with channels last."""

    @staticmethod
    def forward(ctx: Any, maps: Tensor, kernel: Tensor) -> Tensor:  # noqa: ANN401 - torch's own
        images, factors = _channels_last(maps), _factors(kernel)
        count, height, width, channels = images.shape
        # Not a view: callers may change the result in place.
        shape = (count, len(kernel), height, width)
        result = torch.empty(shape, dtype=maps.dtype, memory_format=torch.channels_last).zero_()
        pixels = result.permute(0, 2, 3, 1)
        with _loops() as loops:
            for some in _shares(count, _tiles(height, width)):
                inputs, outputs = _domains(images[some], channels, len(kernel))
                loops.to_domain(images[some], inputs)
                torch.bmm(inputs.transpose(0, 1), factors.mT, out=outputs.transpose(0, 1))
                loops.from_domain(outputs, pixels[some])
        ctx.save_for_backward(images, factors)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:  # noqa: ANN401
        images, factors = ctx.saved_tensors
        _, out, channels = factors.shape
        gradients = _channels_last(gradient)
        count, height, width, _ = images.shape
        by_images = torch.zeros_like(images) if ctx.needs_input_grad[0] else None
        by_factors = factors.new_zeros(36, out, channels) if ctx.needs_input_grad[1] else None
        with _loops() as loops:
            for some in _shares(count, _tiles(height, width)):
                inputs, outputs = _domains(images[some], channels, out)
                loops.from_domain_backward(gradients[some], outputs)
                if by_factors is not None:
                    loops.to_domain(images[some], inputs)
                    by_factors.baddbmm_(outputs.permute(1, 2, 0), inputs.transpose(0, 1))
                if by_images is not None:
                    torch.bmm(outputs.transpose(0, 1), factors, out=inputs.transpose(0, 1))
                    loops.to_domain_backward(inputs, by_images[some])
        return (
            None if by_images is None else by_images.permute(0, 3, 1, 2),
            None if by_factors is None else _by_kernel(by_factors),
        )


_using_threads = threading.Lock()
"""Held while the loops run on several threads. They use all threads anyway, and one threading
layer of numba (`workqueue`, where it finds no OpenMP) ends the process at a second caller."""


@contextmanager
def _loops() -> Iterator["_Loops"]:
    """Give the compiled loops as many threads as torch has; then restore numba's number."""
    # Imported when first needed: numba takes a second, and not every network is wide.
    from onesided.kernels import winograd as kernels

    threads = torch.get_num_threads()
    if threads == 1:
        # Without numba's threads, which do not survive a fork.
        yield _Loops(kernels, kernels.spread_alone, kernels.gather_alone)
        return
    import numba

    most: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]  # set at run time
    parts = min(threads, most)
    with _using_threads:
        before = numba.get_num_threads()
        if torch.get_num_threads() != threads:
            # Where both use one threading library, numba sets it to all cores at its first start.
            torch.set_num_threads(threads)
        numba.set_num_threads(parts)
        try:
            yield _Loops(kernels, partial(kernels.spread, parts), partial(kernels.gather, parts))
        finally:
            numba.set_num_threads(before)


@dataclass(frozen=True)
class _Loops:
    """The compiled loops, on tensors."""

    kernels: ModuleType
    spread: Callable[..., None]
    gather: Callable[..., None]

    def to_domain(self, images: Tensor, domain: Tensor) -> None:
        """Write B' d B of the images' tiles d, which begin one pixel earlier for the padding."""
        self.spread(self.kernels.B_TRANSPOSED, images.numpy(), 1, domain.numpy())

    def from_domain(self, domain: Tensor, images: Tensor) -> None:
        """Add A' m A of the domain's tiles m."""
        self.gather(self.kernels.A_TRANSPOSED, domain.numpy(), 0, images.numpy())

    def from_domain_backward(self, gradients: Tensor, domain: Tensor) -> None:
        """Write the gradient A s A' of `from_domain`."""
        self.spread(self.kernels.A, gradients.numpy(), 0, domain.numpy())

    def to_domain_backward(self, domain: Tensor, gradients: Tensor) -> None:
        """Add the gradient B s B' of `to_domain`."""
        self.gather(self.kernels.B, domain.numpy(), 1, gradients.numpy())


def _channels_last(maps: Maps) -> Float[Tensor, "b h w c"]:
    return maps.detach().permute(0, 2, 3, 1).contiguous()


def _factors(kernel: Kernel) -> Float[Tensor, "36 out c"]:
    """Return G g G' of every pair of channels; with channels last, nothing is copied."""
    entries = kernel.detach().permute(0, 2, 3, 1).flatten(1, 2)
    return (_G_BOTH_WAYS @ entries).transpose(0, 1)


def _by_kernel(by_factors: Float[Tensor, "36 out c"]) -> Kernel:
    """Return the gradient by a kernel from that by its factors."""
    _, out, channels = by_factors.shape
    entries = (_G_BOTH_WAYS.T @ by_factors.flatten(1)).view(3, 3, out, channels)
    return entries.permute(2, 3, 0, 1)


def _tiles(height: int, width: int) -> int:
    return -(-height // 4) * -(-width // 4)


def _shares(count: int, tiles: int) -> list[slice]:
    """Return the images in shares of `TILES` tiles per thread."""
    images = max(1, torch.get_num_threads() * TILES // tiles)
    return [slice(start, min(start + images, count)) for start in range(0, count, images)]


_kept = threading.local()


def _domains(
    images: Float[Tensor, "b h w c"], channels_in: int, channels_out: int
) -> tuple[Float[Tensor, "t 36 c"], Float[Tensor, "t 36 out"]]:
    """Return memory for both domains of some images; each thread keeps it for the next call.

    The system gives new memory of this size page by page, which took as long as the sums that
    fill it.
    """
    tiles = len(images) * _tiles(*images.shape[1:3])
    size_in, size_out = (36 * tiles * channels for channels in (channels_in, channels_out))
    memory: Tensor | None = getattr(_kept, "memory", None)
    if memory is None or len(memory) < size_in + size_out:
        # The memory is used again in later calls, so it must not depend on this call's mode.
        with torch.inference_mode(mode=False):
            memory = torch.empty(size_in + size_out, dtype=torch.float32, device="cpu")
        _kept.memory = memory
    inputs, outputs = memory[:size_in], memory[size_in : size_in + size_out]
    return inputs.view(tiles, 36, channels_in), outputs.view(tiles, 36, channels_out)
