"""Two Gaussian clouds and a plain loop: does a method find the boundary, in seconds?

Positives N((2, 0), 1), negatives N((-2, 0), 1); 100 labelled positives, 1000 unlabelled
samples of which 400 are positive. No classifier is right more often than 97.78 %. A weak
view adds a tenth of a standard deviation of noise, a strong one three.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from onesided.core.batch import Augment, CleanBatch, DataFacts, PUBatch
from onesided.core.clock import Clock
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.engine.optimise import build_optimizer, descend
from onesided.engine.sweep import evaluating
from onesided.engine.train_config import TrainConfig
from onesided.methods.base import GradientMethod, MethodConfig
from onesided.nets.build import BackboneConfig, build_backbone, seeded

NOISE = {Augment.PLAIN: 0.0, Augment.WEAK: 0.1, Augment.STRONG: 0.3}
BATCH = 128


@dataclass(frozen=True)
class TwoClouds:
    """The problem of one seed; labelled rows come first."""

    points: Tensor
    labelled: Tensor
    clean: Tensor
    clean_truth: Tensor
    test: Tensor
    test_truth: Tensor


@dataclass(frozen=True)
class Learned:
    """How well a method does on 4000 new samples."""

    accuracy: float
    recall: float
    called_positive: float


def two_clouds(seed: int, labelled: int = 100) -> TwoClouds:
    draw = torch.Generator().manual_seed(seed)

    def cloud(positives: int, negatives: int) -> Tensor:
        points = torch.randn(positives + negatives, 2, generator=draw)
        points[:positives, 0] += 2
        points[positives:, 0] -= 2
        return points

    def truth(positives: int, negatives: int) -> Tensor:
        return torch.tensor([POSITIVE] * positives + [NEGATIVE] * negatives)

    return TwoClouds(
        points=torch.cat([cloud(labelled, 0), cloud(400, 600)]),
        labelled=torch.arange(labelled + 1000) < labelled,
        clean=cloud(25, 25),
        clean_truth=truth(25, 25),
        test=cloud(1600, 2400),
        test_truth=truth(1600, 2400),
    )


def learn(
    config: MethodConfig,
    *,
    seed: int = 0,
    epochs: int = 60,
    positives_per_batch: int | None = None,
    learning_rate: float = 0.02,
) -> Learned:
    """Train on one stream of P and U, or with so many positives in every batch."""
    data = two_clouds(seed)
    method = untrained(config, data, seed)
    train = TrainConfig(epochs=epochs, learning_rate=learning_rate)
    optimizer = build_optimizer(method, train)
    draw = torch.Generator().manual_seed(1000 + seed)
    for epoch in range(epochs):
        batches = list(_rows(data, positives_per_batch, draw))
        clock = Clock(seed, "train", epoch, epochs, 0, len(batches))
        method.begin_epoch(clock, _sweep_over(method, data))
        for group in optimizer.param_groups:
            group["lr"] = train.learning_rate_at(epoch, epochs)
        for step, rows in enumerate(batches):
            now = Clock(seed, "train", epoch, epochs, step, len(batches))
            batch = _batch(method, data, rows, draw)
            descend(method.loss(method(batch, now), batch, now), optimizer, train.clip)
    return _evaluated(method, data)


def untrained(config: MethodConfig, data: TwoClouds, seed: int) -> GradientMethod:
    facts = DataFacts(
        rows=len(data.points),
        labelled=int(data.labelled.sum()),
        sample_shape=(2,),
        batch_size=BATCH,
        seed=seed,
    )
    network = BackboneConfig(width=0.125, normalisation="none")
    with seeded(seed, "method"):
        backbone = build_backbone(
            network, (2,), [0, 0], [1, 1], torch.Generator().manual_seed(seed)
        )
        method = config.build(facts, backbone)
    assert isinstance(method, GradientMethod)
    return method


def _rows(data: TwoClouds, positives: int | None, draw: torch.Generator) -> Iterator[Tensor]:
    if positives is None:
        order = torch.randperm(len(data.points), generator=draw)
        for start in range(0, len(order) - BATCH + 1, BATCH):
            yield order[start : start + BATCH]
        return
    count = int(data.labelled.sum())
    unlabelled = count + torch.randperm(len(data.points) - count, generator=draw)
    share = BATCH - positives
    for start in range(0, len(unlabelled) - share + 1, share):
        known = torch.randperm(count, generator=draw)[:positives]
        both = torch.cat([known, unlabelled[start : start + share]])
        yield both[torch.randperm(BATCH, generator=draw)]


def _batch(method: GradientMethod, data: TwoClouds, rows: Tensor, draw: torch.Generator) -> PUBatch:
    clean = None
    if method.needs.clean:
        clean = CleanBatch(_views(method.views, data.clean, draw), data.clean_truth)
    return PUBatch(
        row=rows,
        labelled=data.labelled[rows],
        views=_views(method.views, data.points[rows], draw),
        clean=clean,
    )


def _views(
    views: Mapping[str, Augment], points: Tensor, draw: torch.Generator
) -> dict[str, Tensor]:
    return {
        role: points + NOISE[strength] * torch.randn(points.shape, generator=draw)
        for role, strength in views.items()
    }


def _sweep_over(method: GradientMethod, data: TwoClouds) -> Callable[..., tuple[Tensor, Tensor]]:
    def sweep(
        function: Callable[[Tensor], Tensor],
        *,
        view: Augment = Augment.PLAIN,
        of: str = "train",
    ) -> tuple[Tensor, Tensor]:
        assert view == Augment.PLAIN
        with evaluating(method):
            return function(data.points), data.labelled

    return sweep


def _evaluated(method: GradientMethod, data: TwoClouds) -> Learned:
    with evaluating(method):
        called = method.classify(data.test).argmax(dim=1)
    truth = data.test_truth
    return Learned(
        accuracy=float((called == truth).float().mean()),
        recall=float((called[truth == POSITIVE] == POSITIVE).float().mean()),
        called_positive=float((called == POSITIVE).float().mean()),
    )
