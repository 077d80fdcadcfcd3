"""Linear: the optimum of its formula, and a penalty chosen out of fold."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from onesided.core.errors import CheckpointError, ConfigError
from onesided.methods.against_pool import TrainingRows, out_of_fold
from onesided.methods.linear import PENALTIES, Linear, LinearConfig
from onesided.metrics.pu import proxy_auc
from onesided.nets.standardise import Standardise
from tests.methods.p_against_u import WIDTH, clouds, trained, untrained, with_entry


def objective(
    parameters: np.ndarray, rows: np.ndarray, labelled: np.ndarray, penalty: float
) -> float:
    """The formula of the module, sample by sample."""
    *weights, bias = parameters
    count = len(rows)
    total = 0.0
    for row, is_positive in zip(rows, labelled, strict=True):
        sign = 1 if is_positive else -1
        of_class = labelled.sum() if is_positive else (~labelled).sum()
        weight = count / 2 / of_class
        total += weight * np.logaddexp(0, -sign * (row @ np.array(weights) + bias))
    return float(total / count + penalty / 2 * sum(w**2 for w in weights))


@pytest.mark.parametrize("penalty", [1.0, 0.03])
def test_the_weights_minimise_the_formula(penalty: float) -> None:
    data = clouds(60)
    rows = (data.features - data.features.mean(axis=0)) / data.features.std(axis=0)
    method = Linear(LinearConfig(penalty=penalty), WIDTH)
    method.fit(data.features, data.labelled, np.random.default_rng(0))
    best = minimize(
        objective, np.zeros(WIDTH + 1), (rows.astype(np.float64), data.labelled, penalty)
    )
    assert method.numbers is not None
    assert method.numbers["weight"] == pytest.approx(best.x[:-1], abs=2e-3)
    assert method.numbers["bias"][0] == pytest.approx(best.x[-1], abs=2e-3)
    found = objective(
        np.append(method.numbers["weight"], method.numbers["bias"]), rows, data.labelled, penalty
    )
    assert found == pytest.approx(best.fun, abs=1e-6)


def test_scores_are_the_logistic_function_of_weights_on_standardised_samples() -> None:
    data = clouds()
    method = Linear(LinearConfig(penalty=0.1), WIDTH)
    method.fit(data.features, data.labelled, np.random.default_rng(0))
    n = method.numbers
    assert n is not None
    for sample, score in zip(data.new[:5], method.scores(data.new[:5]), strict=True):
        margin = sum((sample - n["centre"]) / n["scale"] * n["weight"]) + n["bias"][0]
        assert score == pytest.approx(1 / (1 + np.exp(-margin)))


def test_the_scale_of_the_data_is_taken_where_it_has_one() -> None:
    standardise = Standardise([1.0] * WIDTH, [2.0] * WIDTH)
    method = Linear(LinearConfig(penalty=0.1), WIDTH, standardise)
    data = clouds()
    method.fit(data.features, data.labelled, np.random.default_rng(0))
    assert method.numbers is not None
    assert method.numbers["centre"].tolist() == [1.0] * WIDTH
    assert method.numbers["scale"].tolist() == [2.0] * WIDTH


def test_a_common_scale_keeps_the_ratio_of_spreads() -> None:
    data = clouds()
    wide = data.features * np.array([1, 1, 1, 1, 10], np.float32)
    scales = {}
    for scaling in ("each", "common"):
        method = Linear(LinearConfig.from_settings({"penalty": 0.1, "scaling": scaling}), WIDTH)
        method.fit(wide, data.labelled, np.random.default_rng(0))
        assert method.numbers is not None
        scales[scaling] = method.numbers["scale"]
    assert scales["each"] == pytest.approx(wide.std(axis=0), rel=1e-5)
    centred = wide - wide.mean(axis=0)
    assert scales["common"] == pytest.approx(np.full(WIDTH, np.sqrt((centred**2).mean())), rel=1e-5)


@pytest.mark.parametrize("scaling", ["each", "common"])
def test_the_first_numbers_alone_are_a_model_of_them_with_weights_of_zero(scaling: str) -> None:
    data, penalty, first = clouds(), 0.1, WIDTH - 2
    settings = {"penalty": penalty, "scaling": scaling}
    whole = Linear(LinearConfig.from_settings(settings | {"first": first}), WIDTH)
    narrow = Linear(LinearConfig.from_settings(settings), first)
    whole.fit(data.features, data.labelled, np.random.default_rng(0))
    narrow.fit(data.features[:, :first], data.labelled, np.random.default_rng(0))
    expected = narrow.scores(data.features[:, :first])
    assert whole.scores(data.features) == pytest.approx(expected, abs=1e-9)
    assert whole.numbers is not None
    assert not whole.numbers["weight"][first:].any()


def test_a_constant_feature_is_only_shifted() -> None:
    data = clouds()
    features = data.features.copy()
    features[:, 2] = 1e6
    method = Linear(LinearConfig(penalty=0.1), WIDTH)
    method.fit(features, data.labelled, np.random.default_rng(0))
    assert method.numbers is not None
    assert method.numbers["scale"][2] == 1
    assert abs(method.numbers["weight"][2]) < 1e-6


def test_the_penalty_is_that_with_the_highest_proxy_auc_out_of_fold() -> None:
    data = clouds(90, seed=3)
    automatic = Linear(LinearConfig(), WIDTH)
    automatic.fit(data.features, data.labelled, np.random.default_rng(7))
    seed = int(np.random.default_rng(7).integers(2**63))

    def proxy(penalty: float) -> float:
        def score(some: TrainingRows, new: np.ndarray) -> np.ndarray:
            model = Linear(LinearConfig(penalty=penalty), WIDTH)
            model.fit(some.features, some.labelled, np.random.default_rng(0))
            found: np.ndarray = model.scores(new)
            return found

        rows = TrainingRows(data.features, data.labelled)
        scores = out_of_fold(rows, score, np.random.default_rng(seed))
        return proxy_auc(scores[data.labelled], scores[~data.labelled])

    best = max(PENALTIES, key=proxy)
    same = Linear(LinearConfig(penalty=best), WIDTH)
    same.fit(data.features, data.labelled, np.random.default_rng(0))
    assert np.array_equal(same.scores(data.new), automatic.scores(data.new))


def test_a_second_pass_learns_from_the_likely_positives() -> None:
    data = clouds(600, shift=2.5)
    once, twice = (trained(LinearConfig(penalty=0.01, passes=n), data) for n in (1, 2))
    hidden = data.truth & ~data.labelled
    before, after = once.scores(data.features)[hidden], twice.scores(data.features)[hidden]
    assert after.mean() > before.mean() + 0.15, "they are no longer taught as unlabelled"


@pytest.mark.parametrize("penalty", [0, -1.0, float("inf"), float("nan"), "strong", True])
def test_a_penalty_is_auto_or_above_0(penalty: object) -> None:
    with pytest.raises(ConfigError, match="auto or a number above 0") as error:
        LinearConfig.from_settings({"penalty": penalty})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("weight", torch.zeros(WIDTH + 1, dtype=torch.float64), "should hold 5 weights"),
        ("bias", torch.zeros(2, dtype=torch.float64), "should hold 5 weights"),
        ("weight", torch.full((WIDTH,), torch.nan, dtype=torch.float64), "not finite"),
        ("scale", torch.zeros(WIDTH, dtype=torch.float64), "divides features by zero"),
        ("weight", torch.zeros(WIDTH), "should be a list of torch.float64"),
    ],
)
def test_damaged_weights_are_refused(name: str, value: torch.Tensor, words: str) -> None:
    settings = LinearConfig(penalty=1.0)
    state = trained(settings, clouds()).state_dict()
    with pytest.raises(CheckpointError, match=words):
        untrained(settings).load_state_dict(with_entry(state, name, value))
