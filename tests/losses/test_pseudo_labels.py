"""Costs under soft and pseudo labels, with HolisticPU's numbers."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from onesided.losses.pseudo_labels import confident_consistency, sharpened, soft_label_cost


def double(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize(
    ("smoothing", "cost"), [(0.1, 0.22692801), (0.01, 0.13692801), (0.0, 0.12692801)]
)
def test_smoothing_a_positive_at_margin_two(smoothing: float, cost: float) -> None:
    found = soft_label_cost(double(2.0), double(1 - smoothing / 2))
    assert float(found) == pytest.approx(cost, abs=1e-8)


@given(st.floats(-30, 30), st.floats(0, 1))
def test_the_cost_equals_its_formula(margin: float, positive: float) -> None:
    expected = positive * math.log1p(math.exp(-margin)) + (1 - positive) * math.log1p(
        math.exp(margin)
    )
    found = float(soft_label_cost(double(margin), double(positive)))
    assert found == pytest.approx(expected, rel=1e-9)


def test_a_confident_mistake_is_dear_and_finite() -> None:
    assert float(soft_label_cost(double(-1e4), double(1.0))) == pytest.approx(1e4)


def test_the_soft_part_of_the_second_stage_by_hand() -> None:
    # Epoch 12 of 25: pseudo labels weigh (12 / 25)^0.8; one positive, one negative.
    trust = (12 / 25) ** 0.8
    cost = soft_label_cost(double(3.0, -1.0), trust * double(1.0, 0.0))
    assert float(cost.mean()) == pytest.approx(0.84708159, abs=1e-8)


def test_consistency_by_hand_where_only_the_first_row_is_sure() -> None:
    weak, strong = double(3.0, -1.0), double(1.0, -2.0)
    assert weak.abs().sigmoid().tolist() == pytest.approx([0.9526, 0.7311], abs=1e-4)
    cost = confident_consistency(weak, strong, confidence=0.9)
    assert float(cost[1]) == 0
    assert float(cost.mean()) == pytest.approx(0.15663084, abs=1e-8)


def test_soft_cost_and_consistency_add_up_to_the_published_number() -> None:
    weak, strong = double(3.0, -1.0), double(1.0, -2.0)
    target = (12 / 25) ** 0.8 * double(1.0, 0.0)
    total = soft_label_cost(weak, target) + confident_consistency(weak, strong, confidence=0.9)
    assert float(total.mean()) == pytest.approx(1.00371244, abs=1e-8)


def test_the_cost_of_a_confident_negative_is_that_of_the_label_negative() -> None:
    cost = confident_consistency(double(-5.0), double(2.0), confidence=0.9)
    assert float(cost) == pytest.approx(2 + math.log1p(math.exp(-2)))


def test_the_teacher_gets_no_gradient() -> None:
    weak, strong = double(4.0).requires_grad_(), double(0.5).requires_grad_()
    confident_consistency(weak, strong, confidence=0.9).sum().backward()  # type: ignore[no-untyped-call]
    assert weak.grad is None
    assert strong.grad is not None
    assert float(strong.grad) < 0


def test_a_guess_is_sharpened_to_the_number_computed_by_hand() -> None:
    found = sharpened(double(0.6, 0.4)[None], temperature=0.07)[0]
    assert found.tolist() == pytest.approx([0.99695850, 0.00304150], abs=1e-8)


@given(st.floats(0, 1), st.floats(0.05, 1))
def test_sharpening_keeps_the_order_and_the_sum(positive: float, temperature: float) -> None:
    found = sharpened(double(positive, 1 - positive)[None], temperature=temperature)[0].tolist()
    assert sum(found) == pytest.approx(1)
    assert abs(found[0] - 0.5) >= abs(positive - 0.5) - 1e-9
    assert (found[0] - 0.5) * (positive - 0.5) >= 0
