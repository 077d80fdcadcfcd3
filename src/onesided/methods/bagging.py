"""Bagging: P against many random parts of U, averaged (Mordelet and Vert 2014).

Mordelet and Vert, A bagging SVM to learn from positive and unlabeled examples, Pattern Recognition
Letters 2014. Symbols:

    T        `bags`, number of bootstrap samples         U_t   bootstrap sample t of U
    K        `bag_size`, size of a bootstrap sample      f_t   classifier of P against U_t

    a new item           f(x) = mean over all t of f_t(x)                     Algorithm 1
    an item of U         s(x) = mean over all t with x not in U_t of f_t(x)   Algorithm 2

The positives that hide in U make every U_t wrong in another way; the mean forgets it. An item of U
is only scored by classifiers that were not told "negative" about it.
"""

from collections.abc import Mapping
from hashlib import blake2b
from math import prod
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64
from pydantic import Field
from torch import Tensor

from onesided.core.batch import DataFacts
from onesided.core.errors import CheckpointError, DataError, OnesidedError
from onesided.core.folds import same_content
from onesided.methods.against_pool import (
    Features,
    Mask,
    TrainingRows,
    Weights,
    checked_features,
    checked_state,
    logistic,
)
from onesided.methods.base import Card, MethodConfig
from onesided.methods.forest import SEEDS, Forest, ForestConfig
from onesided.methods.graph import Graph, Value
from onesided.methods.linear import Linear, LinearConfig
from onesided.nets.standardise import Backbone, Standardise
from onesided.trees.leaves import leaves_of

OWN: Mapping[str, torch.dtype] = {"pool": torch.int64, "pool_value": torch.float64}
"""Content of the unlabelled rows as hashes, in ascending order, and what each got out of bag."""


class BaggingConfig(MethodConfig):
    """Settings of Bagging."""

    learner: Literal["tree", "linear"] = "tree"
    """Classifier of each bag: a decision tree, or Linear."""
    bags: int = Field(default=100, ge=1)
    """Number of bootstrap samples of U, T."""
    bag_size: int = Field(default=0, ge=0)
    """Unlabelled items drawn for a bag, with replacement, K; 0 draws as many as P has."""
    min_samples_leaf: int = Field(default=1, ge=1)
    """Fewest samples in a leaf of a tree."""
    penalty: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Penalty of Linear."""

    uses_negatives: ClassVar[bool] = True
    uses_weights: ClassVar[bool] = True
    trains_backbone: ClassVar[bool] = False
    card: ClassVar[Card] = Card(
        title="Bagging",
        summary="Classifiers of P against random parts of U, averaged; items of U out of bag.",
        citation="Mordelet, Vert, A bagging SVM to learn from positive and unlabeled examples, "
        "Pattern Recognition Letters 2014.",
        fidelity="Both published algorithms: new items get the mean of all classifiers, items of U "
        "that of those without them. The paper's classifier is an SVM; here it is a tree or "
        "logistic regression, with equal weight of P and the bag. The paper only ranks: what 0.5 "
        "means is ours. Known negatives are in every bag, also an addition. The settings of "
        "backbone and training have no effect.",
        licence="Ours, under Apache-2.0, on scikit-learn (BSD-3-Clause).",
        good_at="Few positives and a pool with many hidden ones; ranking the pool itself.",
        bad_at="Decisions at 0.5, which the method says nothing about; many features of which "
        "each says little (trees).",
        variants={"tree": "decision trees (default)", "linear": "logistic regressions"},
        logs={},  # fitted in one call: there are no epochs
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> "Bagging":
        """Return a Bagging that is not fitted; of the backbone it takes the scale of vectors."""
        given = backbone.standardise if len(facts.sample_shape) == 1 else None
        return Bagging(self, prod(facts.sample_shape), given)


class Bagging:
    """The mean of all classifiers, and for each item of U that of the classifiers without it."""

    title = "Bagging"

    def __init__(
        self, config: BaggingConfig, width: int, standardise: Standardise | None = None
    ) -> None:
        self.config = config
        self.width = width
        self.standardise = standardise
        self.mean = self._learner()
        self.pool: np.ndarray | None = None
        self.pool_value = np.zeros(0)

    def fit(
        self,
        features: Features,
        labelled: Mask,
        rng: np.random.Generator,
        *,
        negative: Mask | None = None,
        weights: Weights | None = None,
    ) -> None:
        """Draw the bags, fit a classifier to each, and average."""
        rows = checked_features(features, self.width, self.title)
        data = TrainingRows(rows, labelled, negative, weights)
        pool = np.flatnonzero(data.unlabelled)
        bags = draw_bags(
            pool_weights(data),
            bags=self.config.bags,
            size=self.config.bag_size or int(labelled.sum()),
            rng=rng,
        )
        seed, content = int(rng.integers(SEEDS)), same_content(rows[pool])
        classifiers, out_of_bag = [], OutOfBag(len(pool))
        for number, bag in enumerate(bags):
            one = self._classifier(_with_bag(data, pool[bag]), (seed + number) % SEEDS)
            classifiers.append(one)
            # Equal rows are one item: a copy in the bag was called negative as well.
            outside = ~np.isin(content, content[bag])
            out_of_bag.add(outside, _values(one, rows[pool[outside]]))
        self.mean = self._averaged(classifiers)
        self._remember(rows[pool], out_of_bag.means(_values_of_mean(self.mean, rows[pool])))

    def scores(self, features: Features) -> Float64[np.ndarray, "m"]:
        """Return the mean of all classifiers; for an item of U, of those that had it not."""
        if self.pool is None:
            raise OnesidedError("Bagging is not fitted yet: call fit, or load a saved model.")
        rows = checked_features(features, self.width, self.title)
        values = _values_of_mean(self.mean, rows)
        if len(self.pool) and len(rows):
            keys = content_keys(rows)
            place = np.minimum(np.searchsorted(self.pool, keys), len(self.pool) - 1)
            values = np.where(self.pool[place] == keys, self.pool_value[place], values)
        return np.clip(values, 0, 1) if isinstance(self.mean, Forest) else logistic(values)

    def express(self, graph: Graph, features: Value) -> Value:
        """Add the steps from samples to the mean of all classifiers."""
        graph.note(
            "Items of the pool that Bagging was trained on get the score of a new item: a graph "
            "holds no list of them and of what they got out of bag."
        )
        return self.mean.express(graph, features)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the mean classifier, and the items of U with what they got out of bag."""
        if self.pool is None:
            raise OnesidedError("Bagging is not fitted yet: call fit, or load a saved model.")
        own = {"pool": torch.from_numpy(self.pool), "pool_value": torch.from_numpy(self.pool_value)}
        return own | self.mean.state_dict()

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore classifier and items, or refuse what does not fit."""
        own = {name: value for name, value in state.items() if name in OWN}
        numbers = checked_state(own, OWN, self.title)
        sound = len(numbers["pool"]) == len(numbers["pool_value"])
        if not sound or (np.diff(numbers["pool"]) <= 0).any():
            raise CheckpointError("The model is damaged: items and their values do not fit.")
        if not np.isfinite(numbers["pool_value"]).all():
            raise CheckpointError("The model is damaged: a value of an item is not a number.")
        self.mean.load_state_dict({k: v for k, v in state.items() if k not in OWN})
        self.pool, self.pool_value = numbers["pool"], numbers["pool_value"]

    def _learner(self) -> Linear | Forest:
        if self.config.learner == "tree":
            return Forest(ForestConfig(), self.width)
        return Linear(LinearConfig(penalty=self.config.penalty), self.width, self.standardise)

    def _classifier(self, data: TrainingRows, seed: int) -> Any:  # noqa: ANN401 - scikit-learn's
        """Return f_t: a tree of scikit-learn, or a Linear."""
        if self.config.learner == "linear":
            linear = Linear(LinearConfig(penalty=self.config.penalty), self.width, self.standardise)
            linear.fit(
                data.features,
                data.labelled,
                np.random.default_rng(seed),  # a penalty that is given leaves nothing to draw
                negative=data.negative,
                weights=data.weights,
            )
            return linear
        from sklearn.tree import DecisionTreeClassifier  # a second to import

        tree = DecisionTreeClassifier(
            min_samples_leaf=self.config.min_samples_leaf, random_state=seed
        )
        return tree.fit(data.features, data.labelled, sample_weight=data.balanced())

    def _averaged(self, classifiers: list[Any]) -> Linear | Forest:
        """Return one model whose value is the mean of all: margins of lines, shares of trees."""
        mean = self._learner()
        if isinstance(mean, Linear):
            each = [one.numbers for one in classifiers]
            slopes = np.stack([one["weight"] / one["scale"] for one in each])
            biases = [one["bias"] - one["centre"] @ (one["weight"] / one["scale"]) for one in each]
            mean.numbers = {
                "centre": np.zeros(self.width),
                "scale": np.ones(self.width),
                "weight": slopes.mean(axis=0),
                "bias": np.mean(biases, axis=0),
            }
        else:
            trees = [one.tree_ for one in classifiers]
            mean.leaves = leaves_of(trees, (tree.value[:, 0, 1] / len(trees) for tree in trees))
        return mean

    def _remember(self, rows: np.ndarray, values: Weights) -> None:
        self.pool, first = np.unique(content_keys(rows), return_index=True)
        self.pool_value = values[first]


class OutOfBag:
    """Sum and number of the values that each item of U got while it was not in a bag."""

    def __init__(self, items: int) -> None:
        self.sum, self.count = np.zeros(items), np.zeros(items, np.int64)

    def add(self, outside: Bool[np.ndarray, "m"], values: Float64[np.ndarray, "k"]) -> None:
        """Add the values of one classifier for the items outside its bag."""
        self.sum[outside] += values
        self.count += outside

    def means(self, otherwise: Float64[np.ndarray, "m"]) -> Float64[np.ndarray, "m"]:
        """Return s(x); an item that was in every bag gets what a new item would get."""
        return np.where(self.count > 0, self.sum / np.maximum(self.count, 1), otherwise)


def draw_bags(
    weights: Weights, *, bags: int, size: int, rng: np.random.Generator
) -> Int64[np.ndarray, "bags size"]:
    """Return bootstrap samples of U: places in it, drawn with replacement by weight."""
    total = weights.sum()
    if not total > 0:
        raise DataError(
            "The weights of all unlabelled samples are zero in a part of the data that is trained "
            "on. Give more of them a weight above zero."
        )
    return rng.choice(len(weights), size=(bags, size), p=weights / total)


def pool_weights(data: TrainingRows) -> Weights:
    """Return how often each unlabelled row is drawn, in proportion."""
    pool = data.unlabelled
    return np.ones(int(pool.sum())) if data.weights is None else data.weights[pool]


def content_keys(rows: Features) -> Int64[np.ndarray, "n"]:
    """Return a number for each row that equal rows share, and others by a chance of 2^-64."""
    flat = np.ascontiguousarray(rows, np.float32) + np.float32(0)  # -0 and 0 are equal
    found = [blake2b(row.tobytes(), digest_size=8).digest() for row in flat]
    return np.frombuffer(b"".join(found), np.dtype("<i8")).astype(np.int64)


def _with_bag(data: TrainingRows, bag: Int64[np.ndarray, "size"]) -> TrainingRows:
    """Return P, known negatives and the drawn rows, each of which counts once per draw."""
    chosen = data.some(np.concatenate([np.flatnonzero(~data.unlabelled), bag]))
    if chosen.weights is None:
        return chosen
    weights = np.where(chosen.unlabelled, 1.0, chosen.weights)
    return TrainingRows(chosen.features, chosen.labelled, chosen.negative, weights)


def _values(classifier: Any, rows: Features) -> Weights:  # noqa: ANN401 - scikit-learn's
    """Return what is averaged: margins of Linear, shares of P in the leaves of a tree."""
    if not len(rows):
        return np.zeros(0)
    if isinstance(classifier, Linear):
        return classifier.margins(rows)
    shares: np.ndarray = classifier.predict_proba(rows)[:, 1]
    return shares


def _values_of_mean(mean: Linear | Forest, rows: Features) -> Weights:
    return mean.margins(rows) if isinstance(mean, Linear) else mean.scores(rows)
