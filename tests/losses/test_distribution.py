"""DistPU's risk against loops and hand numbers, and the effect of its constants."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from onesided.core.errors import ConfigError
from onesided.losses.distribution import binary_entropy, label_distribution_risk, mixup_cost
from onesided.losses.pseudo_labels import soft_label_cost


def logit(*probabilities: float) -> Tensor:
    return torch.tensor(probabilities, dtype=torch.float64).logit()


def risk_of(positive: list[float], unlabelled: list[float], prior: float) -> float:
    labelled = torch.tensor([True] * len(positive) + [False] * len(unlabelled))
    return float(label_distribution_risk(logit(*positive, *unlabelled), labelled, prior=prior))


@pytest.mark.parametrize(
    ("unlabelled", "risk", "released"),
    [([0.2, 0.6, 0.4], 0.16, 0.20), ([0.2, 0.6, 0.7], 0.26, 0.325)],
)
def test_the_risk_is_two_distances_between_shares(
    unlabelled: list[float], risk: float, released: float
) -> None:
    found = risk_of([0.9, 0.7], unlabelled, 0.4)
    assert found == pytest.approx(risk, abs=1e-12)
    assert found / (2 * 0.4) == pytest.approx(released, abs=1e-12)


def test_at_logit_zero_risk_and_gradient_are_those_computed_by_hand() -> None:
    margin = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    risk = label_distribution_risk(margin, torch.tensor([True, False, False]), prior=0.4)
    assert float(risk.detach()) == pytest.approx(0.5)
    (gradient,) = torch.autograd.grad(risk, margin)
    assert gradient.tolist() == pytest.approx([-0.2, 0.125, 0.125])


@given(
    st.lists(st.floats(0.01, 0.99), min_size=1, max_size=6),
    st.lists(st.floats(0.01, 0.99), min_size=1, max_size=6),
    st.floats(0.05, 0.95),
)
def test_the_risk_equals_its_formula_in_plain_numbers(
    positive: list[float], unlabelled: list[float], prior: float
) -> None:
    on_positive = abs(sum(positive) / len(positive) - 1)
    on_unlabelled = abs(sum(unlabelled) / len(unlabelled) - prior)
    assert risk_of(positive, unlabelled, prior) == pytest.approx(
        2 * prior * on_positive + on_unlabelled, abs=1e-9
    )


@pytest.mark.parametrize(("prior", "best", "value"), [(0.4, 0.4, 0.48), (0.7188, 1.0, 0.2812)])
def test_the_cheapest_constant_is_the_prior_below_one_half_and_all_positive_above(
    prior: float, best: float, value: float
) -> None:
    constants = [step / 1000 for step in range(1, 1000)] + [1 - 1e-9]
    risks = {constant: risk_of([constant], [constant], prior) for constant in constants}
    cheapest = min(risks, key=lambda constant: risks[constant])
    assert cheapest == pytest.approx(best, abs=1e-6)
    assert risks[cheapest] == pytest.approx(value, abs=1e-6)


def test_with_a_prior_of_72_percent_all_positive_beats_predicting_the_prior() -> None:
    assert risk_of([0.7188], [0.7188], 0.7188) == pytest.approx(0.4043, abs=1e-4)
    assert risk_of([1 - 1e-9], [1 - 1e-9], 0.7188) == pytest.approx(0.2812, abs=1e-4)


@pytest.mark.parametrize(("prior", "constant", "value"), [(0.5751, 1.0, 0.4249)])
def test_a_prior_just_above_one_half_has_the_same_way_out(
    prior: float, constant: float, value: float
) -> None:
    assert risk_of([constant - 1e-9], [constant - 1e-9], prior) == pytest.approx(value, abs=1e-6)
    assert risk_of([prior], [prior], prior) == pytest.approx(0.4887, abs=1e-4)


@pytest.mark.parametrize("present", [True, False], ids=["only P", "only U"])
def test_a_term_without_samples_is_left_out(present: bool) -> None:
    margin = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    labelled = torch.full((4,), present)
    risk = label_distribution_risk(margin, labelled, prior=0.4)
    assert float(risk.detach()) == pytest.approx(2 * 0.4 * 0.5 if present else 0.1)
    (gradient,) = torch.autograd.grad(risk, margin)
    assert torch.isfinite(gradient).all()
    assert gradient.any()


def test_a_prior_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"got prior 1\.2"):
        label_distribution_risk(torch.zeros(1), torch.tensor([True]), prior=1.2)


def test_entropy_of_a_half_and_of_nine_tenths() -> None:
    entropy = binary_entropy(logit(0.5, 0.9))
    assert entropy.tolist() == pytest.approx([0.69314718, 0.32508297], abs=1e-8)
    assert float(entropy.mean()) == pytest.approx(0.50911508, abs=1e-8)


@given(st.floats(0.001, 0.999))
def test_entropy_equals_its_formula(probability: float) -> None:
    p = probability
    expected = -p * math.log(p) - (1 - p) * math.log(1 - p)
    assert float(binary_entropy(logit(p))) == pytest.approx(expected, abs=1e-9)


def test_a_saturated_prediction_has_no_entropy_and_a_finite_gradient() -> None:
    margin = torch.tensor([-200.0, 200.0], requires_grad=True)
    entropy = binary_entropy(margin)
    assert entropy.tolist() == pytest.approx([0, 0], abs=1e-30)
    (gradient,) = torch.autograd.grad(entropy.sum(), margin)
    assert torch.isfinite(gradient).all()


FIRST = torch.tensor([1.0, 0.2], dtype=torch.float64)
SECOND = torch.tensor([0.2, 1.0], dtype=torch.float64)


def test_mixup_costs_what_both_ingredients_cost() -> None:
    margin = logit(0.8, 0.3)
    costs = [float(soft_label_cost(margin, target).mean()) for target in (FIRST, SECOND)]
    assert costs == pytest.approx([0.37463903, 1.26807592], abs=1e-8)
    assert float(mixup_cost(margin, FIRST, SECOND, share=0.3)) == pytest.approx(
        1.00004486, abs=1e-8
    )


@given(st.floats(0, 1))
def test_mixup_equals_the_cost_under_the_mixed_label(share: float) -> None:
    margin = logit(0.8, 0.3)
    mixed = share * FIRST + (1 - share) * SECOND
    assert float(mixup_cost(margin, FIRST, SECOND, share=share)) == pytest.approx(
        float(soft_label_cost(margin, mixed).mean())
    )
