from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor

from onesided.core.batch import DataFacts
from onesided.core.errors import CheckpointError, ConfigError, DataError, OnesidedError
from onesided.core.labels import POSITIVE
from onesided.methods.base import DirectMethod, GradientMethod
from onesided.methods.puet import PUET, PUETConfig
from onesided.trees.forest import Estimator
from tests.methods.linear_clouds import POSITIVES, PRIOR, UNLABELLED, Clouds, Untouched, clouds

FIFTY = PUETConfig(trees=50)


@dataclass(frozen=True)
class Evaluated:
    """How well the trees do on new samples."""

    accuracy: float
    recall: float


def untrained(config: PUETConfig = FIFTY, *, prior: float | None = PRIOR, width: int = 2) -> PUET:
    facts = DataFacts(POSITIVES + UNLABELLED, POSITIVES, (width,), prior=prior)
    return config.build(facts, Untouched(width))


def trained(
    data: Clouds, config: PUETConfig = FIFTY, *, seed: int = 0, prior: float = PRIOR
) -> PUET:
    method = untrained(config, prior=prior)
    points = data.train.values.take(slice(None))
    method.fit(points, data.train.labelled, np.random.default_rng(seed))
    return method


def evaluated(method: PUET, data: Clouds) -> Evaluated:
    called = method.scores(data.test.values.take(slice(None))) > 0.5
    truth = data.test.truth == POSITIVE
    return Evaluated(float((called == truth).mean()), float(called[truth].mean()))


def depth_of(method: PUET) -> int:
    forest = method.forest
    assert forest is not None
    depth = np.zeros(len(forest.feature), dtype=int)
    for node in np.flatnonzero(forest.feature >= 0):
        depth[[node + 1, forest.right[node]]] = depth[node] + 1
    return int(depth.max())


def test_the_defaults_are_the_published_ones() -> None:
    config = PUETConfig()
    assert (config.trees, config.estimator, config.loss) == (100, "nnpu", "quadratic")
    assert (config.max_features, config.max_candidates) == (0, 1)
    assert (config.max_depth, config.min_samples_leaf) == (0, 1)
    assert config.needs.prior


@pytest.mark.parametrize("seed", range(5))
def test_fifty_trees_find_the_boundary_between_two_clouds(seed: int) -> None:
    data = clouds(seed)
    method = trained(data, seed=seed)
    assert evaluated(method, data).accuracy > 0.95
    assert method.forest is not None
    leaves = (method.forest.feature < 0).sum() / 50
    assert 35 <= leaves <= 70
    assert depth_of(method) <= 25


@pytest.mark.parametrize("estimator", ["nnpu", "upu"])
def test_logistic_risk_finds_it_too(estimator: Estimator) -> None:
    data = clouds(0)
    config = PUETConfig(trees=50, estimator=estimator, loss="logistic")
    assert evaluated(trained(data, config), data).accuracy > 0.95


def test_unbiased_quadratic_trees_learn_the_labels_by_heart() -> None:
    # Below zero there is always more to gain: labelled positives are cut out one by one,
    # and what remains around them is called negative.
    data = clouds(0)
    unbiased, safe = trained(data, PUETConfig(trees=50, estimator="upu")), trained(data)
    assert evaluated(unbiased, data).recall < 0.3
    assert evaluated(safe, data).recall > 0.9
    known = data.train.values.take(slice(None))[data.train.labelled]
    assert (unbiased.scores(known) > 0.5).all()


def test_a_prior_that_is_too_high_calls_more_samples_positive() -> None:
    data = clouds(0)
    low, right, high = (evaluated(trained(data, prior=prior), data) for prior in (0.2, 0.4, 0.6))
    assert low.recall < right.recall < high.recall
    assert right.accuracy > max(low.accuracy, high.accuracy)


def test_scores_are_shares_of_votes() -> None:
    data = clouds(0)
    scores = trained(data, PUETConfig(trees=7)).scores(data.test.values.take(slice(None)))
    assert scores.dtype == np.float64
    assert np.allclose(scores * 7, np.round(scores * 7))
    assert len(np.unique(scores)) == 8


def test_the_same_seed_gives_the_same_bits_with_any_number_of_threads() -> None:
    data = clouds(0)
    alone = trained(data).state_dict()
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        together = trained(data).state_dict()
    finally:
        torch.set_num_threads(before)
    assert alone.keys() == together.keys()
    assert all(torch.equal(alone[name], together[name]) for name in alone)
    other = trained(data, seed=1).state_dict()
    assert not torch.equal(alone["cut"], other["cut"])


def test_importances_name_the_direction_between_the_clouds() -> None:
    first, second = trained(clouds(0)).importances()
    assert first > 5 * second
    assert first + second == pytest.approx(4 * PRIOR * (1 - PRIOR))


def test_it_is_fitted_directly_and_not_by_gradients() -> None:
    method = untrained()
    assert isinstance(method, DirectMethod)
    assert not isinstance(method, GradientMethod)


def test_trees_survive_a_file_of_tensors(tmp_path: Path) -> None:
    data = clouds(0)
    method = trained(data)
    safetensors.torch.save_file(method.state_dict(), tmp_path / "trees.safetensors")
    # As a saved model is loaded: without the training data's counts.
    other = PUETConfig(trees=50).build(DataFacts(1, 1, (2,), prior=PRIOR), Untouched())
    other.load_state_dict(safetensors.torch.load_file(tmp_path / "trees.safetensors"))
    points = data.test.values.take(slice(None))
    assert np.array_equal(method.scores(points), other.scores(points))
    assert np.array_equal(method.importances(), other.importances())


def test_scores_of_a_loaded_model_need_no_prior() -> None:
    data = clouds(0)
    method, other = trained(data), untrained(prior=None)
    other.load_state_dict(method.state_dict())
    points = data.test.values.take(slice(None))
    assert np.array_equal(method.scores(points), other.scores(points))


State = dict[str, Tensor]
HOSTILE: dict[str, Callable[[State], State]] = {
    "a missing part": lambda state: {k: v for k, v in state.items() if k != "cut"},
    "a part of another method": lambda state: state | {"backbone.weight": torch.zeros(2)},
    "numbers of another type": lambda state: state | {"right": state["right"].float()},
    "a matrix": lambda state: state | {"positive": state["positive"][None]},
    "a child far away": lambda state: state | {"right": state["right"] + 10**12},
    "a walk in a circle": lambda state: state | {"right": torch.zeros_like(state["right"])},
    "a feature that samples lack": lambda state: state | {"feature": state["feature"] + 1},
}


@pytest.mark.parametrize("damage", HOSTILE)
def test_damaged_trees_are_refused_before_they_are_walked(damage: str) -> None:
    state = trained(clouds(0), PUETConfig(trees=3)).state_dict()
    method = untrained()
    with pytest.raises(CheckpointError, match="trees"):
        method.load_state_dict(HOSTILE[damage](state))
    assert method.forest is None


def test_a_method_without_trees_says_so() -> None:
    with pytest.raises(OnesidedError, match="no trees yet"):
        untrained().scores(np.zeros((1, 2), dtype=np.float32))


def test_samples_of_another_width_are_refused() -> None:
    data = clouds(0)
    with pytest.raises(DataError, match="2 numbers each"):
        trained(data).scores(np.zeros((4, 3), dtype=np.float32))
    with pytest.raises(DataError, match="3 numbers each"):
        untrained(width=3).fit(np.zeros((4, 2)), np.arange(4) < 2, np.random.default_rng(0))


@pytest.mark.parametrize(
    "setting",
    [{"trees": 0}, {"max_candidates": 0}, {"min_samples_leaf": 0}, {"loss": "hinge"}],
    ids=str,
)
def test_settings_that_cannot_be_are_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(setting))):
        PUETConfig.from_settings(setting)
