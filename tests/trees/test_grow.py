import numpy as np
import pytest

from onesided.trees.forest import Estimator, Forest, Loss, TreeSettings, grow_forest
from tests.trees.plain_tree import PlainTree

PUBLISHED = TreeSettings(0.4)


def problem(
    seed: int, *, rows: int = 60, levels: int = 20, labelled: int = 15
) -> tuple[np.ndarray, np.ndarray]:
    """Return small pixels with equal values, a constant feature, and P among U."""
    random = np.random.default_rng(seed)
    features = random.integers(0, levels, size=(rows, 7)).astype(np.uint8)
    features[:, 3] = 5
    is_labelled = random.permutation(rows) < labelled
    features[is_labelled, 1] += 4
    return features, is_labelled


def one_tree(
    features: np.ndarray,
    labelled: np.ndarray,
    settings: TreeSettings = PUBLISHED,
    seed: int = 0,
) -> Forest:
    return grow_forest(features, labelled, settings, np.random.default_rng(seed), trees=1)


def seed_of_first_tree(seed: int) -> int:
    return int(np.random.default_rng(seed).integers(2**64, dtype=np.uint64))


def assert_same_tree(
    features: np.ndarray, labelled: np.ndarray, settings: TreeSettings, seed: int
) -> None:
    """Grow a tree both ways from one seed, and compare node by node."""
    forest = one_tree(features, labelled, settings, seed)
    plain = PlainTree(features, labelled, settings, seed_of_first_tree(seed))
    nodes = list(plain.grow().in_order())
    assert len(nodes) > 1
    assert forest.feature.tolist() == [node.feature for node in nodes]
    assert forest.cut.tolist() == [node.cut for node in nodes]
    assert forest.labelled.tolist() == [node.labelled for node in nodes]
    assert forest.unlabelled.tolist() == [node.unlabelled for node in nodes]
    assert forest.positive.tolist() == [node.positive for node in nodes]


def leaves(forest: Forest) -> np.ndarray:
    return np.flatnonzero(forest.feature < 0)


def depths(forest: Forest) -> np.ndarray:
    depth = np.zeros(len(forest.feature), dtype=int)
    for node in np.flatnonzero(forest.feature >= 0):
        depth[[node + 1, forest.right[node]]] = depth[node] + 1
    return depth


def leaf_of_each(forest: Forest, features: np.ndarray) -> list[int]:
    """Return the leaf in which each sample ends, by walking."""
    found = []
    for sample in features.astype(float):
        node = 0
        while forest.feature[node] >= 0:
            goes_left = sample[forest.feature[node]] <= forest.cut[node]
            node = node + 1 if goes_left else int(forest.right[node])
        found.append(node)
    return found


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
@pytest.mark.parametrize("loss", ["quadratic", "logistic"])
@pytest.mark.parametrize("estimator", ["nnpu", "upu"])
def test_the_compiled_tree_is_the_plain_one(estimator: Estimator, loss: Loss, kind: type) -> None:
    for seed in range(25):
        features, labelled = problem(seed, levels=2 + seed % 12, labelled=5 + seed)
        settings = TreeSettings(
            prior=0.2 + 0.02 * seed,
            estimator=estimator,
            loss=loss,
            max_features=seed % 4,
            max_candidates=1 + seed % 3,
            max_depth=(0, 0, 3)[seed % 3],
            min_samples_leaf=1 + seed % 2,
        )
        assert_same_tree(features.astype(kind), labelled, settings, seed)


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
@pytest.mark.parametrize("max_candidates", [1, 3])
@pytest.mark.parametrize("max_features", [3, 4, 6, 9, 40])
def test_features_fetched_ahead_are_those_that_are_drawn(
    max_features: int, max_candidates: int, kind: type
) -> None:
    settings = TreeSettings(0.4, max_features=max_features, max_candidates=max_candidates)
    for seed in range(6):
        random = np.random.default_rng(seed)
        features: np.ndarray = random.integers(0, 6, size=(150, 30)).astype(kind)
        features[:, random.random(30) < seed / 6] = 3  # from none constant to nearly all
        features[:75, 10:15] = 2  # and some that become so
        features[:, 7] = random.integers(0, 200, size=150)
        assert_same_tree(features, np.arange(150) < 30, settings, seed)


def test_leaves_share_out_the_samples_the_mass_and_the_prior() -> None:
    features, labelled = problem(1)
    forest = one_tree(features, labelled, TreeSettings(0.4, max_depth=4))
    ends = leaves(forest)
    counts = np.bincount(leaf_of_each(forest, features), minlength=len(forest.feature))
    assert counts[ends].tolist() == (forest.labelled + forest.unlabelled)[ends].tolist()
    assert (forest.unlabelled[ends] / 45).sum() == pytest.approx(1)
    assert (0.4 * forest.labelled[ends] / 15).sum() == pytest.approx(0.4)


def test_a_tree_grown_to_the_end_has_no_risk_left_in_any_leaf() -> None:
    random = np.random.default_rng(0)
    features = random.standard_normal((300, 4)).astype(np.float32)
    labelled = np.arange(300) < 60
    forest = one_tree(features, labelled)
    for leaf in leaves(forest):
        mass_of_p, mass_of_u = 0.4 * forest.labelled[leaf] / 60, forest.unlabelled[leaf] / 240
        assert forest.labelled[leaf] == 0 or mass_of_p >= mass_of_u - 1e-12
        assert forest.positive[leaf] == (forest.labelled[leaf] > 0)


@pytest.mark.parametrize("factor", [3, 8])
def test_the_scale_of_a_feature_does_not_matter(factor: int) -> None:
    features, labelled = problem(2)
    scaled = features.copy()
    scaled[:, 1] *= factor
    plain = one_tree(features, labelled)
    other = one_tree(scaled, labelled)
    assert leaf_of_each(plain, features) == leaf_of_each(other, scaled)
    assert plain.positive.tolist() == other.positive.tolist()


def test_the_order_of_the_samples_does_not_matter() -> None:
    features, labelled = problem(3)
    order = np.random.default_rng(0).permutation(len(features))
    plain = one_tree(features, labelled)
    other = one_tree(features[order], labelled[order])
    for name in ("feature", "cut", "right", "positive", "labelled", "unlabelled"):
        assert np.array_equal(getattr(plain, name), getattr(other, name))


def test_every_feature_that_varies_is_drawn_equally_often() -> None:
    random = np.random.default_rng(0)
    features = random.integers(0, 9, size=(40, 8)).astype(np.uint8)
    features[:, [0, 2, 5]] = 7
    settings = TreeSettings(0.4, max_features=1, max_depth=1)
    forest = grow_forest(features, np.arange(40) < 10, settings, random, trees=5000)
    drawn = np.bincount(forest.feature[forest.roots], minlength=8)
    assert drawn[[0, 2, 5]].tolist() == [0, 0, 0]
    # Five equally likely features: 1000 each, standard deviation 28.
    assert np.abs(drawn[[1, 3, 4, 6, 7]] - 1000).max() < 5 * 28.3


def test_below_a_split_features_that_became_constant_there_are_not_drawn() -> None:
    # Feature 0 divides; feature 1 varies only on its left, 2 and 3 only on its right.
    side = np.repeat([0, 100], 20)
    noise = np.random.default_rng(0).integers(0, 50, size=(40, 3))
    noise[20:, 0], noise[:20, 1:] = 60, 60
    features = np.column_stack([side, noise]).astype(np.uint8)
    labelled = np.arange(40) % 4 == 0
    settings = TreeSettings(0.4, max_features=1, max_depth=2)
    forest = grow_forest(features, labelled, settings, np.random.default_rng(1), trees=6000)
    by_side = forest.roots[forest.feature[forest.roots] == 0]
    below_right = forest.feature[forest.right[by_side]]
    assert set(forest.feature[by_side + 1].tolist()) == {1}
    # Two features vary on the right: half of some 1500 each.
    assert set(below_right.tolist()) == {2, 3}
    assert abs((below_right == 2).mean() - 0.5) < 5 * 0.5 / np.sqrt(len(by_side))


def test_samples_that_cannot_be_told_apart_end_in_one_leaf() -> None:
    features = np.repeat(np.array([[1, 2], [3, 4]], dtype=np.uint8), 10, axis=0)
    forest = one_tree(features, np.arange(20) % 5 == 0)
    assert forest.feature[0] >= 0
    assert sorted(forest.unlabelled[leaves(forest)].tolist()) == [8, 8]


def test_a_leaf_with_equal_masses_tosses_a_fair_coin() -> None:
    features, labelled = np.zeros((30, 2), dtype=np.uint8), np.arange(30) < 10
    settings = TreeSettings(0.5)
    forest = grow_forest(features, labelled, settings, np.random.default_rng(0), trees=2000)
    assert len(forest.feature) == 2000
    assert abs(forest.positive.mean() - 0.5) < 5 * 0.5 / np.sqrt(2000)


def test_the_least_size_is_that_of_a_node_to_split_and_not_of_its_children() -> None:
    features, labelled = problem(4)
    forest = one_tree(features, labelled, TreeSettings(0.4, min_samples_leaf=12))
    size = forest.labelled + forest.unlabelled
    assert size[forest.feature >= 0].min() > 12
    assert size.min() < 12


def test_no_node_is_deeper_than_allowed() -> None:
    features, labelled = problem(5)
    shallow = one_tree(features, labelled, TreeSettings(0.4, max_depth=2))
    free = one_tree(features, labelled)
    assert depths(shallow).max() == 2
    assert depths(free).max() > 2


def test_unbiased_trees_go_on_where_non_negative_ones_stop() -> None:
    random = np.random.default_rng(0)
    features = random.standard_normal((200, 3)).astype(np.float32)
    labelled = np.arange(200) < 50
    unbiased = one_tree(features, labelled, TreeSettings(0.4, estimator="upu"))
    stopped = one_tree(features, labelled)
    assert len(unbiased.feature) > len(stopped.feature)
    ends = leaves(unbiased)
    assert np.minimum(unbiased.labelled, unbiased.unlabelled)[ends].max() == 0
