"""PUET's tree by recursion and numpy: slow, obvious, and drawing the same random numbers."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from onesided.trees.forest import TreeSettings

MASK = 2**64 - 1


def split_mix(seed: int) -> Iterator[int]:
    """Yield the words of SplitMix64, as its authors printed it."""
    state = seed
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        word = state
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
        yield word ^ (word >> 31)


def quadratic(positive: float, negative: float) -> float:
    return 4 * positive * negative / (positive + negative)


def logistic(positive: float, negative: float) -> float:
    if negative < -1e-12:
        return -math.inf
    if negative <= 1e-12:
        return 0.0
    mass = positive + negative
    return -positive * math.log(positive / mass) - negative * math.log(negative / mass)


LOSSES: dict[str, Callable[[float, float], float]] = {"quadratic": quadratic, "logistic": logistic}


@dataclass(frozen=True)
class PlainNode:
    """A node with everything below it."""

    labelled: int
    unlabelled: int
    positive: bool = False
    feature: int = -1
    cut: float = 0.0
    left: "PlainNode | None" = None
    right: "PlainNode | None" = None

    def in_order(self) -> Iterator["PlainNode"]:
        """Yield this node, then all on the left, then all on the right."""
        yield self
        for child in (self.left, self.right):
            if child is not None:
                yield from child.in_order()

    def votes_positive(self, sample: np.ndarray) -> bool:
        if self.left is None or self.right is None:
            return self.positive
        child = self.left if float(sample[self.feature]) <= self.cut else self.right
        return child.votes_positive(sample)


class PlainTree:
    """Samples, settings and random numbers of one tree; `grow` returns its root."""

    def __init__(
        self,
        features: np.ndarray,
        labelled: np.ndarray,
        settings: TreeSettings,
        seed: int = 0,
    ) -> None:
        self.features, self.labelled = features, labelled
        self.per_labelled = settings.prior / labelled.sum()
        self.per_unlabelled = 1 / (~labelled).sum()
        self.settings, self.loss = settings, LOSSES[settings.loss]
        self.max_features = settings.max_features or math.ceil(math.sqrt(features.shape[1]))
        self.max_depth = settings.max_depth or math.inf
        self.words = split_mix(seed)
        self.order = list(range(features.shape[1]))

    def grow(self) -> PlainNode:
        return self._node(np.arange(len(self.features)), 0, self.features.shape[1])

    def impurity(self, labelled: int, unlabelled: int) -> float:
        if labelled == 0:
            return 0.0
        positive = self.per_labelled * labelled
        negative = self.per_unlabelled * unlabelled - positive
        if self.settings.estimator == "nnpu" and negative <= 1e-12:
            return 0.0
        return self.loss(positive, negative) if unlabelled else -math.inf

    def _draw(self) -> float:
        return (next(self.words) >> 11) / 2**53

    def _node(self, rows: np.ndarray, depth: int, varying: int) -> PlainNode:
        labelled = int(self.labelled[rows].sum())
        unlabelled = len(rows) - labelled
        risk = self.impurity(labelled, unlabelled)
        done = (
            risk == 0 if self.settings.estimator == "nnpu" else labelled == 0 or risk == -math.inf
        )
        if done or depth >= self.max_depth or len(rows) <= self.settings.min_samples_leaf:
            return PlainNode(labelled, unlabelled, self._majority(labelled, unlabelled))
        feature, cut, varying = self._best_cut(rows, varying)
        if feature < 0:
            return PlainNode(labelled, unlabelled, self._majority(labelled, unlabelled))
        goes_left = self.features[rows, feature] <= np.float64(cut)
        left = self._node(rows[goes_left], depth + 1, varying)
        right = self._node(rows[~goes_left], depth + 1, varying)
        return PlainNode(labelled, unlabelled, False, feature, cut, left, right)

    def _majority(self, labelled: int, unlabelled: int) -> bool:
        positive, mass = self.per_labelled * labelled, self.per_unlabelled * unlabelled
        if abs(2 * positive - mass) <= 1e-12:
            return self._draw() < 0.5
        return bool(2 * positive > mass)

    def _best_cut(self, rows: np.ndarray, varying: int) -> tuple[int, float, int]:
        """Return feature, cut, and how many features may still vary below this node."""
        best, least = (-1, 0.0), math.inf
        undrawn, found = varying, 0
        labelled, order = self.labelled[rows], self.order
        while found < self.max_features and undrawn > 0:
            place = int(self._draw() * undrawn)
            feature = order[place]
            undrawn -= 1
            order[place] = order[undrawn]
            values = self.features[rows, feature]
            if values.min() == values.max():
                varying -= 1
                order[undrawn], order[varying] = order[varying], feature
                continue
            order[undrawn] = feature
            found += 1
            low, high = between(values)
            for _ in range(self.settings.max_candidates):
                cut = low + self._draw() * (high - low)
                risk = self._risk_of_halves(values <= np.float64(cut), labelled)
                if risk < least:
                    best, least = (feature, cut), risk
        return *best, varying

    def _risk_of_halves(self, left: np.ndarray, labelled: np.ndarray) -> float:
        here, all_labelled = int((left & labelled).sum()), int(labelled.sum())
        others, all_others = int(left.sum()) - here, len(left) - all_labelled
        rest = self.impurity(all_labelled - here, all_others - others)
        return self.impurity(here, others) + rest


def between(values: np.ndarray) -> tuple[float, float]:
    """Return the ends between which a cut is drawn; `values` has two different ones."""
    a, e = values.min(), values.max()
    b, c = values[values > a].min(), values[values < e].max()
    a, b, c, e = (float(value) for value in (a, b, c, e))
    return a + 0.4 * (b - a), c + 0.6 * (e - c)
