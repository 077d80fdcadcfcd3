"""What all direct methods of our own promise: the same bits again, and no damaged state."""

from math import prod

import numpy as np
import pytest
import torch

from onesided.core.errors import CheckpointError, DataError, OnesidedError
from onesided.methods.against_pool import (
    TrainingRows,
    equal_weights,
    out_of_fold,
    with_likely_positive,
)
from onesided.methods.average import AverageConfig
from onesided.methods.bagging import BaggingConfig
from onesided.methods.base import MethodConfig
from onesided.methods.elkan_noto import ElkanNotoConfig
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
    "elkan-noto": ElkanNotoConfig(penalty=0.1),
    "elkan-noto-weighted": ElkanNotoConfig(learner="forest", trees=5, training="weighted"),
    "bagging": BaggingConfig(bags=20, min_samples_leaf=2),
    "bagging-linear": BaggingConfig(learner="linear", bags=5),
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

    def spy(some: TrainingRows, new: np.ndarray) -> np.ndarray:
        seen = {row.tobytes() for row in some.features}
        calls.append(len(new))
        assert not seen & {row.tobytes() for row in new}
        assert some.labelled.any()
        assert some.unlabelled.any()
        return np.arange(len(new)) / 100

    scores = out_of_fold(TrainingRows(features, labelled), spy, random)
    assert len(calls) == 5
    assert sum(calls) == 60
    assert np.isfinite(scores).all()


def test_positives_that_are_all_copies_are_refused() -> None:
    features = np.zeros((40, 2), np.float32)
    features[10:] = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(DataError, match="copies of one another"):
        out_of_fold(
            TrainingRows(features, np.arange(40) < 10),
            lambda some, new: np.zeros(len(new)),
            _random(),
        )


def _random() -> np.random.Generator:
    return np.random.default_rng(0)


def test_likely_positives_are_p_and_the_best_of_u_as_many_as_bbe_says() -> None:
    truth = np.arange(900) % 3 == 0
    labelled = truth & (np.arange(900) % 2 == 0)
    features = np.where(truth, 5.0, -5.0)[:, None] + np.linspace(0, 1, 900)[:, None]
    found = _first_feature_says(TrainingRows(features, labelled)).labelled
    assert (found >= labelled).all()
    share = (found & ~labelled).sum() / (truth & ~labelled).sum()
    assert 0.85 <= share <= 1.15
    assert (found & ~truth).sum() <= 0.15 * (truth & ~labelled).sum()


def test_one_unlabelled_row_stays_unlabelled_whatever_the_prior() -> None:
    labelled = np.arange(60) < 30
    features = np.random.default_rng(0).normal(size=(60, 1))  # P and U alike: BBE says all of U
    assert not _first_feature_says(TrainingRows(features, labelled)).labelled.all()


def test_a_known_negative_is_no_likely_positive_however_high_its_score() -> None:
    truth = np.arange(900) % 3 == 0
    labelled, negative = truth & (np.arange(900) % 2 == 0), np.arange(900) % 9 == 1
    features = np.where(truth | negative, 5.0, -5.0)[:, None] + np.linspace(0, 1, 900)[:, None]
    found = _first_feature_says(TrainingRows(features, labelled, negative))
    assert found.labelled.sum() > labelled.sum()
    assert not (found.labelled & negative).any()
    assert not (found.unlabelled & negative).any()


def _first_feature_says(data: TrainingRows) -> TrainingRows:
    return with_likely_positive(data, lambda some, new: new[:, 0], _random())


def slow_balance(data: TrainingRows) -> list[float]:
    """Return each row's weight by the sentences of `TrainingRows.balanced`, row by row."""
    given = [1.0] * len(data) if data.weights is None else data.weights.tolist()
    masks = zip(data.labelled, data.unlabelled, strict=True)
    kinds = ["P" if labelled else "U" if unlabelled else "N" for labelled, unlabelled in masks]
    rows = list(zip(given, kinds, strict=True))
    totals = {kind: sum(weight for weight, own in rows if own == kind) for kind in "PUN"}
    share = {"P": totals["P"], "U": totals["U"], "N": max(totals["N"], totals["U"])}
    half = (kinds.count("P") + kinds.count("U")) / 2
    return [half * weight / share[kind] for weight, kind in rows]


@pytest.mark.parametrize("negatives", [0, 5, 60])
@pytest.mark.parametrize("weighed", [False, True])
def test_known_negatives_leave_the_balance_of_p_and_u_as_it_is(
    negatives: int, weighed: bool
) -> None:
    kinds = np.repeat(["P", "U", "N"], [7, 30, negatives])
    weights = np.random.default_rng(0).integers(0, 4, len(kinds)) + 0.5 if weighed else None
    data = TrainingRows(np.zeros((len(kinds), 1)), kinds == "P", kinds == "N", weights)
    balanced = data.balanced()
    assert balanced == pytest.approx(slow_balance(data))
    totals = {kind: balanced[kinds == kind].sum() for kind in "PUN"}
    assert totals["P"] == pytest.approx(18.5)
    assert totals["U"] == pytest.approx(18.5)
    assert totals["N"] <= 18.5 + 1e-9
    alone = TrainingRows(
        np.zeros((37, 1)), kinds[:37] == "P", weights=None if weights is None else weights[:37]
    )
    assert balanced[:37] == pytest.approx(alone.balanced()), "P and U weigh as without them"


def test_a_part_in_which_all_positives_weigh_nothing_is_refused() -> None:
    labelled = np.arange(10) < 3
    data = TrainingRows(np.zeros((10, 1)), labelled, weights=np.where(labelled, 0.0, 1.0))
    with pytest.raises(DataError, match="all positive samples are zero"):
        data.balanced()


@each
def test_weights_that_are_all_equal_change_nothing(settings: MethodConfig) -> None:
    data = clouds()
    weighed = untrained(settings)
    weighed.fit(data.features, data.labelled, _random(), weights=np.full(len(data.features), 1.0))
    assert weighed.scores(data.new) == pytest.approx(trained(settings, data).scores(data.new))


@pytest.mark.parametrize("settings", [QUICK[name] for name in ("linear", "forest", "boosting")])
def test_samples_of_no_weight_teach_nothing(settings: MethodConfig) -> None:
    data = clouds(240, shift=2.0)
    # Half of U are hidden positives that somebody already doubts.
    doubted = data.truth & ~data.labelled
    weighed = untrained(settings)
    weighed.fit(data.features, data.labelled, _random(), weights=np.where(doubted, 0.0, 1.0))
    plain = trained(settings, data)
    hidden = [model.scores(data.features)[doubted].mean() for model in (plain, weighed)]
    assert hidden[1] > hidden[0] + 0.02, "nobody taught that they are unlabelled"


@each
def test_known_negatives_help_where_u_is_mostly_positive(settings: MethodConfig) -> None:
    random = np.random.default_rng(5)
    truth = np.concatenate([np.ones(40 + 170), np.zeros(30 + 60)]).astype(bool)
    labelled, negative = np.arange(300) < 40, np.arange(300) >= 240
    points = (random.normal(size=(300, 5)) + 0.7 * truth[:, None]).astype(np.float32)
    new_truth = np.arange(2000) % 2 == 0
    new = (random.normal(size=(2000, 5)) + 0.7 * new_truth[:, None]).astype(np.float32)
    taught, without = untrained(settings), untrained(settings)
    taught.fit(points, labelled, _random(), negative=negative)
    without.fit(points[~negative], labelled[~negative], _random())
    auc = [
        proxy_auc(model.scores(new)[new_truth], model.scores(new)[~new_truth])
        for model in (without, taught)
    ]
    assert auc[1] > auc[0] + 0.02


def test_images_are_flattened_by_the_width_they_are_built_for() -> None:
    from onesided.core.batch import DataFacts
    from tests.methods.linear_clouds import Untouched

    shape = (2, 3, 4)
    for settings in QUICK.values():
        method = settings.build(DataFacts(10, 4, shape), Untouched(2))
        parts = getattr(method, "parts", {"all": method})
        assert {part.width for part in parts.values()} == {prod(shape)}
