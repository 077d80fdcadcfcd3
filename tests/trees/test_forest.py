import subprocess
import sys
import tracemalloc
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from onesided.core.errors import CheckpointError, ConfigError, DataError
from onesided.trees.forest import (
    Forest,
    TreeSettings,
    by_feature,
    grow_forest,
    importances,
    positive_votes,
    restored,
)
from tests.trees.plain_tree import PlainTree

PUBLISHED = TreeSettings(0.4)
PARTS = [field.name for field in fields(Forest)]


def problem(rows: int = 400, width: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers of which only the first separates P and U."""
    random = np.random.default_rng(0)
    features = random.standard_normal((rows, width)).astype(np.float32)
    labelled = np.arange(rows) < rows // 5
    features[labelled | (random.random(rows) < 0.3), 0] += 3
    return features, labelled


def grown(
    settings: TreeSettings = PUBLISHED, *, seed: int = 0, trees: int = 8, threads: int = 1
) -> Forest:
    random = np.random.default_rng(seed)
    return grow_forest(*problem(), settings, random, trees=trees, threads=threads)


def equal(first: Forest, second: Forest) -> bool:
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in PARTS)


def test_the_number_of_threads_changes_nothing() -> None:
    alone = grown(trees=20)
    assert equal(alone, grown(trees=20, threads=2))
    assert equal(alone, grown(trees=20, threads=7))


def test_another_seed_gives_other_trees() -> None:
    assert equal(grown(), grown())
    assert not equal(grown(), grown(seed=1))


def test_the_trees_of_a_forest_differ() -> None:
    forest = grown(trees=10)
    assert len(set(forest.cut[forest.roots].tolist())) == 10


def test_more_trees_are_the_same_trees_and_some_more() -> None:
    few, many = grown(trees=3), grown(trees=8)
    nodes = len(few.feature)
    assert many.roots[:3].tolist() == few.roots.tolist()
    assert many.roots[3] == nodes
    for name in ("feature", "cut", "right", "positive"):
        assert np.array_equal(getattr(many, name)[:nodes], getattr(few, name))


def test_pixels_and_the_same_numbers_as_floats_give_the_same_trees_and_votes() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, size=(200, 6)).astype(np.uint8)
    labelled = np.arange(200) < 40
    forests = [
        grow_forest(values, labelled, PUBLISHED, np.random.default_rng(1), trees=5)
        for values in (pixels, pixels.astype(np.float32), np.asfortranarray(pixels, dtype=float))
    ]
    assert equal(forests[0], forests[1])
    assert equal(forests[0], forests[2])
    votes = positive_votes(forests[0], pixels)
    assert np.array_equal(votes, positive_votes(forests[0], pixels.astype(np.float32)))


def test_votes_are_those_of_the_plain_trees() -> None:
    features, labelled = problem(rows=100)
    random = np.random.default_rng(4)
    forest = grow_forest(features, labelled, PUBLISHED, random, trees=6)
    seeds = np.random.default_rng(4).integers(2**64, size=6, dtype=np.uint64)
    trees = [PlainTree(features, labelled, PUBLISHED, int(seed)).grow() for seed in seeds]
    new = np.random.default_rng(5).standard_normal((50, 5)).astype(np.float32) * 3
    expected = [sum(tree.votes_positive(sample) for tree in trees) / 6 for sample in new]
    assert positive_votes(forest, new).tolist() == expected


def by_hand(roots: list[int], feature: list[int], right: list[int], positive: list[int]) -> Forest:
    """Return a forest that cuts at 2 wherever it cuts."""
    counts = np.ones(len(feature), dtype=np.int32)
    return Forest(
        roots=np.array(roots),
        feature=np.array(feature, dtype=np.int32),
        cut=np.full(len(feature), 2.0),
        right=np.array(right),
        positive=np.array(positive, dtype=bool),
        labelled=counts,
        unlabelled=counts,
    )


def test_a_tie_is_one_half_which_is_not_above_it() -> None:
    two_leaves = by_hand(roots=[0, 1], feature=[-1, -1], right=[0, 0], positive=[1, 0])
    assert positive_votes(two_leaves, np.zeros((2, 1), dtype=np.uint8)).tolist() == [0.5, 0.5]


def test_a_sample_on_the_cut_goes_left() -> None:
    stump = by_hand(roots=[0], feature=[1, -1, -1], right=[2, 0, 0], positive=[0, 1, 0])
    samples = np.array([[9, 1], [9, 2], [0, 3]], dtype=np.uint8)
    assert positive_votes(stump, samples).tolist() == [1, 1, 0]


@pytest.mark.parametrize("prior", [0.2, 0.4, 0.7])
def test_importances_sum_to_the_risk_of_the_root(prior: float) -> None:
    quadratic, logistic = TreeSettings(prior), TreeSettings(prior, loss="logistic")
    found = importances(grown(quadratic), quadratic, 5)
    assert found.sum() == pytest.approx(4 * prior * (1 - prior))
    entropy = -prior * np.log(prior) - (1 - prior) * np.log(1 - prior)
    assert importances(grown(logistic), logistic, 5).sum() == pytest.approx(entropy)


def test_importances_are_what_every_split_reduces_added_up_by_feature() -> None:
    settings = TreeSettings(0.4, max_depth=3)
    forest = grown(settings, trees=2)
    plain = PlainTree(*problem(), settings)
    expected = np.zeros(6)
    for node in np.flatnonzero(forest.feature >= 0):
        risks = [
            plain.impurity(int(forest.labelled[place]), int(forest.unlabelled[place]))
            for place in (node, node + 1, forest.right[node])
        ]
        expected[forest.feature[node]] += (risks[0] - risks[1] - risks[2]) / 2
    # A sixth feature that no tree asks about has no importance.
    assert importances(forest, settings, 6) == pytest.approx(expected)


def test_the_feature_that_tells_the_classes_apart_matters_most() -> None:
    found = importances(grown(trees=50), PUBLISHED, 5)
    assert found[0] > 3 * found[1:].max()


def test_unbiased_importances_are_infinite_where_positives_are_isolated() -> None:
    settings = TreeSettings(0.4, estimator="upu")
    found = importances(grown(settings), settings, 5)
    assert np.isposinf(found).any()
    assert not np.isnan(found).any()


@pytest.mark.parametrize(
    ("features", "tried"), [(2, 2), (9, 3), (3072, 56), (27648, 167), (12288, 111), (98304, 314)]
)
def test_a_node_tries_the_square_root_of_all_features_rounded_up(features: int, tried: int) -> None:
    assert TreeSettings(0.4).features_per_node(features) == tried


def test_pixels_are_copied_once_and_never_widened() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, size=(2000, 3000)).astype(np.uint8)
    labelled = np.arange(2000) < 200
    settings = TreeSettings(0.4, max_depth=1)
    grow_forest(pixels[100:300, :9], labelled[100:300], settings, np.random.default_rng(0), trees=1)
    tracemalloc.start()
    grow_forest(pixels, labelled, settings, np.random.default_rng(0), trees=2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.5 * pixels.nbytes


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 200])
def test_features_are_turned_round_whatever_their_number(rows: int) -> None:
    numbers = np.random.default_rng(0).standard_normal((rows, 3))
    assert np.array_equal(by_feature(numbers), numbers.T.astype(np.float32))
    assert by_feature(numbers.astype(np.uint8)).dtype == np.uint8


def test_what_was_given_is_left_as_it_was() -> None:
    features, labelled = problem()
    kept = features.copy(), labelled.copy()
    grow_forest(features, labelled, PUBLISHED, np.random.default_rng(0), trees=2)
    assert np.array_equal(features, kept[0])
    assert np.array_equal(labelled, kept[1])


def test_numbers_that_no_cut_can_divide_are_refused() -> None:
    features, labelled = problem()
    random = np.random.default_rng(0)
    for bad in (np.nan, np.inf, 1e300):
        broken = features.astype(np.float64)
        broken[7, 2] = bad
        with pytest.raises(DataError, match="NaN or infinity"):
            grow_forest(broken, labelled, PUBLISHED, random, trees=1)
        with pytest.raises(DataError, match="NaN or infinity"):
            positive_votes(grown(trees=1), broken)


def test_arrays_that_do_not_belong_together_are_refused() -> None:
    features, labelled = problem()
    random = np.random.default_rng(0)
    for values, labels in [
        (features, labelled[1:]),
        (features[:, 0], labelled),
        (features[:, :0], labelled),
    ]:
        with pytest.raises(DataError, match="one label per row"):
            grow_forest(values, labels, PUBLISHED, random, trees=1)
    with pytest.raises(DataError, match="booleans"):
        grow_forest(features, labelled.astype(int), PUBLISHED, random, trees=1)
    for labels in (np.zeros(400, dtype=bool), np.ones(400, dtype=bool)):
        with pytest.raises(DataError, match="of 400 rows are labelled"):
            grow_forest(features, labels, PUBLISHED, random, trees=1)


def test_samples_that_lack_a_feature_are_refused() -> None:
    with pytest.raises(DataError, match="the samples have 1 features"):
        positive_votes(grown(), np.zeros((2, 1), dtype=np.float32))


@pytest.mark.parametrize("prior", [0.0, 1.0, 1.2, float("nan")])
def test_a_prior_that_is_no_share_is_refused(prior: float) -> None:
    with pytest.raises(ConfigError, match="between 0 and 1"):
        grown(TreeSettings(prior))


def parts_of(forest: Forest) -> dict[str, np.ndarray]:
    return {name: getattr(forest, name) for name in PARTS}


def test_a_forest_can_be_taken_apart_and_restored() -> None:
    assert equal(restored(parts_of(grown()), 5), grown())


DAMAGES: dict[str, tuple[str, Any]] = {
    "a root beyond the nodes": ("roots", lambda f: np.append(f.roots, len(f.feature))),
    "no trees": ("roots", lambda f: f.roots[:0]),
    "roots out of order": ("roots", lambda f: f.roots[::-1].copy()),
    "a first tree that is never used": ("roots", lambda f: f.roots[1:]),
    "a tree that runs into the next": ("roots", lambda f: np.append(0, f.roots[1:] + 1)),
    "a feature beyond the samples": ("feature", lambda f: f.feature + np.int32(1)),
    "a feature below zero": ("feature", lambda f: f.feature - np.int32(1)),
    "a right child that is its parent": ("right", lambda f: np.zeros_like(f.right)),
    "a right child in another tree": ("right", lambda f: f.right + len(f.feature) // 2),
    "a last node that asks on": ("feature", lambda f: np.append(f.feature[:-1], np.int32(0))),
    "a cut that is no number": ("cut", lambda f: f.cut * np.nan),
    "a tree without P": ("labelled", lambda f: np.zeros_like(f.labelled)),
    "a tree without U": ("unlabelled", lambda f: np.zeros_like(f.unlabelled)),
    "too few cuts": ("cut", lambda f: f.cut[1:]),
    "too few counts": ("labelled", lambda f: f.labelled[1:]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_arrays_that_would_lead_a_walk_astray_are_refused(damage: str) -> None:
    forest = grown()
    part, damaged = DAMAGES[damage]
    with pytest.raises(CheckpointError, match="damaged"):
        restored({**parts_of(forest), part: damaged(forest)}, 5)


def test_the_compiler_is_not_loaded_before_a_tree_is_needed() -> None:
    code = "import sys, onesided.trees.forest; sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
