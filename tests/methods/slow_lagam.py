"""LaGAM as loops over samples and a double backward pass; class order 0 = positive."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from onesided.core.batch import Outputs, PUBatch
from onesided.core.clock import Clock
from onesided.core.labels import POSITIVE
from onesided.core.rng import numpy_generator
from onesided.methods.lagam import LaGAMConfig

ROWS, BATCH = 12, 6
Soft = tuple[float, float]


@dataclass
class SlowLaGAM:
    """The method as loops over samples, with its papers' class order 0 = positive."""

    config: LaGAMConfig
    labels: list[Soft] = field(default_factory=lambda: [(1.0, 0.0)] * 3 + [(0.0, 1.0)] * (ROWS - 3))

    def step(
        self, outputs: Outputs, batch: PUBatch, head: Tensor, cluster: list[int], clock: Clock
    ) -> dict[str, float]:
        rows, labelled = batch.row.tolist(), batch.labelled.tolist()
        settled = clock.epoch >= self.config.warmup_epochs
        if settled:
            rho = 0.95 - 0.15 * clock.epoch / clock.epochs
            for row, known, vote in zip(
                rows, labelled, self._votes(outputs, batch, head), strict=True
            ):
                old = self.labels[row]
                ballot = (1.0, 0.0) if known or vote == 0 else (0.0, 1.0)
                self.labels[row] = (
                    rho * old[0] + (1 - rho) * ballot[0],
                    rho * old[1] + (1 - rho) * ballot[1],
                )
        y = [self.labels[row] for row in rows]
        share = self.share(clock)
        mixed = [
            (
                share * y[i][0] + (1 - share) * y[i ^ 1][0],
                share * y[i][1] + (1 - share) * y[i ^ 1][1],
            )
            for i in range(BATCH)
        ]
        own = [[j == BATCH + i for j in range(2 * BATCH)] for i in range(BATCH)]
        terms = {
            "classification": balanced(outputs["margin"].tolist(), y),
            "mixup": balanced(outputs["mixed_margin"].tolist(), mixed),
            "instance": self._contrast(outputs, own),
        }
        if settled:
            group = self._group(outputs, [cluster[row] for row in rows], clock.epoch)
            terms["group"] = self._contrast(outputs, group)
        return terms

    def share(self, clock: Clock) -> float:
        place = (clock.stage, clock.epoch, clock.step)
        drawn = float(numpy_generator(clock.seed, "mixup", *place).beta(4, 4))
        return max(drawn, 1 - drawn)

    def _votes(self, outputs: Outputs, batch: PUBatch, head: Tensor) -> list[int]:
        """Take the virtual step of the weight, with a graph, and differentiate through it."""
        assert batch.clean is not None
        y = torch.tensor([self.labels[row] for row in batch.row.tolist()], dtype=torch.float64)
        truth = torch.tensor(
            [(1.0, 0.0) if t == POSITIVE else (0.0, 1.0) for t in batch.clean.truth.tolist()],
            dtype=torch.float64,
        )
        w = head[:-1].clone().requires_grad_()
        shift = torch.zeros_like(y, requires_grad=True)
        noisy = torch_balanced(outputs["features"] @ w + head[-1], y + shift)
        (u,) = torch.autograd.grad(noisy, w, create_graph=True)
        after = outputs["clean_features"] @ (w - self.config.virtual_step * u) + head[-1]
        (gradient,) = torch.autograd.grad(torch_balanced(after, truth), shift)
        return [0 if g[0] < g[1] else 1 for g in gradient.tolist()]

    def _pool(self, outputs: Outputs) -> list[Tensor]:
        return [v / v.norm() for name in ("query", "key") for v in outputs[name]]

    def _group(self, outputs: Outputs, cluster: list[int], epoch: int) -> list[list[bool]]:
        positive = [1 / (1 + math.exp(-g)) > 0.5 for g in outputs["margin"].tolist()]
        pool = self._pool(outputs)
        mask = []
        for i in range(BATCH):
            alike = [
                cluster[i] == cluster[j % BATCH] and positive[i] == positive[j % BATCH]
                for j in range(2 * BATCH)
            ]
            if epoch >= self.config.neighbours_from:
                others = [j for j in range(2 * BATCH) if j != i]
                others.sort(key=lambda j: -float(pool[i] @ pool[j]))
                for j in others[: self.config.neighbours]:
                    alike[j] = True
            mask.append(alike)
        return mask

    def _contrast(self, outputs: Outputs, mask: list[list[bool]]) -> float:
        pool, tau = self._pool(outputs), self.config.temperature
        costs = []
        for i in range(BATCH):
            others = [j for j in range(2 * BATCH) if j != i]
            everything = sum(math.exp(float(pool[i] @ pool[j]) / tau) for j in others)
            each = [
                math.log(everything) - float(pool[i] @ pool[j]) / tau for j in others if mask[i][j]
            ]
            costs.append(sum(each) / len(each))
        return sum(costs) / len(costs)


def balanced(margin: list[float], y: list[Soft]) -> float:
    total = 0.0
    for c in (0, 1):
        cost = mass = 0.0
        for g, label in zip(margin, y, strict=True):
            p = 1 / (1 + math.exp(-g if c == 0 else g))
            cost -= label[c] * math.log(min(max(p, 1e-4), 1 - 1e-4))
            mass += label[c]
        total += cost / mass
    return total


def torch_balanced(margin: Tensor, y: Tensor) -> Tensor:
    positive = torch.sigmoid(margin).clamp(1e-4, 1 - 1e-4).log()
    negative = torch.sigmoid(-margin).clamp(1e-4, 1 - 1e-4).log()
    return -(y[:, 0] * positive).sum() / y[:, 0].sum() - (y[:, 1] * negative).sum() / y[:, 1].sum()
