"""Forest and Boosting: what scikit-learn's own models predict, from arrays."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier

from onesided.core.errors import CheckpointError
from onesided.methods.against_pool import equal_weights
from onesided.methods.forest import SEEDS, BoostingConfig, ForestConfig
from tests.methods.p_against_u import Clouds, clouds, trained, untrained, with_entry


def seed_of(seed: int) -> int:
    return int(np.random.default_rng(seed).integers(SEEDS))


def slow_forest(data: Clouds, *, trees: int, leaf: int) -> np.ndarray:
    model = ExtraTreesClassifier(trees, min_samples_leaf=leaf, random_state=seed_of(0))
    model.fit(data.features, data.labelled, sample_weight=equal_weights(data.labelled))
    scores: np.ndarray = model.predict_proba(data.new)[:, 1]
    return scores


@pytest.mark.parametrize(("trees", "leaf"), [(1, 1), (20, 5)])
def test_a_forest_scores_as_scikit_learn_does(trees: int, leaf: int) -> None:
    data = clouds()
    found = trained(ForestConfig(trees=trees, min_samples_leaf=leaf), data).scores(data.new)
    assert found == pytest.approx(slow_forest(data, trees=trees, leaf=leaf), abs=1e-12)
    assert found.std() > 0


@pytest.mark.parametrize(
    "settings", [BoostingConfig(trees=1), BoostingConfig(trees=20, depth=2, learning_rate=0.3)]
)
def test_boosting_scores_as_scikit_learn_does(settings: BoostingConfig) -> None:
    data = clouds()
    model = GradientBoostingClassifier(
        n_estimators=settings.trees,
        max_depth=settings.depth,
        learning_rate=settings.learning_rate,
        subsample=0.5,
        max_features="sqrt",
        init="zero",
        random_state=seed_of(0),
    )
    model.fit(data.features, data.labelled, sample_weight=equal_weights(data.labelled))
    found = trained(settings, data).scores(data.new)
    assert found == pytest.approx(model.predict_proba(data.new)[:, 1], abs=1e-12)
    assert found.std() > 0


def test_a_second_forest_learns_from_the_likely_positives() -> None:
    data = clouds(600, shift=2.5)
    once, twice = (trained(ForestConfig(trees=20, passes=n), data) for n in (1, 2))
    hidden = data.truth & ~data.labelled
    before, after = once.scores(data.features)[hidden], twice.scores(data.features)[hidden]
    assert after.mean() > before.mean() + 0.1


@pytest.mark.parametrize("settings", [ForestConfig(trees=4), BoostingConfig(trees=4)])
@pytest.mark.parametrize(("name", "value"), [("feature", 77), ("right", 0), ("roots", 3)])
def test_a_tree_whose_paths_could_leave_it_is_refused(
    settings: ForestConfig | BoostingConfig, name: str, value: int
) -> None:
    state = trained(settings, clouds()).state_dict()
    wrong = state[name].clone()
    wrong[0] = value
    with pytest.raises(CheckpointError, match="The trees are damaged"):
        untrained(settings).load_state_dict(with_entry(state, name, wrong))


def test_a_leaf_without_a_number_is_refused() -> None:
    settings = ForestConfig(trees=2)
    state = trained(settings, clouds()).state_dict()
    wrong = torch.full_like(state["value"], torch.nan)
    with pytest.raises(CheckpointError, match="not a number"):
        untrained(settings).load_state_dict(with_entry(state, "value", wrong))
