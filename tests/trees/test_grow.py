from itertools import islice

import numpy as np
import pytest

from onesided.trees.forest import Estimator, Forest, Loss, TreeSettings, grow_forest
from onesided.trees.grow import (
    AT_ONCE,
    count_left,
    cut_range,
    divide,
    draw,
    gather,
    last_on_the_left,
    random_number,
)
from tests.trees.plain_tree import PlainTree, between, split_mix

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


def test_equal_samples_end_in_one_leaf() -> None:
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


def test_random_numbers_are_those_of_split_mix() -> None:
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert list(islice(split_mix(1234567), 3)) == published
    state = np.array([1234567], dtype=np.uint64)
    assert [draw(state) for _ in range(3)] == [(word >> 11) / 2**53 for word in published]


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_cuts_keep_away_from_the_outermost_values(kind: type) -> None:
    values: np.ndarray = np.array([100, 250, 0, 200, 100, 250, 0, 120]).astype(kind)
    assert cut_range(values) == pytest.approx((40, 230))  # 0 + .4 x 100, 200 + .6 x 50


def test_two_values_are_cut_in_the_middle_fifth() -> None:
    assert cut_range(np.array([3, 8, 8, 3], dtype=np.uint8)) == pytest.approx((5, 6))


def test_a_constant_feature_leaves_no_room_for_a_cut() -> None:
    low, high = cut_range(np.full(9, 200, dtype=np.uint8))
    assert low == high


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_the_range_is_that_of_the_two_outer_distinct_values_on_each_side(kind: type) -> None:
    random = np.random.default_rng(0)
    for size in (2, 3, 5, 40):
        outer = np.append(random.integers(0, 9, size=size), [0, 255])
        values: np.ndarray = outer.astype(kind)
        assert cut_range(values) == between(values)


def test_neighbouring_floats_can_still_be_separated() -> None:
    low, infinity = np.float32(1e30), np.float32(np.inf)
    values = np.array([low, np.nextafter(low, infinity)], dtype=np.float32)
    start, end = cut_range(values)
    assert start < end
    assert (count_left(values, start), count_left(values, end)) == (1, 1)


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_a_value_on_the_cut_goes_left(kind: type) -> None:
    column: np.ndarray = np.array([4, 2, 3, 2]).astype(kind)
    assert count_left(column, 2.0) == 2
    rows = np.arange(4, dtype=np.uint32)
    divide(column, rows, 3.0, np.empty_like(rows))
    assert rows.tolist() == [1, 2, 3, 0]


def test_rows_are_divided_in_place_and_keep_their_order() -> None:
    column = np.array([5, 1, 9, 2, 8, 3], dtype=np.uint8)
    rows = np.array([5, 4, 1, 2, 3], dtype=np.uint32)
    divide(column, rows, 4.0, np.empty_like(rows))
    assert rows.tolist() == [5, 1, 3, 4, 2]


def test_later_random_numbers_are_known_without_drawing_them() -> None:
    state = np.array([1234567], dtype=np.uint64)
    foreseen = [random_number(state, ahead) for ahead in range(5)]
    assert state.tolist() == [1234567]
    assert [draw(state) for _ in range(5)] == foreseen


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
@pytest.mark.parametrize("features", range(1, AT_ONCE + 1))
def test_columns_are_fetched_together_as_one_by_one(features: int, kind: type) -> None:
    random = np.random.default_rng(0)
    columns: np.ndarray = random.integers(0, 256, size=(9, 50)).astype(kind)
    rows = np.sort(random.permutation(50)[:31]).astype(np.uint32)
    chosen = random.permutation(9)[:features]
    values: np.ndarray = np.zeros((AT_ONCE, 50), kind)
    gather(columns, chosen, rows, values)
    assert np.array_equal(values[:features, :31], columns[chosen][:, rows])
    assert not values[features:].any()
    assert not values[:, 31:].any()


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
@pytest.mark.parametrize("size", [1, 127, 128, 129, 256, 1000])
def test_values_are_counted_whatever_their_number(size: int, kind: type) -> None:
    values: np.ndarray = np.random.default_rng(size).integers(0, 256, size=size).astype(kind)
    for cut in (0.0, 99.5, 100.0, 254.9, 255.0):
        assert count_left(values, cut) == int((values <= np.float64(cut)).sum())
    assert count_left(np.zeros(size, kind), 0.0) == size


def test_a_cut_just_below_a_float_is_not_rounded_onto_it() -> None:
    value = np.float32(0.1)
    below = np.nextafter(float(value), 0.0)
    assert np.float32(below) == value
    values = np.array([value, 0.05], dtype=np.float32)
    assert last_on_the_left(values, below) == np.nextafter(value, np.float32(0))
    assert count_left(values, below) == 1
    assert count_left(values, float(value)) == 2
