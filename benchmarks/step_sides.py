"""The sides that `benchmarks.step` compares, with one problem before all of them."""

import os
import random
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from benchmarks.step_limit import Product, noting_products
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

CPU = torch.device("cpu")
EPOCH = 40
"""After the warm-up, when all of the mathematics is at work."""
STEPS = 10**6
"""An epoch that never ends; each pass over the pictures is shuffled anew."""

DIRECT = patch.dict(os.environ, {"ONESIDED_CONVOLUTIONS": "direct"})
"""While it lasts, no convolution is computed with fewer products than torch takes."""


@dataclass(frozen=True)
class Problem:
    """Pictures to learn from, pictures to score, and an untrained method.

    Attributes:
        data: One batch's worth of rows; some are labelled.
        scored: uint8 pictures (N, C, H, W).
        method: NcPU with the paper's settings.
        train: How it is optimised.
    """

    data: PUDataset
    scored: np.ndarray
    method: NcPU
    train: TrainConfig

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """(C, H, W) of a picture."""
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
        """Return a problem of noise, the same at every call."""
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
        pictures = chance.integers(0, 256, size=(scored, *shape), dtype=np.uint8)
        train = TrainConfig(batch_size=batch, device="cpu")
        return cls(data, pictures, method, train)


class Sides:
    """The reference and ours, each ready to take any part of a step."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.method = problem, problem.method
        self.precision = choose_precision(problem.train.precision, CPU)
        self.reference = PlainNcPU(problem.method, problem.train)
        self.pictures = _as_pictures(problem.data.values.take(slice(None)))
        self.scored = _as_pictures(problem.scored)
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
        """Views, networks, loss, gradients, descent: plainly."""
        self.reference.step(self.reference_views(), self.rows, self.labelled, EPOCH)

    def our_step(self) -> None:
        """Views, networks, loss, gradients, descent: as the engine's loop does it."""
        now, batch = next(self.batches)
        losses = self.method.loss(self._outputs(batch, now).in_full_precision(), batch, now)
        descend(losses, self.optimizer, self.problem.train.clip)

    def direct_step(self) -> None:
        """Our step with torch's own convolutions."""
        with DIRECT:
            self.our_step()

    def reference_views(self) -> dict[str, Tensor]:
        """Return the three views of a batch, picture by picture."""
        return plain_views(self.pictures, self.chance)

    def our_views(self) -> Mapping[str, Tensor]:
        """Return the three views of a batch, and all else that a batch holds."""
        return next(self.batches)[1].views

    def reference_loss(self) -> None:
        """Loss and its gradients by logits and queries, plainly."""
        logits, query, key = _drawn_outputs(len(self.rows))
        self.reference.loss(logits, query, key, self.rows, self.labelled, EPOCH).backward()  # type: ignore[no-untyped-call]

    def our_loss(self) -> None:
        """Loss and its gradients by logits and queries, here."""
        logits, query, key = _drawn_outputs(len(self.rows))
        outputs = Outputs({"logits": logits, "query": query, "key": key})
        clock = Clock(0, "train", EPOCH, self.problem.train.epochs, 0, STEPS)
        batch = PUBatch(self.rows, self.labelled)
        self.method.loss(outputs, batch, clock).total.backward()  # type: ignore[no-untyped-call]

    def reference_scores(self) -> list[float]:
        """Return scores of the pictures, one by one."""
        self.reference.backbone.eval()
        scores = plain_scores(self.scored, self.reference.backbone, self.reference.classifier)
        self.reference.backbone.train()
        return scores

    def our_scores(self) -> np.ndarray:
        """Return scores of the pictures, as `onesided rank` asks for them."""
        return self.predictor.scores(self.problem.scored)

    def direct_scores(self) -> np.ndarray:
        """Return our scores with torch's own convolutions."""
        with DIRECT:
            return self.our_scores()

    def products_of_a_step(self) -> list[Product]:
        """Return the convolutions and matrix products of the networks in one step."""
        now, batch = next(self.batches)
        with noting_products(self.method) as products:
            self._outputs(batch, now)
        return products

    def products_of_scoring(self) -> list[Product]:
        """Return those of scoring all pictures."""
        with noting_products(self.method) as products:
            self.our_scores()
        return products

    def _outputs(self, batch: PUBatch, now: Clock) -> Outputs:
        half = self.precision == torch.bfloat16
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            outputs: Outputs = self.method(batch, now)
        return outputs


def in_turns(parts: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the median seconds of each part; they take turns, so that a slow moment hits all."""
    taken: dict[str, list[float]] = {name: [] for name in parts}
    # Once more than asked for: the first call prepares kernels and memory.
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


def _as_pictures(pixels: np.ndarray) -> list[Image.Image]:
    return [Image.fromarray(np.ascontiguousarray(one.transpose(1, 2, 0))) for one in pixels]
