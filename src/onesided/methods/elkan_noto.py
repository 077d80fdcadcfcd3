"""Elkan-Noto: how likely an item is labelled, divided by how often positives are.

Elkan and Noto, Learning classifiers from only positive and unlabeled data, KDD 2008. Symbols:

    s        1 for a labelled item, 0 for an unlabelled one
    y        1 for a positive item; whoever is labelled is positive
    V        items that g was not fitted to: here all, each by a g of the other folds
    g(x)     P(s = 1 | x), an ordinary classifier with probabilities
    c        P(s = 1 | y = 1), the same for all positives: P is a random sample of them (SCAR)

    P(y = 1 | x)        = g(x) / c                           Lemma 1
    w(x)                = (1 - c) / c  g(x) / (1 - g(x))     P(y = 1 | x, s = 0), Section 3
    e1, e2, e3 for c    = mean of g over P in V;  sum of g over P in V / sum of g over V;
                          largest g in V

The second training of Section 3 takes every labelled item as positive with weight 1, and every
unlabelled one twice: as positive with weight w(x) and as negative with weight 1 - w(x).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float64
from pydantic import Field
from scipy.special import expit
from torch import Tensor

from onesided.core.batch import DataFacts
from onesided.core.errors import CheckpointError, OnesidedError
from onesided.methods.against_pool import (
    Features,
    Mask,
    TrainingRows,
    Weights,
    checked_features,
    checked_state,
    out_of_fold,
)
from onesided.methods.base import Card, MethodConfig
from onesided.methods.forest import Forest, ForestConfig
from onesided.methods.graph import Graph, Value
from onesided.methods.linear import Linear, LinearConfig, Penalty
from onesided.nets.standardise import Backbone, Standardise
from onesided.priors.logistic_line import logistic_line

Learner = Linear | Forest
Constant = Literal["e1", "e2", "e3"]
CALIBRATION = "calibration"
LEAST_SLOPE = 1e-6
"""Where P scores no higher than U out of fold, the order of the scores is kept all the same."""
MOST_WEIGHT = 1 - 1e-6
"""An unlabelled item is never surely positive: negatives without any weight teach nothing."""
TIE_BREAK = 1e-6
"""Share of the score that still rises with g where g exceeds c."""


class ElkanNotoConfig(MethodConfig):
    """Settings of Elkan-Noto."""

    learner: Literal["linear", "forest"] = "linear"
    """Classifier of P against U whose scores become g: Linear or Forest."""
    constant: Constant = "e1"
    """Estimator of c, on items that g was not fitted to: the mean of g over P (e1, which the paper
    prefers), the share of g's sum that is on P (e2), or the largest g (e3, one item decides)."""
    training: Literal["once", "weighted"] = "once"
    """once scores by g / c. weighted trains a second time, with each unlabelled item as positive
    and as negative by its weight w, and scores by that model."""
    penalty: Penalty = "auto"
    """Penalty of Linear, chosen once on all training items if it is auto."""
    trees: int = Field(default=100, ge=1, le=100_000)
    """Trees of Forest."""

    uses_negatives: ClassVar[bool] = True
    uses_weights: ClassVar[bool] = True
    trains_backbone: ClassVar[bool] = False
    card: ClassVar[Card] = Card(
        title="Elkan-Noto",
        summary="A classifier of P against U, divided by the share of positives that is labelled.",
        citation="Elkan, Noto, Learning classifiers from only positive and unlabeled data, KDD "
        "2008.",
        fidelity="The published formulas of g / c, e1, e2, e3 and w. The paper's classifier is a "
        "linear SVM with Platt's probabilities; here it is Linear or Forest, also with Platt's. "
        "The paper holds one set out, here g is cross-fitted. Its sums are over the union of P and "
        "U: where U was drawn apart from P, the score is about that union. Known negatives are no "
        "part of it. Above c the score still rises by up to one millionth, so that the top of a "
        "ranking has no ties. The settings of backbone and training have no effect.",
        licence="Ours, under Apache-2.0, on scikit-learn (BSD-3-Clause).",
        good_at="P that is a random sample of the positives, and scores that are to be read as "
        "probabilities.",
        bad_at="P chosen with a bias; classes that overlap everywhere, for then g is below c also "
        "for sure positives and c is too low.",
        variants={
            "once": "scores are g / c (default)",
            "weighted": "a second model, of items weighted by w",
        },
        logs={},  # fitted in one call: there are no epochs
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> "ElkanNoto":
        """Return an Elkan-Noto that is not fitted; of the backbone it takes the scale."""
        given = backbone.standardise if len(facts.sample_shape) == 1 else None
        return ElkanNoto(self, prod(facts.sample_shape), given)


@dataclass(frozen=True)
class _Probabilities:
    """A learner, the line from its scores to probabilities, and those of its rows out of fold."""

    learner: Learner
    line: tuple[float, float]
    out_of_fold: Float64[np.ndarray, "n"]


class ElkanNoto:
    """A learner, the line that turns its scores into g, and the constant c."""

    title = "Elkan-Noto"

    def __init__(
        self, config: ElkanNotoConfig, width: int, standardise: Standardise | None = None
    ) -> None:
        self.config = config
        self.width = width
        self.standardise = standardise
        self.learner = self._untrained(config.penalty)
        self.calibration: np.ndarray | None = None  # slope, intercept, c

    def fit(
        self,
        features: Features,
        labelled: Mask,
        rng: np.random.Generator,
        *,
        negative: Mask | None = None,
        weights: Weights | None = None,
    ) -> None:
        """Fit g, estimate c, and train a second time where that is asked for."""
        rows = checked_features(features, self.width, self.title)
        data = TrainingRows(rows, labelled, negative, weights)
        found = self._probabilities(data, self.config.penalty, rng)
        known = ~data.unlabelled & ~labelled
        constant = label_frequency(
            found.out_of_fold[~known],
            labelled[~known],
            _given(data)[~known],
            self.config.constant,
        )
        if self.config.training == "weighted":
            share = positive_share(found.out_of_fold, constant)
            found = self._probabilities(doubled(data, share), _penalty_of(found.learner), rng)
            constant = 1.0  # this model tells positives from negatives, not P from U
        self.learner = found.learner
        self.calibration = np.array([*found.line, constant])

    def scores(self, features: Features) -> Float64[np.ndarray, "m"]:
        """Return g / c, at most 1, which estimates how likely each sample is positive."""
        slope, intercept, constant = self._fitted()
        rows = checked_features(features, self.width, self.title)
        return posterior(expit(slope * _values(self.learner, rows) + intercept), constant)

    def express(self, graph: Graph, features: Value) -> Value:
        """Add the steps from samples to g / c, by `posterior`."""
        slope, intercept, constant = map(float, self._fitted())
        learner = self.learner
        margin = learner.express_margins if isinstance(learner, Linear) else learner.express
        g = graph.logistic(graph.line(margin(graph, features), slope, intercept))
        ratio = graph.clip(graph.line(g, 1 / constant, 0), 0, 1)
        return graph.total(graph.line(ratio, 1 - TIE_BREAK, 0), graph.line(g, TIE_BREAK, 0))

    def state_dict(self) -> dict[str, Tensor]:
        """Return what the learner needs, and the line with c."""
        return {CALIBRATION: torch.from_numpy(self._fitted()), **self.learner.state_dict()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore learner, line and c, or refuse what does not fit."""
        own = {name: value for name, value in state.items() if name == CALIBRATION}
        numbers = checked_state(own, {CALIBRATION: torch.float64}, self.title)[CALIBRATION]
        sound = len(numbers) == 3 and np.isfinite(numbers).all()
        if not sound or numbers[0] <= 0 or not 0 < numbers[2] <= 1:
            raise CheckpointError(
                "The model is damaged: it should hold a rising line and a share of labelled "
                "positives between 0 and 1."
            )
        self.learner.load_state_dict({k: v for k, v in state.items() if k != CALIBRATION})
        self.calibration = numbers

    def _fitted(self) -> np.ndarray:
        if self.calibration is None:
            raise OnesidedError("Elkan-Noto is not fitted yet: call fit, or load a saved model.")
        return self.calibration

    def _untrained(self, penalty: Penalty) -> Learner:
        if self.config.learner == "forest":
            return Forest(ForestConfig(trees=self.config.trees), self.width)
        return Linear(LinearConfig(penalty=penalty), self.width, self.standardise)

    def _probabilities(
        self, data: TrainingRows, penalty: Penalty, rng: np.random.Generator
    ) -> _Probabilities:
        """Return a learner of these rows, calibrated by Platt's line on out-of-fold scores.

        The line is fitted to P and U with the weights they were given, so it also undoes the equal
        weight that the learner gives to both.
        """
        learner = self._untrained(penalty)
        _fit(learner, data, rng)
        chosen = _penalty_of(learner)

        def score(some: TrainingRows, new: Features) -> np.ndarray:
            other = self._untrained(chosen)
            _fit(other, some, rng)
            return _values(other, new)

        values = out_of_fold(data, score, rng)
        used = data.labelled | data.unlabelled
        line = platt_line(values[used], data.labelled[used], _given(data)[used])
        return _Probabilities(learner, line, expit(line[0] * values + line[1]))


def platt_line(values: Weights, positive: Mask, weight: Weights) -> tuple[float, float]:
    """Return slope and intercept of the logistic function of a score, by Platt's targets.

    Platt 1999: (n+ + 1) / (n+ + 2) for positives and 1 / (n- + 2) for the others instead of 1 and
    0, so that scores which separate the two give no infinite slope.
    """
    above, below = weight[positive].sum(), weight[~positive].sum()
    target = np.where(positive, (above + 1) / (above + 2), 1 / (below + 2))
    slope, intercept = logistic_line(values, target, weight)
    if slope > LEAST_SLOPE:
        return slope, intercept
    share = float(np.average(target, weights=weight))
    return LEAST_SLOPE, float(np.log(share / (1 - share)))


def label_frequency(g: Weights, labelled: Mask, weight: Weights, constant: Constant) -> float:
    """Return c by one of the paper's three estimators, on rows that g was not fitted to."""
    match constant:
        case "e1":
            return float(np.average(g[labelled], weights=weight[labelled]))
        case "e2":
            return float((weight * g)[labelled].sum() / (weight * g).sum())
        case "e3":
            return float(g[weight > 0].max())


def positive_share(g: Weights, constant: float) -> Weights:
    """Return w(x), how likely an unlabelled item is positive; never above `MOST_WEIGHT`."""
    odds = g / np.maximum(1 - g, np.finfo(np.float64).tiny)
    share: np.ndarray = np.minimum((1 - constant) / constant * odds, MOST_WEIGHT)
    return share


def posterior(g: Weights, constant: float) -> Weights:
    """Return g / c, at most 1, but for a millionth of g that keeps the order above c."""
    ratio: np.ndarray = (1 - TIE_BREAK) * np.minimum(g / constant, 1) + TIE_BREAK * g
    return ratio


def doubled(data: TrainingRows, share: Weights) -> TrainingRows:
    """Return the rows of the second training: unlabelled ones as positive and as negative."""
    pool = np.flatnonzero(data.unlabelled)
    given = _given(data)
    weights = np.concatenate([given, given[pool] * share[pool]])
    weights[pool] *= 1 - share[pool]
    more = np.ones(len(pool), dtype=bool)
    return TrainingRows(
        np.concatenate([data.features, data.features[pool]]),
        np.concatenate([data.labelled, more]),
        None if data.negative is None else np.concatenate([data.negative, ~more]),
        weights,
    )


def _given(data: TrainingRows) -> Weights:
    return np.ones(len(data)) if data.weights is None else data.weights


def _fit(learner: Learner, data: TrainingRows, rng: np.random.Generator) -> None:
    learner.fit(data.features, data.labelled, rng, negative=data.negative, weights=data.weights)


def _values(learner: Learner, features: Features) -> Weights:
    """Return what Platt's line is fitted to: margins of Linear, shares of Forest."""
    return learner.margins(features) if isinstance(learner, Linear) else learner.scores(features)


def _penalty_of(learner: Learner) -> float:
    """Return the penalty that a fitted Linear took; Forest has none."""
    return learner.penalty if isinstance(learner, Linear) and learner.penalty else 1.0
