"""The largest margin: a shift that decides as Phi / max Phi > 1/2 does."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from onesided.state.largest_margin import LargestMargin

MARGINS = st.floats(-30, 30)


def measured(values: list[float], quantile: float = 1.0) -> LargestMargin:
    largest = LargestMargin()
    largest.measure(torch.tensor(values, dtype=torch.float64), quantile=quantile)
    return largest


def log_phi(margin: float) -> float:
    return -math.log1p(math.exp(-margin))


@given(MARGINS, st.lists(MARGINS, min_size=1, max_size=6))
def test_a_shifted_margin_above_zero_is_a_phi_above_half_the_largest(
    margin: float, training: list[float]
) -> None:
    relative = log_phi(margin) - max(log_phi(value) for value in training)
    if abs(relative - math.log(0.5)) < 1e-9:
        return  # the boundary itself is a matter of rounding
    shifted = margin + float(measured(training).shift())
    assert (shifted > 0) == (relative > math.log(0.5))


@pytest.mark.parametrize(
    ("largest", "shift"), [(0.0, math.log(3)), (50.0, 0.0), (-50.0, 50.693147)]
)
def test_shifts_by_hand(largest: float, shift: float) -> None:
    # Phi_max 1/2: positive from Phi = 1/4, that is from a margin of -log 3.
    assert float(measured([largest]).shift()) == pytest.approx(shift, abs=1e-6)


def test_the_least_sample_of_a_tiny_phi_is_compared_with_the_largest() -> None:
    shift = float(measured([-40.0]).shift())
    assert -40.6 + shift > 0
    assert -40.8 + shift < 0


def test_before_anything_is_measured_nothing_is_shifted() -> None:
    assert float(LargestMargin().shift()) == 0


@pytest.mark.parametrize(
    ("quantile", "expected"), [(1.0, 99.0), (0.99, 98.0), (0.5, 49.0), (0.001, 0.0)]
)
def test_a_quantile_passes_over_outliers(quantile: float, expected: float) -> None:
    values = [float(value) for value in reversed(range(100))]
    assert float(measured(values, quantile).value) == expected


def test_the_number_travels_with_the_checkpoint() -> None:
    assert list(LargestMargin().state_dict()) == ["value"]
