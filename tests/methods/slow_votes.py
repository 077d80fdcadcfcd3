"""NcPU and Teacher, slow and obvious: loops over samples, as the paper's pseudocode has them."""

import math
from dataclasses import dataclass, field
from typing import TypeVar

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from onesided.core.batch import DataFacts, Outputs, PUBatch
from onesided.core.clock import Clock
from onesided.core.former import SWITCHES
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.methods.base import EMBEDDING
from onesided.methods.ncpu import NcPU, NcPUConfig
from onesided.methods.teacher import Teacher, TeacherConfig
from onesided.nets.build import BackboneConfig, build_backbone, seeded

ROWS, BATCH = 12, 8
FACTS = DataFacts(rows=ROWS, labelled=3, sample_shape=(2,))
SMALL = {"projector_width": 8, "warmup_epochs": 1}

Built = TypeVar("Built", NcPU, Teacher)


def built(config: NcPUConfig | TeacherConfig, kind: type[Built]) -> Built:
    """Return an untrained method for twelve rows of two numbers, in double precision."""
    with seeded(0, "test"):
        backbone = build_backbone(BackboneConfig(width=0.05), (2,), [0, 0], [1, 1])
        method = config.build(FACTS, backbone).double()
    assert isinstance(method, kind)
    return method


def random_outputs(seed: int) -> Outputs:
    draw = torch.Generator().manual_seed(seed)

    def unit(count: int) -> Tensor:
        # A common direction keeps most cosines positive, as trained embeddings have them.
        raw = torch.randn(count, EMBEDDING, generator=draw, dtype=torch.float64) + 0.5
        return F.normalize(raw, dim=1)

    def logits() -> Tensor:
        return 2 * torch.randn(BATCH, 2, generator=draw, dtype=torch.float64)

    embeddings = {"query": unit(BATCH), "key": unit(BATCH)}
    return Outputs({"logits": logits(), **embeddings, "judged": logits()})


def random_batch(seed: int) -> PUBatch:
    draw = torch.Generator().manual_seed(100 + seed)
    row = torch.randperm(ROWS, generator=draw)[:BATCH]
    return PUBatch(row=row, labelled=row < 3)


def at(epoch: int) -> Clock:
    return Clock(seed=0, stage="train", epoch=epoch, epochs=10, step=0, steps=2)


@dataclass
class SlowVotes:
    """Section 3 of the NcPU paper as loops over samples, and Teacher's switches beside it.

    With the paper's class order, 0 = positive.
    """

    config: NcPUConfig | TeacherConfig
    prototypes: list[Tensor] = field(
        default_factory=lambda: [torch.zeros(EMBEDDING, dtype=torch.float64) for _ in range(2)]
    )
    phantom: list[tuple[float, float]] = field(default_factory=lambda: [(0.0, 1.0)] * ROWS)
    confidence: float = 0.5
    share: tuple[float, float] = (0.5, 0.5)
    kept_share: float = 0.5
    line: float = 0.0

    def switch(self, name: str) -> str:
        """Return a switch of Teacher; NcPU has the paper's value."""
        return str(getattr(self.config, name, SWITCHES[name]))

    def step(self, outputs: Outputs, batch: PUBatch, epoch: int) -> dict[str, float]:
        c, switch = self.config, self.switch
        warm = epoch < c.warmup_epochs
        learner = probabilities(outputs["logits"])
        f = probabilities(outputs["judged"]) if switch("judge") == "target" else learner
        q, k = outputs["query"], outputs["key"]
        labelled = batch.labelled.tolist()
        predicted = [0 if labelled[i] or f[i][0] > f[i][1] else 1 for i in range(BATCH)]

        moved = predicted
        if c.prototype_class == "predicted":
            moved = [0 if f[i][0] > f[i][1] else 1 for i in range(BATCH)]

        votes = self._votes(q, labelled)
        self._move_prototypes(q, moved)
        if c.vote == "after":
            votes = self._votes(q, labelled)
        if switch("voter") == "judge":
            votes = self._judge_votes(f, labelled, epoch)
        self._move_threshold(f, labelled)
        tau = self.share[1] / max(self.share) * self.confidence

        targets = []
        for i, row in enumerate(batch.row.tolist()):
            targets.append(self._target(row, labelled[i], votes[i], f[i][1] >= tau, warm))
        classification = self._classification(learner, targets, labelled)

        if c.pairs == "labelled":
            f = [(1.0, 0.0) if known else p for p, known in zip(f, labelled, strict=True)]
        aligned = []
        for i in range(BATCH):
            alone = warm or c.alignment == "self"
            peers = [j for j in range(BATCH) if i == j or (not alone and self._pair_up(f, i, j))]
            aligned.append(mean([self._pair(q[i], k[j], i == j) for j in peers]))
        entropy = mean([-sum(p * math.log(p) for p in probability) for probability in learner])
        ramp = min(epoch / c.warmup_epochs, 1)
        return {
            "classification": classification,
            "alignment": c.alignment_weight * mean(aligned),
            "entropy": ramp * c.entropy_weight * entropy,
        }

    def _classification(
        self,
        f: list[tuple[float, float]],
        targets: list[tuple[float, float]],
        labelled: list[bool],
    ) -> float:
        if self.switch("weighing") == "classes":
            return sum(
                sum(-s[c] * math.log(p[c]) for s, p in zip(targets, f, strict=True))
                / sum(s[c] for s in targets)
                for c in (0, 1)
            )
        ce = [
            -(s[0] * math.log(p[0]) + s[1] * math.log(p[1]))
            for s, p in zip(targets, f, strict=True)
        ]
        on_p = [ce[i] for i in range(BATCH) if labelled[i]]
        on_u = [ce[i] for i in range(BATCH) if not labelled[i]]
        return mean(on_p) + mean(on_u)

    def _pair_up(self, f: list[tuple[float, float]], i: int, j: int) -> bool:
        """Return whether j belongs to Q of i."""
        if self.config.pairs == "predicted":
            return (f[i][0] > f[i][1]) == (f[j][0] > f[j][1])
        agreement = f[i][0] * f[j][0] + f[i][1] * f[j][1]
        return agreement >= self.config.pair_threshold

    def _votes(self, q: Tensor, labelled: list[bool]) -> list[int]:
        similarity = [[float(row @ mu) for mu in self.prototypes] for row in q]
        return [0 if labelled[i] or s[0] > s[1] else 1 for i, s in enumerate(similarity)]

    def _judge_votes(
        self, f: list[tuple[float, float]], labelled: list[bool], epoch: int
    ) -> list[int]:
        margin = [math.log(p[0] / p[1]) for p in f]
        of_u = [m for m, known in zip(margin, labelled, strict=True) if not known]
        if epoch < self.config.warmup_epochs:
            past = min(self.config.threshold_momentum, (1 + 2 * epoch) / (10 + 2 * epoch))
            self.kept_share = past * self.kept_share + (1 - past) * mean([m > 0 for m in of_u])
        else:
            self.line += 0.05 * (mean([m > self.line for m in of_u]) - self.kept_share)
        return [0 if labelled[i] or margin[i] > self.line else 1 for i in range(BATCH)]

    def _move_prototypes(self, q: Tensor, predicted: list[int]) -> None:
        alpha = self.config.prototype_momentum
        for i, label in enumerate(predicted):
            moved = alpha * self.prototypes[label] + (1 - alpha) * q[i]
            if self.config.prototype_normalisation == "sample":
                moved = moved / moved.norm()
            self.prototypes[label] = moved
        for label in set(predicted):
            self.prototypes[label] = self.prototypes[label] / self.prototypes[label].norm()

    def _move_threshold(self, f: list[tuple[float, float]], labelled: list[bool]) -> None:
        gamma = self.config.threshold_momentum
        counted = [
            p for i, p in enumerate(f) if self.config.threshold_rows == "all" or not labelled[i]
        ]
        self.confidence = gamma * self.confidence + (1 - gamma) * mean([max(p) for p in counted])
        self.confidence = min(self.confidence, self.config.confidence_cap)
        self.share = (
            gamma * self.share[0] + (1 - gamma) * mean([p[0] for p in counted]),
            gamma * self.share[1] + (1 - gamma) * mean([p[1] for p in counted]),
        )

    def _target(
        self, row: int, labelled: bool, vote: int, sure: bool, warm: bool
    ) -> tuple[float, float]:
        rule, beta = self.config.disambiguation, self.config.target_momentum
        if labelled:
            return (1.0, 0.0)
        if warm or rule == "none":
            return (0.0, 1.0)
        old = self.phantom[row]
        ballot = (1.0, 0.0) if vote == 0 else (0.0, 1.0)
        self.phantom[row] = (
            beta * old[0] + (1 - beta) * ballot[0],
            beta * old[1] + (1 - beta) * ballot[1],
        )
        target = self.phantom[row]
        if sure and rule != "prototype":
            target = (0.0, 1.0)
            if rule == "prototype+threshold":
                self.phantom[row] = (0.0, 1.0)
        return target

    def _pair(self, q: Tensor, k: Tensor, itself: bool) -> float:
        if self.config.alignment == "self":
            return 2 - 2 * float(q @ k)
        low, high = 1e-4, 1 - 1e-4
        if self.config.bound == "coordinate":
            c = float(q.clamp(low, high) @ k.clamp(low, high))
        else:
            c = min(max(float(q @ k), low), high)
        if itself and self.config.self_pair == "plain":
            return 2 * (1 - c)
        return 2 * math.sqrt(max(1 - c, 0))


def probabilities(logits: Tensor) -> list[tuple[float, float]]:
    return [(float(p[POSITIVE]), float(p[NEGATIVE])) for p in logits.softmax(dim=1)]


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def equals_the_loops(ours: NcPU | Teacher, steps: int) -> None:
    """Assert that every step has the terms of the loops over samples."""
    slow = SlowVotes(ours.config)
    for step in range(steps):
        epoch = step // 2
        outputs, batch = random_outputs(step), random_batch(step)
        losses = ours.loss(outputs, batch, at(epoch))
        expected = slow.step(outputs, batch, epoch)
        for name, value in expected.items():
            assert float(losses.terms[name]) == pytest.approx(value, rel=1e-9, abs=1e-12), (
                step,
                name,
            )
        assert float(losses.total) == pytest.approx(sum(expected.values()), rel=1e-9)
    for label, ours_label in ((0, POSITIVE), (1, NEGATIVE)):
        assert torch.allclose(ours.prototypes.vectors[ours_label], slow.prototypes[label])


def views_of(method: NcPU | Teacher) -> PUBatch:
    """Return a batch with random samples in every view that the method takes."""
    batch = random_batch(0)
    views = {role: torch.rand(BATCH, 2, dtype=torch.float64) for role in method.views}
    return PUBatch(batch.row, batch.labelled, views)
