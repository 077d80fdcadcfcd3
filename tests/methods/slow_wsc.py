"""WSC as loops over samples, T moved by differences; class order 0 = positive as published."""

import math
from dataclasses import dataclass, field

from torch import Tensor

from onesided.core.batch import Outputs
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.methods.wsc import WSCConfig

ROWS, BATCH, EPOCHS = 12, 6, 10
Matrix = list[list[float]]


@dataclass
class SlowWSC:
    """The method as loops, T moved by differences; class order 0 = positive as published."""

    config: WSCConfig
    weights: Matrix = field(default_factory=list)

    def step(self, outputs: Outputs, labelled: list[bool], epoch: int) -> dict[str, float]:
        c = self.config
        p, p1, p2 = (
            [(float(v[POSITIVE]), float(v[NEGATIVE])) for v in outputs[name].softmax(dim=1)]
            for name in ("logits", "first_logits", "second_logits")
        )
        z1, z2 = ([v / v.norm() for v in outputs[name]] for name in ("first", "second"))
        matrix = self.matrix(self.weights)
        terms = {
            "supervised": self._supervised(p, labelled, matrix),
            "consistency": mean([cross_entropy(a, b) for a, b in zip(p1, p, strict=True)])
            + mean([cross_entropy(a, b) for a, b in zip(p2, p, strict=True)]),
            "contrast": epoch / EPOCHS * c.contrast_weight * self._contrast(p, z1, z2),
            "balance": -c.balance_weight
            / 2
            * sum(math.log(mean([row[label] for row in p])) for label in (0, 1)),
        }
        if c.transition == "learned":
            terms["volume"] = self._volume(matrix)
            self._descend(p, labelled)
        return terms

    def matrix(self, weights: Matrix) -> Matrix:
        if self.config.transition == "known":
            mean = self.config.supervision == "mean"
            shown = 3 / (3 + 0.4 * (ROWS - 3)) if mean else 1 / (1 + 0.4)
            return [[shown, 1 - shown], [0.0, 1.0]]
        off = [1 / (1 + math.exp(-weights[0][1])), 1 / (1 + math.exp(-weights[1][0]))]
        return [
            [1 / (1 + off[0]), off[0] / (1 + off[0])],
            [off[1] / (1 + off[1]), 1 / (1 + off[1])],
        ]

    def _supervised(
        self, p: list[tuple[float, float]], labelled: list[bool], matrix: Matrix
    ) -> float:
        costs = []
        for i, row in enumerate(p):
            label = 0 if labelled[i] else 1
            costs.append(-math.log(row[0] * matrix[0][label] + row[1] * matrix[1][label]))
        if self.config.supervision == "mean":
            return mean(costs)
        on_p = [cost for cost, known in zip(costs, labelled, strict=True) if known]
        on_u = [cost for cost, known in zip(costs, labelled, strict=True) if not known]
        return (mean(on_p) + mean(on_u)) / 2

    def _contrast(self, p: list[tuple[float, float]], z1: list[Tensor], z2: list[Tensor]) -> float:
        alpha, beta = self.config.view_weight, self.config.class_weight
        l1 = -2 * alpha * mean([float(z1[i] @ z2[i]) for i in range(BATCH)])
        l2 = l3 = 0.0
        for i in range(BATCH):
            for j in range(BATCH):
                if i != j:
                    same = p[i][0] * p[j][0] + p[i][1] * p[j][1]
                    l2 += same * float(z1[i] @ z2[j] + z1[i] @ z1[j] + z2[i] @ z2[j])
        both = z1 + z2
        for a in range(2 * BATCH):
            for b in range(2 * BATCH):
                if a != b:
                    l3 += float(both[a] @ both[b]) ** 2
        scale = self.config.repulsion_weight * (alpha + beta / 2) ** 2
        pairs = BATCH * (BATCH - 1)
        return l1 - 2 * beta / 3 * l2 / pairs + scale * l3 / (2 * BATCH * (2 * BATCH - 1))

    def _volume(self, matrix: Matrix) -> float:
        determinant = matrix[0][0] * matrix[1][1] - matrix[0][1] * matrix[1][0]
        return self.config.volume_weight * math.log(abs(determinant))

    def _descend(self, p: list[tuple[float, float]], labelled: list[bool]) -> None:
        def objective(weights: Matrix) -> float:
            matrix = self.matrix(weights)
            return self._supervised(p, labelled, matrix) + self._volume(matrix)

        small = 1e-6
        slopes = [[0.0, 0.0], [0.0, 0.0]]
        for i, j in ((0, 1), (1, 0)):
            up, down = ([row.copy() for row in self.weights] for _ in range(2))
            up[i][j] += small
            down[i][j] -= small
            slopes[i][j] = (objective(up) - objective(down)) / (2 * small)
        for i, j in ((0, 1), (1, 0)):
            self.weights[i][j] -= self.config.transition_rate * slopes[i][j]


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def cross_entropy(p: tuple[float, float], target: tuple[float, float]) -> float:
    return -sum(t * math.log(q) for q, t in zip(p, target, strict=True))
