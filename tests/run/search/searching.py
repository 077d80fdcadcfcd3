"""Small problems for a search, and a method that remembers what it was trained on."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from onesided.core.batch import DataFacts
from onesided.data.read.arrays import from_arrays
from onesided.methods import METHODS
from onesided.methods.base import Card, MethodConfig, Needs
from onesided.nets.standardise import Backbone
from onesided.run.config import OwnConfig
from onesided.run.load import divide_own
from onesided.run.presets import plan_run
from onesided.run.problem import Problem, build_problem

CARD = Card(
    title="Spy",
    summary="Remembers what it was trained on.",
    citation="None.",
    fidelity="None.",
    licence="Ours.",
    good_at="Nothing.",
    bad_at="Everything.",
    variants={},
    logs={},
)
LINEAR = {"candidates": ["linear"]}


def numbered(rows: int = 60, positives: int = 20, width: int = 3, seed: int = 0) -> np.ndarray:
    """Return samples with a first number of their own; the second tells P from U a little."""
    random = np.random.default_rng(seed)
    points = random.normal(size=(rows, width))
    points[:, 0] = random.permutation(rows)
    points[:positives, 1] += 1.5
    return points


def problem_of(
    values: np.ndarray,
    positives: int,
    *,
    groups: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    negatives: int = 0,
    method: Mapping[str, Any] = LINEAR,
    **settings: object,
) -> Problem:
    """Return the problem in which the first rows are of P, the last negative, the others of U."""
    given = {"data": {"name": "table"}, "method": {"name": "auto", **method}, **settings}
    plan = plan_run(given, "quick")
    rows = len(values)
    labels = np.repeat([1, 0, -1], [positives, rows - positives - negatives, negatives])
    data = from_arrays(values, labels, labels_mean="pnu")
    if groups is not None:
        data = replace(data, samples=replace(data.samples, groups={"of": groups}))
    data = replace(data, samples=replace(data.samples, weights=weights))
    assert isinstance(plan.checked.data, OwnConfig)
    loaded = divide_own(data, plan.checked.data, fewest=1)
    return build_problem(plan.for_data(loaded.split), loaded)


@dataclass
class Seen:
    """What every model of a spy was trained on, and what it scored, by first numbers."""

    trained: list[frozenset[float]] = field(default_factory=list)
    scored: list[tuple[frozenset[float], frozenset[float]]] = field(default_factory=list)
    priors: list[float | None] = field(default_factory=list)
    negatives: list[frozenset[float]] = field(default_factory=list)
    weights: list[dict[float, float]] = field(default_factory=list)


SEEN = Seen()


class Spy:
    """A direct method that scores by the second number."""

    def __init__(self, prior: float | None) -> None:
        self.seen: frozenset[float] = frozenset()
        SEEN.priors.append(prior)

    def fit(
        self,
        features: np.ndarray,
        labelled: np.ndarray,
        rng: np.random.Generator,
        *,
        negative: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> None:
        """Remember the rows."""
        self.seen = frozenset(features[:, 0].tolist())
        SEEN.trained.append(self.seen)
        SEEN.negatives.append(frozenset(() if negative is None else features[negative, 0].tolist()))
        SEEN.weights.append(
            {} if weights is None else dict(zip(features[:, 0], weights, strict=True))
        )

    def scores(self, features: np.ndarray) -> np.ndarray:
        """Return a rising function of the second number."""
        SEEN.scored.append((self.seen, frozenset(features[:, 0].tolist())))
        scores: np.ndarray = 1 / (1 + np.exp(-features[:, 1].astype(np.float64)))
        return scores

    def state_dict(self) -> dict[str, Tensor]:
        """Return next to nothing."""
        return {"nothing": torch.zeros(1)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take nothing back."""


class SpyConfig(MethodConfig):
    """Settings of the spy."""

    card: ClassVar[Card] = CARD

    def build(self, facts: DataFacts, backbone: Backbone) -> Spy:
        """Return a spy."""
        return Spy(facts.prior)


class InformedSpyConfig(SpyConfig):
    """A spy that takes known negatives and weights."""

    uses_negatives: ClassVar[bool] = True
    uses_weights: ClassVar[bool] = True


class PriorSpyConfig(SpyConfig):
    """A spy that needs the prior."""

    needs: ClassVar[Needs] = Needs(prior=True)


@contextmanager
def spying() -> Iterator[Seen]:
    """Register the spies, and forget what earlier ones saw."""
    for record in (SEEN.trained, SEEN.scored, SEEN.priors, SEEN.negatives, SEEN.weights):
        record.clear()
    spies: dict[str, type[MethodConfig]] = {
        "spy": SpyConfig,
        "prior-spy": PriorSpyConfig,
        "informed-spy": InformedSpyConfig,
    }
    with patch.dict(METHODS, spies):
        yield SEEN
