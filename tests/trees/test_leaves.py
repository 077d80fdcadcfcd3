"""Trees of scikit-learn as arrays: the same sums, and nothing damaged is walked through."""

from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from onesided.core.errors import CheckpointError, DataError
from onesided.trees.leaves import Leaves, leaves_of, restored_leaves, sum_of_leaves

WIDTH = 4


def grown(trees: int = 3, seed: int = 0) -> list[Any]:
    random = np.random.default_rng(seed)
    points = random.normal(size=(80, WIDTH)).astype(np.float32)
    return [
        DecisionTreeRegressor(max_depth=4, random_state=number)
        .fit(points, random.normal(size=80))
        .tree_
        for number in range(trees)
    ]


def leaves_from(trees: list[Any]) -> Leaves:
    return leaves_of(trees, (tree.value[:, 0, 0] for tree in trees))


def parts_of(leaves: Leaves) -> dict[str, np.ndarray]:
    return {name: part.copy() for name, part in vars(leaves).items()}


def slow_sum(trees: list[Any], sample: np.ndarray) -> float:
    """Walk scikit-learn's own arrays, one node at a time."""
    total = 0.0
    for tree in trees:
        node = 0
        while tree.children_left[node] != -1:
            goes_left = sample[tree.feature[node]] <= tree.threshold[node]
            node = tree.children_left[node] if goes_left else tree.children_right[node]
        total += tree.value[node, 0, 0]
    return total


def test_the_sum_is_that_of_a_walk_through_every_tree() -> None:
    trees = grown()
    points = np.random.default_rng(1).normal(size=(50, WIDTH)).astype(np.float32)
    found = sum_of_leaves(leaves_from(trees), points)
    assert found.tolist() == pytest.approx([slow_sum(trees, point) for point in points])


def test_a_value_on_the_cut_goes_left() -> None:
    leaves = Leaves(
        roots=np.array([0]),
        feature=np.array([0, -1, -1], np.int32),
        cut=np.array([0.5, 0.0, 0.0]),
        right=np.array([2, 0, 0]),
        value=np.array([0.0, 1.0, 2.0]),
    )
    above = np.nextafter(np.float32(0.5), np.float32(1))
    points = np.array([[0.5], [above], [0.0]], np.float32)
    assert sum_of_leaves(leaves, points).tolist() == [1.0, 2.0, 1.0]


def test_arrays_of_sound_trees_are_taken_back() -> None:
    leaves = leaves_from(grown())
    again = restored_leaves(parts_of(leaves), WIDTH)
    for name, part in vars(leaves).items():
        assert np.array_equal(getattr(again, name), part)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("feature", 0, WIDTH),
        ("feature", 0, -2),
        ("right", 0, 0),
        ("right", 0, 1),
        ("right", 0, 10**6),
        ("cut", 0, np.nan),
        ("value", -1, np.inf),
        ("value", -1, np.nan),
        ("roots", 0, 1),
        ("roots", 1, 0),
        ("roots", -1, 10**6),
    ],
)
def test_a_damaged_node_is_refused_before_any_path_is_followed(
    name: str, place: int, value: float
) -> None:
    parts = parts_of(leaves_from(grown()))
    parts[name][place] = value
    with pytest.raises(CheckpointError, match="The trees are damaged"):
        restored_leaves(parts, WIDTH)


def test_a_right_child_in_the_next_tree_is_refused() -> None:
    parts = parts_of(leaves_from(grown()))
    parts["right"][0] = parts["roots"][1]
    with pytest.raises(CheckpointError, match="children are not in its tree"):
        restored_leaves(parts, WIDTH)


@pytest.mark.parametrize("name", ["cut", "right", "value"])
def test_arrays_of_different_lengths_are_refused(name: str) -> None:
    parts = parts_of(leaves_from(grown()))
    parts[name] = parts[name][:-1]
    with pytest.raises(CheckpointError, match="differ in length"):
        restored_leaves(parts, WIDTH)


def test_no_trees_at_all_are_refused() -> None:
    parts = parts_of(leaves_from(grown()))
    with pytest.raises(CheckpointError, match="damaged"):
        restored_leaves({**parts, "roots": parts["roots"][:0]}, WIDTH)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_no_cut_can_divide_is_refused(bad: float) -> None:
    points = np.zeros((2, WIDTH), np.float32)
    points[1, 2] = bad
    with pytest.raises(DataError, match="NaN or infinity"):
        sum_of_leaves(leaves_from(grown()), points)
