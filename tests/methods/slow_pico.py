"""PiCO as loops over samples, with its paper's class order 0 = positive."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from onesided.core.batch import Outputs, PUBatch
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.methods.base import EMBEDDING
from onesided.methods.pico import PiCOConfig

ROWS, BATCH, QUEUE = 12, 6, 8


@dataclass
class SlowPiCO:
    """The method as loops over samples, with its papers' class order 0 = positive."""

    config: PiCOConfig
    queue: list[tuple[Tensor, int]]
    targets: list[tuple[float, float]] = field(default_factory=lambda: [(0.0, 1.0)] * ROWS)
    prototypes: list[Tensor] = field(
        default_factory=lambda: [torch.zeros(EMBEDDING, dtype=torch.float64) for _ in range(2)]
    )

    def step(self, outputs: Outputs, batch: PUBatch, epoch: int, epochs: int) -> dict[str, float]:
        f = [(float(p[POSITIVE]), float(p[NEGATIVE])) for p in outputs["logits"].softmax(dim=1)]
        q, k = ([v / v.norm() for v in outputs[name]] for name in ("query", "key"))
        labelled = batch.labelled.tolist()
        c = [0 if labelled[i] or f[i][0] > f[i][1] else 1 for i in range(BATCH)]
        warm = epoch < self.config.warmup_epochs
        for i, row in enumerate(batch.row.tolist()):
            near = [float(q[i] @ mu) for mu in self.prototypes]
            vote = 0 if labelled[i] or near[0] > near[1] else 1
            if not warm:
                self._vote(row, vote, epoch, epochs)
            if labelled[i]:
                self.targets[row] = (1.0, 0.0)
        for i in range(BATCH):
            m = self.config.prototype_momentum
            self.prototypes[c[i]] = m * self.prototypes[c[i]] + (1 - m) * q[i]
        self.prototypes = [mu / mu.norm() if mu.any() else mu for mu in self.prototypes]
        contrast = self._moco(q, k) if warm else self._supcon(q, k, c)
        self.queue = [*self.queue, *zip(k, c, strict=True)][-QUEUE:]
        ce = [
            -sum(s * math.log(p) for s, p in zip(self.targets[row], f[i], strict=True))
            for i, row in enumerate(batch.row.tolist())
        ]
        on_p = [ce[i] for i in range(BATCH) if labelled[i]]
        on_u = [ce[i] for i in range(BATCH) if not labelled[i]]
        apart = self.config.classification == "groups"
        return {
            "classification": mean(on_p) + mean(on_u) if apart else mean(ce),
            "contrast": self.config.contrast_weight * contrast,
        }

    def _vote(self, row: int, vote: int, epoch: int, epochs: int) -> None:
        begin, end = self.config.target_momentum, self.config.final_target_momentum
        phi = 0.99 if epoch == 0 else begin - (begin - end) * (epoch - 1) / epochs
        old = self.targets[row]
        self.targets[row] = (
            phi * old[0] + (1 - phi) * (vote == 0),
            phi * old[1] + (1 - phi) * (vote == 1),
        )

    def _moco(self, q: list[Tensor], k: list[Tensor]) -> float:
        costs = []
        for i in range(BATCH):
            own = self._exp(q[i], k[i])
            rest = sum(self._exp(q[i], key) for key, _ in self.queue)
            costs.append(-math.log(own / (own + rest)))
        return mean(costs)

    def _supcon(self, q: list[Tensor], k: list[Tensor], c: list[int]) -> float:
        pool = [*zip(q, c, strict=True), *zip(k, c, strict=True), *self.queue]
        costs = []
        for i in range(BATCH):
            others = [pool[j] for j in range(len(pool)) if j != i]
            everything = sum(self._exp(q[i], a) for a, _ in others)
            costs.append(
                mean([-math.log(self._exp(q[i], a) / everything) for a, y in others if y == c[i]])
            )
        return mean(costs)

    def _exp(self, q: Tensor, a: Tensor) -> float:
        return math.exp(float(q @ a) / self.config.temperature)


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
