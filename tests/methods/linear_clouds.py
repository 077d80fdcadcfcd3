"""Two Gaussian clouds and a linear scorer: a problem whose best answer is known.

P ~ N((+2, 0), I), N ~ N((-2, 0), I), 40 % positives in U: no rule is right more often than
97.78 %, and the best boundary is x1 = ln(1.5) / 4.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from onesided.core.batch import DataFacts
from onesided.core.clock import Clock
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.data.problem.dataset import LabelledDataset, PUDataset, Selection
from onesided.engine.sweep import MethodSweep, evaluating
from onesided.methods.base import GradientMethod, MethodConfig
from onesided.nets.build import seeded
from onesided.nets.standardise import Backbone, Standardise

PRIOR = 0.4
POSITIVES, UNLABELLED, TEST = 200, 2000, 10_000


class Untouched(Backbone):
    """Features are the samples themselves, so that the classifier on top is linear."""

    def __init__(self, width: int = 2) -> None:
        super().__init__(Standardise([0.0] * width, [1.0] * width), width=width)

    def features(self, samples: Float[Tensor, "batch *sample"]) -> Float[Tensor, "batch width"]:
        return samples

    def reset_parameters(self) -> None:
        """Nothing to draw."""


@dataclass(frozen=True)
class Clouds:
    """P and U to train on, as many held out, and a test set."""

    train: PUDataset
    held_out: PUDataset
    test: LabelledDataset

    def sweep(self, method: GradientMethod, clock: Clock) -> MethodSweep:
        parts = {"train": self.train, "held_out": self.held_out}
        return MethodSweep(method, parts, "vector", torch.device("cpu"), clock)

    def with_held_out(self, values: np.ndarray) -> "Clouds":
        """Return the same problem with other points held out."""
        return replace(self, held_out=replace(self.held_out, values=_all(values)))

    def accuracy(self, method: GradientMethod) -> float:
        """Share of the test set that a score above one half gets right."""
        with evaluating(method):
            logits = method.classify(points(self.test))
        called = logits[:, POSITIVE] > logits[:, NEGATIVE]
        return float((called.numpy() == (self.test.truth == POSITIVE)).mean())


def points(data: PUDataset | LabelledDataset) -> Float[Tensor, "n 2"]:
    """Return the samples of a part, in row order."""
    return torch.from_numpy(data.values.take(slice(None)))


def clouds(seed: int) -> Clouds:
    random = np.random.default_rng(seed)
    train, validation = (_positive_unlabelled(random) for _ in range(2))
    values, truth = _points(random, round(TEST * PRIOR), TEST - round(TEST * PRIOR))
    return Clouds(train, validation, LabelledDataset(_all(values), truth, _names(truth)))


def linear(config: MethodConfig, batch_size: int, seed: int) -> GradientMethod:
    """Return the method with a linear scorer."""
    facts = DataFacts(
        rows=POSITIVES + UNLABELLED,
        labelled=POSITIVES,
        sample_shape=(2,),
        batch_size=batch_size,
        seed=seed,
    )
    with seeded(seed, "linear"):
        method = config.build(facts, Untouched())
    assert isinstance(method, GradientMethod)
    return method


def _positive_unlabelled(random: np.random.Generator) -> PUDataset:
    hidden = round(UNLABELLED * PRIOR)
    values, truth = _points(random, POSITIVES + hidden, UNLABELLED - hidden)
    labelled = np.arange(len(truth)) < POSITIVES
    return PUDataset(_all(values), labelled, truth, _names(truth))


def _points(
    random: np.random.Generator, positives: int, negatives: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return points and classes, positives first."""
    truth = np.repeat(np.array([POSITIVE, NEGATIVE], dtype=np.int64), [positives, negatives])
    values = random.standard_normal((len(truth), 2))
    values[:, 0] += np.where(truth == POSITIVE, 2.0, -2.0)
    return values.astype(np.float32), truth


def _all(values: np.ndarray) -> Selection:
    return Selection(values, np.arange(len(values)))


def _names(truth: np.ndarray) -> tuple[str, ...]:
    return tuple(f"{row:05d}" for row in range(len(truth)))
