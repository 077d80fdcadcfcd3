"""Trend scores: hand numbers, loops over pairs, and what the table stores."""

import math
from itertools import combinations, pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from onesided.core.errors import ContractError
from onesided.state.trend import PredictionTrends, Trend, trend_scores

FALLING, WAVERING, DROP = [0.5, 0.4, 0.3, 0.2], [0.5, 0.6, 0.4, 0.7], [0.9, 0.1]
probabilities = st.lists(st.floats(0, 1), min_size=2, max_size=8)


def history(*rows: list[float]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def score(values: list[float], trend: Trend) -> float:
    return float(trend_scores(history(values), trend))


@pytest.mark.parametrize(
    ("values", "trend", "expected"),
    [
        (FALLING, "consecutive", -0.09982034),
        (WAVERING, "consecutive", 0.06592947),
        ([0.3] * 4, "consecutive", 0.0),
        (DROP, "consecutive", -0.65392647),
        (FALLING, "symmetric", -0.09984533),
        (WAVERING, "symmetric", 0.06579616),
        ([0.3] * 4, "symmetric", 0.0),
        (DROP, "symmetric", -0.75141609),
        (FALLING, "pairwise", -0.16560529),
        (WAVERING, "pairwise", 0.06603989),
    ],
)
def test_scores_computed_by_hand(values: list[float], trend: Trend, expected: float) -> None:
    assert score(values, trend) == pytest.approx(expected, abs=1e-8)


def psi(difference: float) -> float:
    size = abs(difference)
    return math.copysign(math.log(1 + size + size**2 / 2), difference)


@given(probabilities)
def test_scores_equal_loops_over_recordings(values: list[float]) -> None:
    steps = [later - earlier for earlier, later in pairwise(values)]
    pairs = [later - earlier for earlier, later in combinations(values, 2)]
    one_sided = sum(math.log(1 + d + d**2 / 2) for d in steps) / len(steps)
    assert score(values, "consecutive") == pytest.approx(one_sided, abs=1e-12)
    assert score(values, "symmetric") == pytest.approx(sum(map(psi, steps)) / len(steps), abs=1e-12)
    assert score(values, "pairwise") == pytest.approx(sum(map(psi, pairs)) / len(pairs), abs=1e-12)


@given(probabilities)
def test_the_released_score_is_finite_for_all_probabilities(values: list[float]) -> None:
    assert score(values, "consecutive") >= math.log(0.5)


@given(st.floats(-0.99, 1.0), st.floats(0.001, 0.5))
def test_a_larger_step_up_gives_a_larger_score(step: float, more: float) -> None:
    smaller, larger = history([0.0, step]), history([0.0, step + more])
    for trend in ("consecutive", "symmetric", "pairwise"):
        assert float(trend_scores(larger, trend)) > float(trend_scores(smaller, trend))


def test_going_back_flips_the_symmetric_score_and_not_quite_the_released_one() -> None:
    rising = FALLING[::-1]
    assert score(rising, "symmetric") == pytest.approx(-score(FALLING, "symmetric"))
    assert score(rising, "pairwise") == pytest.approx(-score(FALLING, "pairwise"))
    assert abs(score(rising, "consecutive") + score(FALLING, "consecutive")) > 1e-5


def test_rows_are_scored_each_by_itself() -> None:
    both = trend_scores(history(FALLING, WAVERING), "consecutive")
    assert both.tolist() == [score(FALLING, "consecutive"), score(WAVERING, "consecutive")]


def test_a_single_recording_shows_no_trend() -> None:
    with pytest.raises(ContractError, match="at least two recordings; got 1"):
        trend_scores(history([0.5]), "consecutive")


def recorded(*columns: list[float], room: int = 5) -> PredictionTrends:
    trends = PredictionTrends(len(columns[0]), room).double()
    for column in columns:
        trends.record(torch.tensor(column, dtype=torch.float64))
    return trends


def test_columns_not_yet_filled_do_not_count() -> None:
    trends = recorded(*([value] for value in FALLING))
    assert float(trends.scores("consecutive")) == pytest.approx(-0.09982034, abs=1e-8)


def test_a_full_table_takes_no_more() -> None:
    trends = recorded([0.1], [0.2], room=2)
    with pytest.raises(ContractError, match="full after 2 recordings"):
        trends.record(torch.tensor([0.3]))


def test_a_resumed_table_goes_on_in_the_next_column() -> None:
    trends, resumed = recorded([0.5], [0.4]), PredictionTrends(1, 5).double()
    resumed.load_state_dict(trends.state_dict())
    for column in ([0.3], [0.2]):
        resumed.record(torch.tensor(column, dtype=torch.float64))
    assert float(resumed.scores("consecutive")) == pytest.approx(-0.09982034, abs=1e-8)


def test_the_head_start_is_the_share_of_the_final_spread() -> None:
    trends = recorded([0.4, 0.5, 0.9], [0.1, 0.1, 0.1], [0.2, 0.6, 0.1])
    chosen = torch.tensor([True, True, False])
    assert trends.head_start(chosen) == pytest.approx(0.1 / 0.4)


def test_predictions_that_end_equal_have_the_largest_head_start() -> None:
    assert recorded([0.4, 0.6], [0.5, 0.5]).head_start(torch.tensor([True, True])) > 1
