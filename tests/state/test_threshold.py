"""The self-adaptive threshold: fact S1, the cap, and what it means."""

import pytest
import torch

from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.state.threshold import SelfAdaptiveThreshold


def rows(*p_positive: float) -> torch.Tensor:
    probabilities = torch.zeros(len(p_positive), 2, dtype=torch.float64)
    probabilities[:, POSITIVE] = torch.tensor(p_positive)
    probabilities[:, NEGATIVE] = 1 - torch.tensor(p_positive, dtype=torch.float64)
    return probabilities


def test_three_updates_give_the_numbers_computed_by_hand() -> None:
    state = SelfAdaptiveThreshold().double()
    confidence = [0.503, 0.50597, 0.5089103]
    p_negative = [0.5003333333, 0.5006633333, 0.5009900333]
    for step in range(3):
        state.follow(rows(0.9, 0.3, 0.2), momentum=0.99)
        assert float(state.confidence) == pytest.approx(confidence[step], abs=1e-7)
        assert float(state.class_share[NEGATIVE]) == pytest.approx(p_negative[step], abs=1e-7)
        assert float(state.class_share[POSITIVE]) == pytest.approx(1 - p_negative[step], abs=1e-7)
        assert float(state.threshold) == float(state.confidence), "negatives are the larger class"


def test_threshold_falls_where_positives_are_the_larger_class() -> None:
    state = SelfAdaptiveThreshold().double()
    state.follow(rows(0.9, 0.9), momentum=0.0)
    assert float(state.threshold) == pytest.approx(0.1 / 0.9 * 0.9)


def test_cap_limits_confidence_only() -> None:
    state = SelfAdaptiveThreshold().double()
    state.follow(rows(0.01), momentum=0.0, cap=0.8)
    assert float(state.confidence) == pytest.approx(0.8)
    assert float(state.class_share[NEGATIVE]) == pytest.approx(0.99)


def test_no_rows_change_nothing() -> None:
    state = SelfAdaptiveThreshold()
    state.follow(torch.zeros(0, 2), momentum=0.5)
    assert float(state.confidence) == 0.5


def test_state_travels_with_the_checkpoint() -> None:
    assert list(SelfAdaptiveThreshold().state_dict()) == ["confidence", "class_share"]
