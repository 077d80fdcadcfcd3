"""Forest and Boosting: scikit-learn's trees, P against U.

Both are ordinary classifiers that take P and U as two classes of equal weight. Their trees are
kept as arrays (`trees.leaves`), so that a model file holds no pickled object.
"""

from collections.abc import Mapping
from math import prod
from typing import ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float64
from pydantic import Field
from torch import Tensor

from onesided.core.batch import DataFacts
from onesided.core.errors import OnesidedError
from onesided.methods.against_pool import (
    Features,
    Mask,
    TrainingRows,
    Weights,
    checked_features,
    checked_state,
    logistic,
    with_likely_positive,
)
from onesided.methods.base import Card, MethodConfig
from onesided.methods.graph import Graph, Value
from onesided.nets.standardise import Backbone
from onesided.trees.leaves import Leaves, leaves_of, restored_leaves, sum_of_leaves

TYPES: Mapping[str, torch.dtype] = {
    "roots": torch.int64,
    "feature": torch.int32,
    "cut": torch.float64,
    "right": torch.int64,
    "value": torch.float64,
}
SEEDS = 2**31
FIRST_PASS_TREES = 30
"""Trees that find the likely positives for a second pass: their order need not be fine."""


class ForestConfig(MethodConfig):
    """Settings of Forest."""

    trees: int = Field(default=100, ge=1, le=100_000)
    """Number of trees that are averaged."""
    min_samples_leaf: int = Field(default=5, ge=1)
    """Fewest samples in a leaf: with fewer, a tree memorises which positives are labelled."""
    passes: Literal[1, 2] = 1
    """2 grows a second forest, with the likely positives of U taken as positives: as many as the
    estimated prior says, by out-of-fold scores of the first one."""

    uses_negatives: ClassVar[bool] = True
    uses_weights: ClassVar[bool] = True
    trains_backbone: ClassVar[bool] = False
    card: ClassVar[Card] = Card(
        title="Forest",
        summary="Extremely randomised trees of P against U, averaged.",
        citation="Geurts, Ernst, Wehenkel, Extremely randomized trees, Machine Learning 2006. Why "
        "P against U ranks as positive against negative does: Elkan and Noto, KDD 2008.",
        fidelity="scikit-learn's trees, with equal weight of P and U and leaves of five samples. "
        "No network: the settings of backbone and training have no effect.",
        licence="Ours, under Apache-2.0, on scikit-learn (BSD-3-Clause).",
        good_at="Tables of numbers, in seconds and without any scaling.",
        bad_at="Many features of which each says little.",
        variants={},
        logs={},
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> "Forest":
        """Return a Forest without trees; it does not use the backbone."""
        return Forest(self, prod(facts.sample_shape))


class _Trees:
    """Trees as arrays: saved, restored, checked."""

    title: ClassVar[str]

    def __init__(self, width: int) -> None:
        self.width = width
        self.leaves: Leaves | None = None

    def state_dict(self) -> dict[str, Tensor]:
        """Return the nodes of all trees."""
        leaves = self._grown()
        return {name: torch.from_numpy(getattr(leaves, name)) for name in TYPES}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore the trees and check every node: each path must end at a leaf."""
        self.leaves = restored_leaves(checked_state(state, TYPES, self.title), self.width)

    def _sums(self, features: Features) -> Float64[np.ndarray, "m"]:
        return sum_of_leaves(self._grown(), checked_features(features, self.width, self.title))

    def _grown(self) -> Leaves:
        if self.leaves is None:
            raise OnesidedError(
                f"{self.title} has no trees yet: call fit, or load a saved model, first."
            )
        return self.leaves


class Forest(_Trees):
    """The mean share of P in the leaves that a sample falls into."""

    title = "Forest"

    def __init__(self, config: ForestConfig, width: int) -> None:
        super().__init__(width)
        self.config = config

    def fit(
        self,
        features: Features,
        labelled: Mask,
        rng: np.random.Generator,
        *,
        negative: Mask | None = None,
        weights: Weights | None = None,
    ) -> None:
        """Grow the trees."""
        rows = checked_features(features, self.width, self.title)
        data = TrainingRows(rows, labelled, negative, weights)
        seed = int(rng.integers(SEEDS))
        if self.config.passes == 2:
            data = with_likely_positive(
                data,
                lambda some, new: sum_of_leaves(self._grow(some, seed, FIRST_PASS_TREES), new),
                rng,
            )
        self.leaves = self._grow(data, seed, self.config.trees)

    def scores(self, features: Features) -> Float64[np.ndarray, "m"]:
        """Return how likely each sample is to be of P, were P and U equally frequent."""
        shares: np.ndarray = np.clip(self._sums(features), 0, 1)
        return shares

    def express(self, graph: Graph, features: Value) -> Value:
        """Add the steps from samples to scores."""
        return graph.clip(graph.sum_of_leaves(features, self._grown()), 0, 1)

    def _grow(self, data: TrainingRows, seed: int, count: int) -> Leaves:
        from sklearn.ensemble import ExtraTreesClassifier  # a second to import

        model = ExtraTreesClassifier(
            count, min_samples_leaf=self.config.min_samples_leaf, random_state=seed
        )
        model.fit(data.features, data.labelled, sample_weight=data.balanced())
        trees = [tree.tree_ for tree in model.estimators_]
        # Since scikit-learn 1.3 a node's values are the shares of the classes in it.
        return leaves_of(trees, (tree.value[:, 0, 1] / len(trees) for tree in trees))


class BoostingConfig(MethodConfig):
    """Settings of Boosting."""

    trees: int = Field(default=100, ge=1, le=100_000)
    """Number of trees, each of which corrects those before it."""
    depth: int = Field(default=3, ge=1, le=16)
    """Depth of a tree: how many columns may act together."""
    learning_rate: float = Field(default=0.1, gt=0, le=1)
    """Share of a tree's correction that is taken."""
    subsample: float = Field(default=0.5, gt=0, le=1)
    """Share of the samples that each tree sees."""

    uses_negatives: ClassVar[bool] = True
    uses_weights: ClassVar[bool] = True
    trains_backbone: ClassVar[bool] = False
    card: ClassVar[Card] = Card(
        title="Boosting",
        summary="Boosted trees of P against U.",
        citation="Friedman, Stochastic gradient boosting, Computational Statistics & Data Analysis "
        "2002. Why P against U ranks as positive against negative does: Elkan and Noto, KDD 2008.",
        fidelity="scikit-learn's trees, with equal weight of P and U; each split tries the square "
        "root of all features. The settings of backbone and training have no effect.",
        licence="Ours, under Apache-2.0, on scikit-learn (BSD-3-Clause).",
        good_at="Tables with many rows, in which columns act together.",
        bad_at="Few positives: it learns which of them happen to be labelled.",
        variants={},
        logs={},
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> "Boosting":
        """Return a Boosting without trees; it does not use the backbone."""
        return Boosting(self, prod(facts.sample_shape))


class Boosting(_Trees):
    """A sum of small trees, as log odds of P against U."""

    title = "Boosting"

    def __init__(self, config: BoostingConfig, width: int) -> None:
        super().__init__(width)
        self.config = config

    def fit(
        self,
        features: Features,
        labelled: Mask,
        rng: np.random.Generator,
        *,
        negative: Mask | None = None,
        weights: Weights | None = None,
    ) -> None:
        """Grow the trees, one after the other."""
        from sklearn.ensemble import GradientBoostingClassifier  # a second to import

        model = GradientBoostingClassifier(
            n_estimators=self.config.trees,
            max_depth=self.config.depth,
            learning_rate=self.config.learning_rate,
            subsample=self.config.subsample,
            max_features="sqrt",
            init="zero",  # both classes have equal weight, so the first log odds are 0
            random_state=int(rng.integers(SEEDS)),
        )
        rows = checked_features(features, self.width, self.title)
        data = TrainingRows(rows, labelled, negative, weights)
        model.fit(rows, labelled, sample_weight=data.balanced())
        trees = [tree.tree_ for tree in model.estimators_.ravel()]
        rate = self.config.learning_rate
        self.leaves = leaves_of(trees, (rate * tree.value[:, 0, 0] for tree in trees))

    def scores(self, features: Features) -> Float64[np.ndarray, "m"]:
        """Return how likely each sample is to be of P, were P and U equally frequent."""
        return logistic(self._sums(features))

    def express(self, graph: Graph, features: Value) -> Value:
        """Add the steps from samples to scores."""
        return graph.logistic(graph.sum_of_leaves(features, self._grown()))
