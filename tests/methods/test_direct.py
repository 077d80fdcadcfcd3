"""What all direct methods of our own promise: the same bits again, and no damaged state."""

from math import prod

import numpy as np
import pytest
import torch

from onesided.core.errors import CheckpointError, DataError, OnesidedError
from onesided.methods.against_pool import equal_weights, likely_positive, out_of_fold
from onesided.methods.average import AverageConfig
from onesided.methods.base import MethodConfig
from onesided.methods.forest import BoostingConfig, ForestConfig
from onesided.methods.linear import LinearConfig
from onesided.metrics.pu import proxy_auc
from tests.methods.p_against_u import WIDTH, clouds, trained, untrained, with_entry

QUICK = {
    "linear": LinearConfig(penalty=0.1),
    "linear-twice": LinearConfig(penalty=0.1, passes=2),
    "forest": ForestConfig(trees=5),
    "forest-twice": ForestConfig(trees=5, passes=2),
    "boosting": BoostingConfig(trees=5),
    "average": AverageConfig(linear={"penalty": 1.0}, forest={"trees": 4}, boosting={"trees": 3}),
}
each = pytest.mark.parametrize("settings", QUICK.values(), ids=QUICK)


@each
def test_scores_find_hidden_positives(settings: MethodConfig) -> None:
    data = clouds(600, seed=1)
    hidden = data.truth & ~data.labelled
    scores = trained(settings, data).scores(data.features)
    assert proxy_auc(scores[hidden], scores[~data.truth]) > 0.75
    assert ((scores >= 0) & (scores <= 1)).all()


@each
def test_a_restored_model_gives_the_same_bits(settings: MethodConfig) -> None:
    data = clouds()
    method, again = trained(settings, data), untrained(settings)
    again.load_state_dict(method.state_dict())
    assert np.array_equal(again.scores(data.new), method.scores(data.new))


@each
def test_the_same_generator_gives_the_same_model(settings: MethodConfig) -> None:
    data = clouds()
    first, second = (trained(settings, data, seed=4).scores(data.new) for _ in range(2))
    assert np.array_equal(first, second)


@each
def test_without_fit_there_are_no_scores(settings: MethodConfig) -> None:
    method = untrained(settings)
    with pytest.raises(OnesidedError, match="call fit"):
        method.scores(clouds().new)
    with pytest.raises(OnesidedError, match="call fit"):
        method.state_dict()


@each
def test_samples_of_another_width_are_refused(settings: MethodConfig) -> None:
    method = trained(settings, clouds())
    with pytest.raises(DataError, match=f"{WIDTH} numbers each"):
        method.scores(np.zeros((3, WIDTH + 1), np.float32))


@each
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e39])
def test_numbers_that_are_none_are_refused(settings: MethodConfig, bad: float) -> None:
    data = clouds()
    features = data.features.astype(np.float64)
    features[3, 2] = bad
    with pytest.raises(DataError, match="NaN or infinity"):
        untrained(settings).fit(features, data.labelled, np.random.default_rng(0))


@each
def test_a_state_with_a_part_missing_or_foreign_is_refused(settings: MethodConfig) -> None:
    state = trained(settings, clouds()).state_dict()
    name = next(iter(sorted(state, reverse=True)))
    with pytest.raises(CheckpointError) as missing:
        untrained(settings).load_state_dict({k: v for k, v in state.items() if k != name})
    with pytest.raises(CheckpointError) as foreign:
        untrained(settings).load_state_dict({**state, "soul": torch.zeros(1)})
    for error in (missing, foreign):
        assert str(error.value).count(".") >= 1
        assert "\n" not in str(error.value)


@each
def test_a_state_of_another_kind_of_numbers_is_refused(settings: MethodConfig) -> None:
    state = trained(settings, clouds()).state_dict()
    for name, part in state.items():
        for wrong in (part.half(), part[None], part.to(torch.int16)):
            with pytest.raises(CheckpointError):
                untrained(settings).load_state_dict(with_entry(state, name, wrong))


def test_weights_have_mean_1_and_both_classes_count_the_same() -> None:
    positive = np.arange(50) < 7
    weights = equal_weights(positive)
    assert weights.mean() == pytest.approx(1)
    assert weights[positive].sum() == pytest.approx(weights[~positive].sum())


def test_no_row_is_scored_by_a_model_that_saw_it_or_a_copy() -> None:
    random = np.random.default_rng(0)
    features = random.integers(0, 3, (60, 3)).astype(np.float32)  # 27 kinds: many are copies
    labelled = np.arange(60) < 20
    calls = []

    def spy(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
        seen = {row.tobytes() for row in x}
        calls.append(len(new))
        assert not seen & {row.tobytes() for row in new}
        assert y.any()
        assert not y.all()
        return np.arange(len(new)) / 100

    scores = out_of_fold(features, labelled, spy, random)
    assert len(calls) == 5
    assert sum(calls) == 60
    assert np.isfinite(scores).all()


def test_positives_that_are_all_copies_are_refused() -> None:
    features = np.zeros((40, 2), np.float32)
    features[10:] = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(DataError, match="copies of one another"):
        out_of_fold(features, np.arange(40) < 10, lambda x, y, new: np.zeros(len(new)), _random())


def _random() -> np.random.Generator:
    return np.random.default_rng(0)


def test_likely_positives_are_p_and_the_best_of_u_as_many_as_bbe_says() -> None:
    truth = np.arange(900) % 3 == 0
    labelled = truth & (np.arange(900) % 2 == 0)
    features = np.where(truth, 5.0, -5.0)[:, None] + np.linspace(0, 1, 900)[:, None]
    found = likely_positive(features, labelled, lambda x, y, new: new[:, 0], _random())
    assert (found >= labelled).all()
    share = (found & ~labelled).sum() / (truth & ~labelled).sum()
    assert 0.85 <= share <= 1.15
    assert (found & ~truth).sum() <= 0.15 * (truth & ~labelled).sum()


def test_one_unlabelled_row_stays_unlabelled_whatever_the_prior() -> None:
    labelled = np.arange(60) < 30
    features = np.random.default_rng(0).normal(size=(60, 1))  # P and U alike: BBE says all of U
    found = likely_positive(features, labelled, lambda x, y, new: new[:, 0], _random())
    assert not found.all()


def test_images_are_flattened_by_the_width_they_are_built_for() -> None:
    from onesided.core.batch import DataFacts
    from tests.methods.linear_clouds import Untouched

    shape = (2, 3, 4)
    for settings in QUICK.values():
        method = settings.build(DataFacts(10, 4, shape), Untouched(2))
        parts = getattr(method, "parts", {"all": method})
        assert {part.width for part in parts.values()} == {prod(shape)}
