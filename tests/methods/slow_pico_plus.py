"""PiCO+ as loops over samples, with its paper's class order 0 = positive."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from onesided.core.batch import Outputs, PUBatch
from onesided.core.clock import Clock
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.core.rng import numpy_generator
from onesided.methods.base import EMBEDDING
from onesided.methods.pico import PiCOConfig
from tests.methods.slow_pico import BATCH, QUEUE, ROWS, mean

Soft = tuple[float, float]


@dataclass
class SlowPiCOPlus:
    """The method after its warm-up; a queue entry is (key, class, trusted)."""

    config: PiCOConfig
    queue: list[tuple[Tensor, int, bool]]
    targets: list[Soft] = field(default_factory=lambda: [(0.0, 1.0)] * ROWS)
    distance: list[float] = field(default_factory=lambda: [math.inf] * ROWS)
    reliable: list[bool] = field(default_factory=lambda: [False] * ROWS)
    prototypes: list[Tensor] = field(
        default_factory=lambda: [torch.zeros(EMBEDDING, dtype=torch.float64) for _ in range(2)]
    )

    def begin_epoch(self) -> None:
        """Call the closest rows reliable."""
        order = sorted(range(ROWS), key=lambda row: self.distance[row])
        best = order[: math.floor(self.config.reliable_share * ROWS + 1e-9)]
        self.reliable = [row in best and self.distance[row] < math.inf for row in range(ROWS)]

    def step(self, outputs: Outputs, batch: PUBatch, clock: Clock) -> dict[str, float]:
        """Take one batch, and return the terms of its loss."""
        rows, labelled = batch.row.tolist(), batch.labelled.tolist()
        f, mixed_f = (probabilities(outputs[name]) for name in ("logits", "mixed_logits"))
        q, k = ([v / v.norm() for v in outputs[name]] for name in ("query", "key"))
        c = [0 if labelled[i] or f[i][0] > f[i][1] else 1 for i in range(BATCH)]
        sure = [self.reliable[rows[i]] or labelled[i] for i in range(BATCH)]
        chosen = []
        for i, row in enumerate(rows):
            near = [float(q[i] @ mu) for mu in self.prototypes]
            self.distance[row] = -near[c[i]]
            self._vote(row, 0 if labelled[i] or near[0] > near[1] else 1, clock)
            if labelled[i]:
                self.targets[row] = (1.0, 0.0)
            chosen.append(self.targets[row] if sure[i] else self._guess(near))
        for i in range(BATCH):
            if sure[i]:
                m = self.config.prototype_momentum
                self.prototypes[c[i]] = m * self.prototypes[c[i]] + (1 - m) * q[i]
        self.prototypes = [mu / mu.norm() if mu.any() else mu for mu in self.prototypes]
        pool = [*zip(q, c, sure, strict=True), *zip(k, c, sure, strict=True), *self.queue]
        late = clock.epoch >= self.config.neighbours_from
        lam = self.config.contrast_weight
        share = self.share(clock)
        terms = {
            "mixup": mean(
                [entropy(blend(chosen[i], chosen[i ^ 1], share), mixed_f[i]) for i in range(BATCH)]
            ),
            "reliable": 2 * mean([entropy(chosen[i], f[i]) for i in range(BATCH) if sure[i]]),
            "unreliable": 0.1
            * mean([entropy(chosen[i], f[i]) for i in range(BATCH) if not sure[i]]),
            "contrast": lam * self._careful(pool, late),
            "contrast_all": lam
            * 0.1
            * mean(
                [
                    self._cost(pool, i, [j for j in range(len(pool)) if pool[j][1] == c[i]])
                    for i in range(BATCH)
                ]
            ),
        }
        self.queue = [*self.queue, *zip(k, c, sure, strict=True)][-QUEUE:]
        return terms

    def share(self, clock: Clock) -> float:
        place = (clock.stage, clock.epoch, clock.step)
        drawn = float(numpy_generator(clock.seed, "mixup", *place).beta(4, 4))
        return max(drawn, 1 - drawn)

    def _vote(self, row: int, vote: int, clock: Clock) -> None:
        begin, end = self.config.target_momentum, self.config.final_target_momentum
        phi = 0.99 if clock.epoch == 0 else begin - (begin - end) * (clock.epoch - 1) / clock.epochs
        self.targets[row] = blend(self.targets[row], (1.0 - vote, float(vote)), phi)

    def _guess(self, near: list[float]) -> Soft:
        positive = 1 / (1 + math.exp(near[1] - near[0]))
        power = [p ** (1 / self.config.temperature) for p in (positive, 1 - positive)]
        return power[0] / sum(power), power[1] / sum(power)

    def _careful(self, pool: list[tuple[Tensor, int, bool]], late: bool) -> float:
        """Return the contrast of the trusted with each other, of the others with neighbours."""
        costs = []
        for i in range(BATCH):
            q, label, trusted = pool[i]
            chosen = {BATCH + i}
            if trusted:
                chosen |= {j for j, (_, y, sure) in enumerate(pool) if y == label and sure}
            elif late:
                others = [j for j in range(len(pool)) if j != i]
                others.sort(key=lambda j: -float(q @ pool[j][0]))
                chosen |= set(others[: self.config.neighbours])
            weight = 1.0 if not late else (0.5 if trusted else 0.1)
            costs.append(weight * self._cost(pool, i, sorted(chosen)))
        return mean(costs)

    def _cost(self, pool: list[tuple[Tensor, int, bool]], i: int, chosen: list[int]) -> float:
        tau, q = self.config.temperature, pool[i][0]
        others = [j for j in range(len(pool)) if j != i]
        everything = math.log(sum(math.exp(float(q @ pool[j][0]) / tau) for j in others))
        return mean([everything - float(q @ pool[j][0]) / tau for j in chosen if j != i])


def probabilities(logits: Tensor) -> list[Soft]:
    return [(float(p[POSITIVE]), float(p[NEGATIVE])) for p in logits.softmax(dim=1)]


def blend(first: Soft, second: Soft, share: float) -> Soft:
    return (
        share * first[0] + (1 - share) * second[0],
        share * first[1] + (1 - share) * second[1],
    )


def entropy(target: Soft, f: Soft) -> float:
    return -sum(s * math.log(p) for s, p in zip(target, f, strict=True))
