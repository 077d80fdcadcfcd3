"""Many trees: grown in parallel, stored as a few arrays, predicting by majority vote."""

import math
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Bool, Float64, Int32, Int64, Shaped

from onesided.core.errors import CheckpointError, ConfigError, DataError

if TYPE_CHECKING:
    from onesided.trees.grow import Tree
    from onesided.trees.impurity import Risk

Estimator = Literal["nnpu", "upu"]
Loss = Literal["quadratic", "logistic"]

LEAF = -1
ROWS_AT_ONCE = 64


@dataclass(frozen=True)
class TreeSettings:
    """Settings of a tree; the defaults are the published ones.

    Attributes:
        prior: Share of positives among the unlabelled, pi.
        estimator: nnpu stops where P outweighs U; upu continues below zero.
        max_features: Features tried per node; 0 takes the square root of all, rounded up.
        max_candidates: Random cuts per feature.
        max_depth: Depth of the deepest node; 0 sets no limit.
        min_samples_leaf: A node of at most this many rows is not split.
    """

    prior: float
    estimator: Estimator = "nnpu"
    loss: Loss = "quadratic"
    max_features: int = 0
    max_candidates: int = 1
    max_depth: int = 0
    min_samples_leaf: int = 1

    def features_per_node(self, features: int) -> int:
        """Return how many of the features a node tries."""
        return self.max_features or math.isqrt(features - 1) + 1


@dataclass(frozen=True)
class Forest:
    """All nodes of all trees, tree after tree; a left child follows its parent.

    Attributes:
        roots: First node of each tree.
        feature: Feature that a node tests, -1 at a leaf.
        cut: Values up to it go left.
        right: Node of the right child, 0 at a leaf.
        positive: What a leaf votes for.
        labelled: Labelled positives that reached the node in training.
        unlabelled: Unlabelled samples that did.
    """

    roots: Int64[np.ndarray, "trees"]
    feature: Int32[np.ndarray, "nodes"]
    cut: Float64[np.ndarray, "nodes"]
    right: Int64[np.ndarray, "nodes"]
    positive: Bool[np.ndarray, "nodes"]
    labelled: Int32[np.ndarray, "nodes"]
    unlabelled: Int32[np.ndarray, "nodes"]


def grow_forest(
    features: np.ndarray,
    labelled: np.ndarray,
    settings: TreeSettings,
    rng: np.random.Generator,
    *,
    trees: int = 100,
    threads: int = 1,
) -> Forest:
    """Return trees that all train on all of P and U and differ by their random cuts.

    PUET (Wilton et al. 2022). Every tree has its own seed, drawn before the first one
    grows: the forest is the same for any number of threads, and the first 50 of 100 trees
    are those of a forest of 50. Memory: one copy of the features, feature by feature.

    Args:
        features: One row of numbers per sample; uint8 stays, other types become float32.
        labelled: Which samples are labelled positive, as booleans.
        rng: Source of the trees' seeds.
        threads: How many trees grow at a time.
    """
    from onesided.trees.grow import Limits, grow_tree  # compiled code: a second to import

    _check_samples(features, labelled)
    columns = by_feature(features)
    rows = np.concatenate([np.flatnonzero(labelled), np.flatnonzero(~labelled)]).astype(np.uint32)
    count = int(labelled.sum())
    risk = _risk(settings, count, len(rows) - count)
    limits = Limits(
        features=settings.features_per_node(features.shape[1]),
        candidates=settings.max_candidates,
        depth=settings.max_depth or len(rows),  # no tree is deeper than that
        samples=settings.min_samples_leaf,
    )
    seeds = rng.integers(2**64, size=trees, dtype=np.uint64)
    # Threads, not processes: compiled code needs no lock, and threads share the columns.
    with ThreadPoolExecutor(threads) as pool:
        grown = pool.map(lambda seed: grow_tree(columns, rows, count, risk, limits, seed), seeds)
        return _joined(grown)


def positive_votes(forest: Forest, features: Shaped[np.ndarray, "n d"]) -> Float64[np.ndarray, "n"]:
    """Return the share of trees that call each sample positive.

    PUET decides by majority, and a tie is negative: positive means more than one half.
    """
    from onesided.trees.grow import add_leaves

    if features.shape[1] <= forest.feature.max():
        raise DataError(
            f"The trees use feature {forest.feature.max()}, counted from 0, and the samples "
            f"have {features.shape[1]} features. Give samples like those of training."
        )
    with np.errstate(over="ignore"):
        numbers = np.ascontiguousarray(features, dtype=_kind(features))
    _check_finite(numbers)
    nodes = forest.feature, forest.cut, forest.right, forest.positive
    return add_leaves(numbers, forest.roots, *nodes) / len(forest.roots)


def importances(
    forest: Forest, settings: TreeSettings, features: int
) -> Float64[np.ndarray, "features"]:
    """Return by how much the splits on each feature reduce the risk, per tree.

    PUET's feature importance: a node's risk minus that of its two children, summed over the
    splits. Fully grown nnPU trees have no risk left, so the sum over all features is the risk of
    the root, 4 pi (1 - pi) for quadratic loss. With uPU a split that isolates labelled positives
    has an infinite gain, and the importance is infinite.
    """
    from onesided.trees.impurity import impurities

    root = forest.roots[0]
    risk = _risk(settings, int(forest.labelled[root]), int(forest.unlabelled[root]))
    counts = forest.labelled.astype(np.int64), forest.unlabelled.astype(np.int64)
    left = impurities(risk, *counts)
    split = np.flatnonzero(forest.feature != LEAF)
    gains = left[split] - left[split + 1] - left[forest.right[split]]
    sums = np.bincount(forest.feature[split], weights=gains, minlength=features)
    return sums / len(forest.roots)


def restored(parts: Mapping[str, np.ndarray], features: int) -> Forest:
    """Return the forest of these arrays, or refuse them: compiled code does not check them.

    A child comes after its parent and before the next tree, so every path ends at a leaf
    of its own tree.

    Args:
        parts: The fields of a `Forest` by name, each of its own type.
        features: How many features a sample has.
    """
    nodes = len(parts["feature"])
    if {len(part) for name, part in parts.items() if name != "roots"} != {nodes}:
        raise CheckpointError("The trees are damaged: their arrays differ in length.")
    roots = parts["roots"]
    check_nodes(roots, parts["feature"], parts["cut"], parts["right"], features)
    if min(parts["labelled"][roots].min(), parts["unlabelled"][roots].min()) < 1:
        raise CheckpointError("The trees are damaged: a tree was grown without P or without U.")
    return Forest(**parts)


def check_nodes(
    roots: np.ndarray, feature: np.ndarray, cut: np.ndarray, right: np.ndarray, features: int
) -> None:
    """Refuse nodes of which a path could leave its tree or never end."""
    nodes = len(feature)
    if len(roots) == 0 or roots[0] != 0 or (np.diff(roots) <= 0).any() or roots[-1] >= nodes:
        raise CheckpointError("The trees are damaged: roots are not in ascending order.")
    if (feature < LEAF).any() or (feature >= features).any():
        raise CheckpointError(f"The trees are damaged: they use features beyond {features}.")
    split = np.flatnonzero(feature != LEAF)
    ends = np.append(roots[1:], nodes)[np.searchsorted(roots, split, side="right") - 1]
    if (
        (right[split] <= split + 1).any()
        or (right[split] >= ends).any()
        or not np.isfinite(cut).all()
    ):
        raise CheckpointError("The trees are damaged: a node's children are not in its tree.")


def _check_samples(features: np.ndarray, labelled: np.ndarray) -> None:
    if features.ndim != 2 or labelled.shape != features.shape[:1] or features.shape[1] == 0:
        raise DataError(
            f"Trees take one row of numbers per sample and one label per row; got features of "
            f"shape {features.shape} and labels of shape {labelled.shape}."
        )
    if labelled.dtype != bool:
        raise DataError(f"Trees take labels as booleans, True for positive; got {labelled.dtype}.")
    if not labelled.any() or labelled.all():
        raise DataError(
            f"Trees need labelled positives and unlabelled samples; {int(labelled.sum())} of "
            f"{len(labelled)} rows are labelled."
        )


def by_feature(features: Shaped[np.ndarray, "n d"]) -> Shaped[np.ndarray, "d n"]:
    """Return a copy with one row per feature; uint8 stays, other types become float32.

    A few rows at a time fit into the CPU's cache: that takes a third of the time of one large
    transposition, and no second copy where the type changes.
    """
    columns = np.empty(features.shape[::-1], _kind(features))
    with np.errstate(over="ignore"):  # what overflows is refused below
        for start in range(0, len(features), ROWS_AT_ONCE):
            end = start + ROWS_AT_ONCE
            columns[:, start:end] = features[start:end].T
    _check_finite(columns)
    return columns


def _kind(features: np.ndarray) -> type[np.generic]:
    return np.uint8 if features.dtype == np.uint8 else np.float32


def _check_finite(numbers: np.ndarray) -> None:
    if numbers.dtype == np.uint8:
        return
    # Minimum and maximum show NaN and infinity without another array of this size.
    if numbers.size and not (np.isfinite(numbers.min()) and np.isfinite(numbers.max())):
        raise DataError(
            "The features hold NaN or infinity (beyond 3.4e38), which no cut can divide. "
            "Fill, drop or scale them."
        )


def _risk(settings: TreeSettings, labelled: int, unlabelled: int) -> "Risk":
    from onesided.trees.impurity import LOGISTIC, NON_NEGATIVE, QUADRATIC, UNBIASED, Risk

    if not 0 < settings.prior < 1:
        raise ConfigError(
            f"PU trees got prior {settings.prior:g}. It is the share of positives among the "
            "unlabelled and lies between 0 and 1."
        )
    estimator = {"nnpu": NON_NEGATIVE, "upu": UNBIASED}[settings.estimator]
    loss = {"quadratic": QUADRATIC, "logistic": LOGISTIC}[settings.loss]
    return Risk(settings.prior / labelled, 1 / unlabelled, estimator, loss)


def _joined(grown: "Iterable[Tree]") -> Forest:
    trees = list(grown)
    roots = np.cumsum([0, *(len(tree.feature) for tree in trees[:-1])], dtype=np.int64)
    right = [
        np.where(tree.feature == LEAF, 0, tree.right + root)
        for tree, root in zip(trees, roots, strict=True)
    ]
    names = trees[0]._fields
    parts = {name: np.concatenate([getattr(tree, name) for tree in trees]) for name in names}
    return Forest(**parts | {"roots": roots, "right": np.concatenate(right)})
