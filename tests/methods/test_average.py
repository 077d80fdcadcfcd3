"""Average: the mean of its parts' log odds, each on the same scale."""

import numpy as np
import pytest
import torch

from onesided.core.errors import CheckpointError, ConfigError
from onesided.methods.average import AverageConfig
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


def test_it_takes_two_parts_at_least() -> None:
    with pytest.raises(ConfigError, match="two methods at least"):
        AverageConfig.from_settings({"forest": None})


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
