"""Average: the mean of its parts' log odds, each on the same scale."""

import tomllib

import numpy as np
import pytest
import torch

from onesided.core.config import dump_toml
from onesided.core.errors import CheckpointError, ConfigError
from onesided.methods.average import AverageConfig, averaged
from onesided.methods.forest import Forest, ForestConfig
from onesided.methods.linear import Linear, LinearConfig
from onesided.nets.standardise import Standardise
from tests.methods.p_against_u import WIDTH, clouds, trained, untrained, with_entry

TWO = AverageConfig(linear={"penalty": 3.0}, forest={"trees": 6}, boosting=None)


def log_odds(scores: np.ndarray) -> np.ndarray:
    odds: np.ndarray = np.log(scores / (1 - scores))
    return odds


def test_the_score_is_the_mean_of_log_odds_divided_by_their_spread() -> None:
    data = clouds()
    average = trained(TWO, data, seed=5)
    random = np.random.default_rng(5)  # one generator for all parts, one after the other
    scale = Standardise([0.0] * WIDTH, [1.0] * WIDTH)
    parts: list[Linear | Forest] = [
        Linear(LinearConfig(penalty=3.0), WIDTH, scale),
        Forest(ForestConfig(trees=6), WIDTH),
    ]
    total = np.zeros(len(data.new))
    for part in parts:
        part.fit(data.features, data.labelled, random)
        inside = np.clip(part.scores(data.features), 1e-6, 1 - 1e-6)
        new = np.clip(part.scores(data.new), 1e-6, 1 - 1e-6)
        total += log_odds(new) / log_odds(inside).std()
    assert average.scores(data.new) == pytest.approx(1 / (1 + np.exp(-total / 2)))


def test_a_timid_part_counts_as_much_as_a_bold_one() -> None:
    data = clouds()
    timid = AverageConfig(linear={"penalty": 1000.0}, forest={"trees": 6})
    average = trained(timid, data)
    linear = average.parts["linear"].scores(data.new)
    assert linear.std() < 0.01
    assert np.corrcoef(average.scores(data.new), linear)[0, 1] > 0.5


def test_spreads_that_are_known_are_not_measured() -> None:
    data = clouds()
    known = TWO.model_copy(update={"spreads": {"linear": 0.5, "forest": 2.0}})
    average = trained(known, data)
    parts = [average.parts[name].scores(data.new) for name in ("linear", "forest")]
    assert average.scores(data.new) == pytest.approx(averaged(parts, [0.5, 2.0]))
    assert average.state_dict()["scale"].tolist() == [0.5, 2.0]


def test_two_models_of_one_kind_can_be_averaged() -> None:
    twice = {"penalty": 3.0, "passes": 2}
    both = AverageConfig(linear={"penalty": 3.0}, linear_twice=twice, forest=None)
    average = trained(both, clouds())
    assert list(average.parts) == ["linear", "linear_twice"]
    again = untrained(both)
    again.load_state_dict(average.state_dict())
    assert (again.scores(clouds().new) == average.scores(clouds().new)).all()


@pytest.mark.parametrize(
    "spreads", [{"linear": 1.0}, {"linear": 1.0, "forest": 0.0}, {"linear": 1.0, "forest": np.nan}]
)
def test_spreads_that_do_not_fit_are_refused(spreads: dict[str, float]) -> None:
    settings = {"linear": {}, "forest": {}, "spreads": spreads}
    with pytest.raises(ConfigError, match="spread"):
        AverageConfig.from_settings(settings)


def test_it_takes_two_parts_at_least() -> None:
    with pytest.raises(ConfigError, match="two methods at least"):
        AverageConfig.from_settings({"forest": None})


@pytest.mark.parametrize("left_out", ["linear", "forest", "boosting"])
def test_a_part_that_is_left_out_stays_so_in_a_toml_file(left_out: str) -> None:
    settings = {"linear": {"penalty": 3.0}, "forest": {"trees": 6}, "boosting": {"trees": 2}}
    config = AverageConfig.from_settings({**settings, left_out: None})
    again = AverageConfig.from_settings(tomllib.loads(dump_toml(config.stored())))
    assert again == config
    assert left_out not in again.parts()


def test_the_settings_of_a_part_are_checked_in_one_sentence() -> None:
    with pytest.raises(ConfigError) as error:
        AverageConfig.from_settings({"linear": {"penalty": -1}})
    assert "above 0" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "scale",
    [
        torch.ones(3, dtype=torch.float64),
        torch.tensor([1.0, 0.0], dtype=torch.float64),
        torch.tensor([1.0, -1.0], dtype=torch.float64),
        torch.tensor([1.0, torch.inf], dtype=torch.float64),
        torch.tensor([1.0, torch.nan], dtype=torch.float64),
        torch.ones(2, dtype=torch.int64),
    ],
)
def test_a_scale_that_no_average_has_is_refused(scale: torch.Tensor) -> None:
    state = trained(TWO, clouds()).state_dict()
    with pytest.raises(CheckpointError, match="no scale for each of its parts"):
        untrained(TWO).load_state_dict(with_entry(state, "scale", scale))


def test_a_model_of_other_parts_is_refused() -> None:
    state = trained(TWO, clouds()).state_dict()
    other = AverageConfig(linear=None, forest={"trees": 6}, boosting={"trees": 2})
    with pytest.raises(CheckpointError, match="not the numbers of this average: see 'linear'"):
        untrained(other).load_state_dict(state)
