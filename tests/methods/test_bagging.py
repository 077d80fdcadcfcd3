"""Bagging: the paper's two algorithms as loops, and no item judged by who was told about it."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from onesided.core.errors import CheckpointError, DataError
from onesided.methods.against_pool import equal_weights
from onesided.methods.bagging import BaggingConfig, content_keys, draw_bags
from onesided.methods.forest import SEEDS
from onesided.metrics.pu import proxy_auc
from tests.methods.p_against_u import Clouds, clouds, trained, untrained, with_entry


def slow_values(
    learner: str, rows: np.ndarray, is_positive: np.ndarray, seed: int
) -> Callable[[np.ndarray], float]:
    """Return f_t as a function: a margin, or a share of P in the leaf."""
    weights = equal_weights(is_positive)
    if learner == "tree":
        tree = DecisionTreeClassifier(random_state=seed)
        tree.fit(rows, is_positive, sample_weight=weights)
        return lambda x: float(tree.predict_proba(x[None])[0, 1])
    model = LogisticRegression(C=1 / len(rows), max_iter=200)
    model.fit(rows, is_positive, sample_weight=weights)  # the scale is 1, see `Untouched`
    return lambda x: float(model.decision_function(x[None])[0])


def slow_bagging(
    data: Clouds, learner: str, *, bags: int, size: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of new items (Algorithm 1) and of U (Algorithm 2), item by item."""
    random = np.random.default_rng(seed)
    positives, pool = data.features[data.labelled], data.features[~data.labelled]
    drawn = draw_bags(np.ones(len(pool)), bags=bags, size=size, rng=random)
    first = int(random.integers(SEEDS))
    f_new, f, n = np.zeros(len(data.new)), np.zeros(len(pool)), np.zeros(len(pool))
    for t, bag in enumerate(drawn):
        rows = np.concatenate([positives, pool[bag]])
        f_t = slow_values(learner, rows, np.arange(len(rows)) < len(positives), first + t)
        f_new += [f_t(x) for x in data.new]
        for item in range(len(pool)):
            if item not in bag:
                f[item] += f_t(pool[item])
                n[item] += 1
    assert (n > 0).all()
    means = f_new / bags, f / n
    if learner == "tree":
        return means
    return 1 / (1 + np.exp(-means[0])), 1 / (1 + np.exp(-means[1]))


@pytest.mark.parametrize(("size", "drawn"), [(0, 11), (20, 20)])
@pytest.mark.parametrize(("learner", "close"), [("tree", 1e-12), ("linear", 2e-4)])
def test_new_items_follow_algorithm_1_and_the_pool_algorithm_2(
    size: int, drawn: int, learner: str, close: float
) -> None:
    data = clouds(66)
    assert data.labelled.sum() == 11
    settings = BaggingConfig.from_settings({"learner": learner, "bags": 12, "bag_size": size})
    method = trained(settings, data, seed=6)
    new, pool = slow_bagging(data, learner, bags=12, size=drawn, seed=6)
    assert method.scores(data.new) == pytest.approx(new, abs=close)
    assert method.scores(data.features[~data.labelled]) == pytest.approx(pool, abs=close)


def test_hidden_positives_are_not_called_negative_by_who_was_told_so() -> None:
    """A full tree remembers every item of its bag; out of bag it cannot."""
    data = clouds(300, shift=2.0)
    method = trained(BaggingConfig(bags=30), data)
    hidden = data.features[data.truth & ~data.labelled]
    out_of_bag, of_all = method.scores(hidden), method.mean.scores(hidden)
    assert (out_of_bag >= of_all).all()
    assert out_of_bag.mean() > of_all.mean() + 0.1


def test_a_copy_of_an_item_in_the_bag_is_in_the_bag_too() -> None:
    data = clouds(90, shift=2.0)
    pool = np.flatnonzero(~data.labelled)
    features = np.concatenate([data.features, np.repeat(data.features[pool[:1]], 40, axis=0)])
    labelled = np.concatenate([data.labelled, np.zeros(40, bool)])
    method = untrained(BaggingConfig(bags=60, bag_size=5))
    method.fit(features, labelled, np.random.default_rng(0))
    drawn = draw_bags(np.ones(len(pool) + 40), bags=60, size=5, rng=np.random.default_rng(0))
    copies = np.concatenate([[0], np.arange(len(pool), len(pool) + 40)])
    free = ~np.isin(drawn, copies).any(axis=1)
    assert 0 < free.sum() < 30, "most bags hold one of the copies"
    place = np.searchsorted(method.pool, content_keys(features[pool[:1]]))[0]
    assert method.pool_value[place] * free.sum() == pytest.approx(
        round(method.pool_value[place] * free.sum())
    ), "a mean of so many votes of full trees, each 0 or 1"
    assert len(method.pool) == len(pool)


def test_an_item_that_is_in_every_bag_is_scored_like_a_new_one() -> None:
    data = clouds(12)
    labelled = np.arange(12) < 11
    method = untrained(BaggingConfig(bags=3))
    method.fit(data.features, labelled, np.random.default_rng(0))
    assert method.scores(data.features[11:]) == method.mean.scores(data.features[11:])


def test_more_bags_make_repeats_more_alike() -> None:
    """The reason for bagging in the paper: the mean of many unstable classifiers is stable."""
    data = clouds(150)

    def spread(bags: int) -> float:
        repeats = [
            trained(BaggingConfig(bags=bags), data, seed).scores(data.new) for seed in (1, 2)
        ]
        return float(np.abs(repeats[0] - repeats[1]).mean())

    assert spread(60) < 0.5 * spread(3)


def test_the_pool_is_ranked_well_with_few_positives() -> None:
    data = clouds(600, shift=1.5)
    labelled = data.labelled & (np.cumsum(data.labelled) <= 10)
    for learner in ("tree", "linear"):
        method = untrained(BaggingConfig.from_settings({"learner": learner, "bags": 60}))
        method.fit(data.features, labelled, np.random.default_rng(0))
        scores = method.scores(data.features)
        hidden = data.truth & ~labelled
        assert proxy_auc(scores[hidden], scores[~data.truth]) > 0.9


def test_bags_are_drawn_with_replacement_and_by_weight() -> None:
    drawn = draw_bags(np.array([0.0, 1, 3]), bags=200, size=50, rng=np.random.default_rng(0))
    assert drawn.shape == (200, 50)
    assert np.bincount(drawn.ravel(), minlength=3) / drawn.size == pytest.approx(
        [0, 0.25, 0.75], abs=0.02
    )
    with pytest.raises(DataError, match="unlabelled samples are zero"):
        draw_bags(np.zeros(3), bags=1, size=2, rng=np.random.default_rng(0))


def test_equal_rows_share_a_key_and_zero_has_one_sign() -> None:
    rows = np.array([[0.0, 1], [-0.0, 1], [0, 1.0000001], [0, 1]])
    keys = content_keys(rows)
    assert keys[0] == keys[1] == keys[3] != keys[2]


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("pool", lambda part: part.flip(0), "do not fit"),
        ("pool", lambda part: part[1:], "do not fit"),
        ("pool_value", lambda part: part / 0, "not a number"),
    ],
)
def test_a_damaged_pool_is_refused(
    name: str, change: Callable[[torch.Tensor], torch.Tensor], words: str
) -> None:
    settings = BaggingConfig(bags=2)
    state = trained(settings, clouds()).state_dict()
    assert isinstance(state[name], torch.Tensor)
    with pytest.raises(CheckpointError, match=words):
        untrained(settings).load_state_dict(with_entry(state, name, change(state[name])))
