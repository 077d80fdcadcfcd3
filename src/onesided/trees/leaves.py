"""Trees that scikit-learn grew, kept as a few arrays: a model file holds no pickled object.

Scores are computed from these arrays, before saving and after loading, so both are equal to
the bit.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64, Int32, Int64, Shaped

from onesided.core.errors import CheckpointError, ContractError, DataError
from onesided.trees.forest import LEAF, check_nodes


@dataclass(frozen=True)
class Leaves:
    """All nodes of all trees, tree after tree; a left child follows its parent.

    Attributes:
        roots: First node of each tree.
        feature: Feature that a node tests, -1 at a leaf.
        cut: Values up to it go left.
        right: Node of the right child, 0 at a leaf.
        value: What a leaf adds to the sum over trees.
    """

    roots: Int64[np.ndarray, "trees"]
    feature: Int32[np.ndarray, "nodes"]
    cut: Float64[np.ndarray, "nodes"]
    right: Int64[np.ndarray, "nodes"]
    value: Float64[np.ndarray, "nodes"]


def leaves_of(trees: Iterable[Any], values: Iterable[np.ndarray]) -> Leaves:
    """Return the nodes of scikit-learn's trees (`tree_`), with a value for each node."""
    parts: dict[str, list[np.ndarray]] = {name: [] for name in ("feature", "cut", "right", "value")}
    roots, root = [], 0
    for tree, value in zip(trees, values, strict=True):
        split = tree.children_left != LEAF
        if (tree.children_left[split] != np.flatnonzero(split) + 1).any():
            raise ContractError("scikit-learn no longer writes the left child behind its parent.")
        roots.append(root)
        parts["feature"].append(np.where(split, tree.feature, LEAF).astype(np.int32))
        parts["cut"].append(np.where(split, tree.threshold, 0.0))
        parts["right"].append(np.where(split, tree.children_right + root, 0).astype(np.int64))
        parts["value"].append(np.where(split, 0.0, value))
        root += tree.node_count
    joined = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    return Leaves(np.array(roots, np.int64), **joined)


def restored_leaves(parts: Mapping[str, np.ndarray], features: int) -> Leaves:
    """Return the trees of these arrays, or refuse them: compiled code does not check them."""
    if {len(part) for name, part in parts.items() if name != "roots"} != {len(parts["feature"])}:
        raise CheckpointError("The trees are damaged: their arrays differ in length.")
    check_nodes(parts["roots"], parts["feature"], parts["cut"], parts["right"], features)
    if not np.isfinite(parts["value"]).all():
        raise CheckpointError("The trees are damaged: a leaf's value is not a number.")
    return Leaves(**parts)


def sum_of_leaves(leaves: Leaves, features: Shaped[np.ndarray, "n d"]) -> Float64[np.ndarray, "n"]:
    """Return for each sample the sum of the values of the leaves it falls into."""
    from onesided.trees.grow import add_leaves  # compiled code: a second to import

    numbers = np.ascontiguousarray(features, dtype=np.float32)
    if not np.isfinite(numbers).all():
        raise DataError("The features hold NaN or infinity, which no cut can divide. Fill them.")
    return add_leaves(numbers, leaves.roots, leaves.feature, leaves.cut, leaves.right, leaves.value)
