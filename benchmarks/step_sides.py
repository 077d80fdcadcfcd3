"""The versions that `benchmarks.step` times, all on one problem.

`Sides` holds the plain reference and our step. `seconds_of_products` times their limit: the
convolutions and matrix products alone. `compiled_backbone` times `torch.compile`.
"""

import os
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from benchmarks.step_reference import PlainNcPU, plain_scores, plain_views
from onesided.core.batch import DataFacts, Mixed, Outputs, PUBatch
from onesided.core.clock import Clock
from onesided.core.labels import NEGATIVE
from onesided.core.rng import generator
from onesided.data.loader import Loader
from onesided.data.problem.dataset import PUDataset, Selection
from onesided.engine.optimise import build_optimizer, descend
from onesided.engine.predict import Predictor, arrange
from onesided.engine.train_config import TrainConfig, choose_precision
from onesided.methods.ncpu import NcPU, NcPUConfig
from onesided.nets.build import BackboneConfig, build_backbone, seeded
from onesided.nets.small import Whitening

CPU = torch.device("cpu")
FORMATS = (torch.contiguous_format, torch.channels_last)
EPOCH = 40
"""After the warm-up, when every term of the loss is computed."""
STEPS = 10**6
"""An epoch without an end; each pass over the images is shuffled again."""

DIRECT = patch.dict(os.environ, {"ONESIDED_CONVOLUTIONS": "direct"})
"""Within it, every convolution is torch's own."""


@dataclass(frozen=True)
class Problem:
    """Images to train on, images to score, and an untrained method.

    Attributes:
        data: As many rows as a batch holds; some are labelled.
        scored: uint8 images (N, C, H, W).
        method: NcPU with the paper's settings.
        train: How it is optimised.
    """

    data: PUDataset
    scored: np.ndarray
    method: NcPU
    train: TrainConfig

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """(C, H, W) of an image."""
        return self.data.values.sample_shape

    @classmethod
    def drawn(
        cls,
        network: str,
        *,
        batch: int,
        scored: int,
        side: int = 32,
        width: float = 1.0,
        config: NcPUConfig | None = None,
    ) -> "Problem":
        """Return a problem of random images, the same at every call."""
        chance = np.random.default_rng(0)
        shape = (3, side, side)
        pixels = chance.integers(0, 256, size=(batch, *shape), dtype=np.uint8)
        labelled = np.arange(batch) < max(1, batch // 41)
        truth = np.full(batch, NEGATIVE, dtype=np.int64)
        names = tuple(map(str, range(batch)))
        data = PUDataset(Selection(pixels, np.arange(batch)), labelled, truth, names)
        settings = BackboneConfig.from_settings({"name": network, "width": width})
        backbone = build_backbone(settings, shape, [0.5] * 3, [0.25] * 3, generator(0, "net"))
        with seeded(0, "method"):
            facts = DataFacts(batch, int(labelled.sum()), shape, batch_size=batch)
            method = (config or NcPUConfig()).build(facts, backbone)
        images = chance.integers(0, 256, size=(scored, *shape), dtype=np.uint8)
        train = TrainConfig(batch_size=batch, device="cpu")
        return cls(data, images, method, train)


@dataclass(frozen=True)
class Product:
    """One call of a convolution, or of a linear layer as a 1x1 convolution of one pixel.

    Attributes:
        shape: (B, C, H, W) of the input.
        kernel: (out, in, rows, columns).
        stride: Of the convolution.
        padding: Of the convolution.
        learns: Whether the gradient of the kernel is computed.
        passes_on: Whether the gradient of the input is computed; a first layer needs none.
    """

    shape: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    learns: bool
    passes_on: bool

    def flop(self) -> float:
        """Return the number of its multiplications and additions."""
        batch, _, height, width = self.shape
        out, channels, rows, columns = self.kernel
        down = (height + 2 * self.padding[0] - rows) // self.stride[0] + 1
        across = (width + 2 * self.padding[1] - columns) // self.stride[1] + 1
        passes = 1 + self.learns + self.passes_on
        return 2.0 * batch * down * across * out * channels * rows * columns * passes

    def work(
        self, precision: torch.dtype, memory_format: torch.memory_format
    ) -> Callable[[], object]:
        """Return the call as a function, with tensors in this memory format."""
        random = torch.Generator().manual_seed(0)
        inputs = torch.randn(self.shape, generator=random).to(precision)
        kernel = torch.randn(self.kernel, generator=random).to(precision)
        inputs = inputs.contiguous(memory_format=memory_format)
        kernel = kernel.contiguous(memory_format=memory_format)

        def forward() -> Tensor:
            if self.kernel[2:] == self.shape[2:] == (1, 1):
                return inputs.flatten(1) @ kernel.flatten(1).T
            return torch.conv2d(inputs, kernel, None, self.stride, self.padding)

        gradient = torch.ones_like(forward())

        def both() -> None:
            forward()
            if self.kernel[2:] == self.shape[2:] == (1, 1):
                gradient.T @ inputs.flatten(1)
                if self.passes_on:
                    gradient @ kernel.flatten(1)
                return
            asked = [self.passes_on, self.learns, False]
            ways = (self.stride, self.padding, (1, 1), False, (0, 0), 1, asked)
            torch.ops.aten.convolution_backward(gradient, inputs, kernel, None, *ways)

        return both if self.learns or self.passes_on else forward


class Sides:
    """The reference and ours, each ready to run any part of a step."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.method = problem, problem.method
        self.precision = choose_precision(problem.train.precision, CPU)
        self.reference = PlainNcPU(problem.method, problem.train)
        self.images = _as_images(problem.data.values.take(slice(None)))
        self.scored = _as_images(problem.scored)
        self.labelled = torch.from_numpy(problem.data.labelled)
        self.rows = torch.arange(len(self.labelled))
        self.chance = random.Random(0)

        arrange(self.method, problem.sample_shape, CPU)
        self.method.train()
        loader = Loader(problem.data, "photograph", problem.train.batch_size, CPU)
        clock = Clock(0, "train", EPOCH, problem.train.epochs, 0, STEPS)
        self.batches = loader.epoch(clock, self.method.views, Mixed())
        self.optimizer = build_optimizer(self.method, problem.train)
        self.predictor = Predictor(self.method, CPU)

    def reference_step(self) -> None:
        """Make views, run the networks, compute loss and gradients, update: plainly."""
        self.reference.step(self.reference_views(), self.rows, self.labelled, EPOCH)

    def our_step(self) -> None:
        """The same, as the engine's loop does it."""
        now, batch = next(self.batches)
        losses = self.method.loss(self._outputs(batch, now).in_full_precision(), batch, now)
        descend(losses, self.optimizer, self.problem.train.clip)

    def direct_step(self) -> None:
        """Our step with torch's own convolutions."""
        with DIRECT:
            self.our_step()

    def reference_views(self) -> dict[str, Tensor]:
        """Return the three views of a batch, image by image."""
        return plain_views(self.images, self.chance)

    def our_views(self) -> Mapping[str, Tensor]:
        """Return the three views of a batch."""
        return next(self.batches)[1].views

    def reference_loss(self) -> None:
        """Compute the loss and its gradients for logits and queries, plainly."""
        logits, query, key = _drawn_outputs(len(self.rows))
        self.reference.loss(logits, query, key, self.rows, self.labelled, EPOCH).backward()  # type: ignore[no-untyped-call]

    def our_loss(self) -> None:
        """Compute the same with our method."""
        logits, query, key = _drawn_outputs(len(self.rows))
        outputs = Outputs({"logits": logits, "query": query, "key": key})
        clock = Clock(0, "train", EPOCH, self.problem.train.epochs, 0, STEPS)
        batch = PUBatch(self.rows, self.labelled)
        self.method.loss(outputs, batch, clock).total.backward()  # type: ignore[no-untyped-call]

    def reference_scores(self) -> list[float]:
        """Return scores of the images, one by one."""
        self.reference.backbone.eval()
        scores = plain_scores(self.scored, self.reference.backbone, self.reference.classifier)
        self.reference.backbone.train()
        return scores

    def our_scores(self) -> np.ndarray:
        """Return scores of the images, as `onesided rank` computes them."""
        return self.predictor.scores(self.problem.scored)

    def direct_scores(self) -> np.ndarray:
        """Return our scores with torch's own convolutions."""
        with DIRECT:
            return self.our_scores()

    def products_of_a_step(self) -> list[Product]:
        """Return the convolutions and matrix products of the networks in one step."""
        now, batch = next(self.batches)
        with recorded_products(self.method) as products:
            self._outputs(batch, now)
        return products

    def products_of_scoring(self) -> list[Product]:
        """Return those of scoring all images."""
        with recorded_products(self.method) as products:
            self.our_scores()
        return products

    def _outputs(self, batch: PUBatch, now: Clock) -> Outputs:
        half = self.precision == torch.bfloat16
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            outputs: Outputs = self.method(batch, now)
        return outputs


def compiled_backbone(problem: Problem, *, repeats: int) -> dict[str, Any]:
    """Return whether `torch.compile` pays off: median seconds without and with it.

    The compiler cannot see numba's loops, so the compiled backbone has torch's convolutions. The
    same backbone is timed without compiling too, or the two effects would be mixed. Where there
    is no compiler, the reason is returned instead. `Sides(problem)` must have been made before.
    """
    backbone = problem.method.backbone
    images = torch.from_numpy(problem.data.values.take(slice(None))).float().div_(255)
    compiled = torch.compile(backbone)

    def forward_and_backward(network: Callable[[Tensor], Tensor]) -> None:
        backbone.zero_grad()
        network(images).sum().backward()  # type: ignore[no-untyped-call]

    def directly() -> None:
        with DIRECT:
            forward_and_backward(backbone)

    forward_and_backward(backbone)
    began = time.perf_counter()
    try:
        forward_and_backward(compiled)
    except RuntimeError as error:  # raised by torch if there is no compiler
        return {"failed": str(error).splitlines()[0]}
    warm_up = time.perf_counter() - began
    parts = {
        "eager": lambda: forward_and_backward(backbone),
        "direct": directly,
        "compiled": lambda: forward_and_backward(compiled),
    }
    return {**in_turns(parts, repeats), "warm_up": warm_up}


@contextmanager
def recorded_products(*modules: nn.Module) -> Iterator[list[Product]]:
    """Record every convolution and linear layer that runs in these modules."""
    products: list[Product] = []

    def record(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        products.append(_product_of(layer, inputs[0]))

    layers = [
        layer
        for module in modules
        for layer in module.modules()
        if isinstance(layer, nn.Conv2d | nn.Linear | Whitening)
    ]
    hooks = [layer.register_forward_hook(record) for layer in layers]
    try:
        yield products
    finally:
        for hook in hooks:
            hook.remove()


def _product_of(layer: nn.Module, seen: Tensor) -> Product:
    if isinstance(layer, Whitening):
        # Its filters are computed, not trained, and its input is the image: no gradients.
        # Outputs of the negative filters are negated outputs of the others: no product.
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
    """Return the sum of the products' times, each in its faster memory format."""
    total = 0.0
    with torch.no_grad():
        for product, count in Counter(products).items():
            times = (in_turns({"": product.work(precision, form)}, repeats)[""] for form in FORMATS)
            total += count * min(times)
    return total


def _padding(layer: nn.Conv2d) -> tuple[int, ...]:
    assert not isinstance(layer.padding, str)
    return tuple(layer.padding)


def in_turns(parts: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the median seconds of each part; they take turns, so a slow moment slows all."""
    taken: dict[str, list[float]] = {name: [] for name in parts}
    # One call more than asked for: the first prepares kernels and memory.
    for _ in range(repeats + 1):
        for name, part in parts.items():
            began = time.perf_counter()
            part()
            taken[name].append(time.perf_counter() - began)
    return {name: statistics.median(seconds[1:]) for name, seconds in taken.items()}


def _drawn_outputs(count: int) -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(1)
    logits = torch.randn(count, 2, generator=random)
    query, key = torch.nn.functional.normalize(
        torch.randn(2, count, 128, generator=random).add_(0.3), dim=2
    )
    return logits.requires_grad_(), query.requires_grad_(), key


def _as_images(pixels: np.ndarray) -> list[Image.Image]:
    return [Image.fromarray(np.ascontiguousarray(one.transpose(1, 2, 0))) for one in pixels]
