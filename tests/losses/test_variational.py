"""The variational loss against loops, hand numbers and the theorem it rests on."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from onesided.losses.variational import mixed_log_target, mixup_loss, variational_loss

PHI_U, PHI_P = [0.2, 0.4, 0.6, 0.8], [0.9, 0.6]
# Three places; P and N overlap at the second, and U is 40 % P.
P_POSITIVE, P_UNLABELLED, PRIOR = np.array([0.5, 0.5, 0.0]), np.array([0.2, 0.35, 0.45]), 0.4

LOGARITHMS = st.lists(st.floats(-30, 0), min_size=1, max_size=6)


def logarithms(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64).log()


def slow_variational(positive: list[float], unlabelled: list[float]) -> float:
    inside = sum(math.exp(value) for value in unlabelled) / len(unlabelled)
    return math.log(inside) - sum(positive) / len(positive)


def in_population(phi: np.ndarray) -> float:
    """L_var with expectations over the three places instead of means over samples."""
    attracted = P_POSITIVE > 0
    return float(np.log(P_UNLABELLED @ phi) - P_POSITIVE[attracted] @ np.log(phi[attracted]))


# the loss


def test_the_loss_of_six_samples() -> None:
    loss = variational_loss(logarithms(PHI_P), logarithms(PHI_U))
    assert loss.item() == pytest.approx(-0.3850541108, abs=1e-10)
    assert loss.exp().item() == pytest.approx(0.6804138174, abs=1e-10)


def test_the_loss_of_five_margins() -> None:
    unlabelled = F.logsigmoid(torch.tensor([0.0, 1.0, -1.0], dtype=torch.float64))
    positive = F.logsigmoid(torch.tensor([2.0, 0.5], dtype=torch.float64))
    assert variational_loss(positive, unlabelled).item() == pytest.approx(-0.3926446829, abs=1e-10)


@given(LOGARITHMS, LOGARITHMS)
def test_the_loss_is_log_of_mean_over_u_minus_mean_of_log_over_p(
    positive: list[float], unlabelled: list[float]
) -> None:
    fast = variational_loss(
        torch.tensor(positive, dtype=torch.float64), torch.tensor(unlabelled, dtype=torch.float64)
    )
    assert fast.item() == pytest.approx(slow_variational(positive, unlabelled), abs=1e-9)


@given(LOGARITHMS, LOGARITHMS, st.floats(-20, 20))
def test_a_common_factor_of_phi_changes_nothing(
    positive: list[float], unlabelled: list[float], log_factor: float
) -> None:
    p = torch.tensor(positive, dtype=torch.float64)
    u = torch.tensor(unlabelled, dtype=torch.float64)
    loss, scaled = variational_loss(p, u), variational_loss(p + log_factor, u + log_factor)
    torch.testing.assert_close(loss, scaled, rtol=0, atol=1e-9)


def test_dividing_by_the_largest_phi_changes_nothing() -> None:
    divided = variational_loss(
        logarithms([value / 0.9 for value in PHI_P]), logarithms([value / 0.9 for value in PHI_U])
    )
    assert divided.item() == pytest.approx(-0.3850541108, abs=1e-10)


def test_the_gradient_pushes_u_by_its_share_of_phi_and_pulls_p_alike() -> None:
    positive = logarithms(PHI_P).requires_grad_()
    unlabelled = logarithms(PHI_U).requires_grad_()
    on_p, on_u = torch.autograd.grad(variational_loss(positive, unlabelled), (positive, unlabelled))
    assert on_u.tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=1e-12)
    assert on_p.tolist() == pytest.approx([-0.5, -0.5], abs=1e-12)
    assert float(on_p.sum() + on_u.sum()) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("missing", ["positive", "unlabelled", "both"])
def test_a_group_that_is_missing_costs_zero(missing: str) -> None:
    none = torch.empty(0, dtype=torch.float64, requires_grad=True)
    positive = none if missing != "unlabelled" else logarithms(PHI_P)
    unlabelled = none if missing != "positive" else logarithms(PHI_U)
    expected = {
        "positive": math.log(0.5),
        "unlabelled": -(math.log(0.9) + math.log(0.6)) / 2,
        "both": 0.0,
    }
    loss = variational_loss(positive, unlabelled)
    assert loss.item() == pytest.approx(expected[missing], abs=1e-12)


def test_extreme_margins_give_finite_losses_and_gradients() -> None:
    margins = torch.tensor([1e4, -1e4, 1e4, -1e4], requires_grad=True)
    log_phi = F.logsigmoid(margins)
    loss = variational_loss(log_phi[:2], log_phi[2:])
    (gradient,) = torch.autograd.grad(loss, margins)
    assert loss.isfinite()
    assert gradient.isfinite().all()


# the theorem


def test_the_best_phi_is_the_posterior_and_its_loss_minus_the_divergence() -> None:
    ratio = P_POSITIVE / P_UNLABELLED
    assert ratio.tolist() == pytest.approx([2.5, 1.4285714286, 0], abs=1e-10)
    best = ratio / ratio.max()
    posterior = PRIOR * P_POSITIVE / P_UNLABELLED
    assert best.tolist() == pytest.approx(posterior.tolist(), abs=1e-12)
    assert best.tolist() == pytest.approx([1, 0.5714285714, 0], abs=1e-10)

    attracted = P_POSITIVE > 0
    divergence = float(P_POSITIVE[attracted] @ np.log(ratio[attracted]))
    assert in_population(best) == pytest.approx(-divergence, abs=1e-12)
    assert in_population(best) == pytest.approx(-0.6364828379, abs=1e-10)


@given(st.lists(st.floats(0.001, 1), min_size=3, max_size=3))
def test_no_other_phi_has_a_lower_loss_and_none_falls_below_the_prior(phi: list[float]) -> None:
    loss = in_population(np.array(phi))
    assert loss >= -0.6364828379 - 1e-9
    assert math.exp(loss) >= PRIOR
    assert math.log(1 / PRIOR) == pytest.approx(0.9162907319, abs=1e-10)


def test_the_loss_finds_the_posterior_of_the_three_places_by_descent() -> None:
    # Counts in the proportions of the distributions stand for expectations.
    z = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    on_p = torch.repeat_interleave(torch.arange(3), torch.tensor([10, 10, 0]))
    on_u = torch.repeat_interleave(torch.arange(3), torch.tensor([20, 35, 45]))
    optimizer = torch.optim.Adam([z], lr=0.1)
    for _ in range(600):
        log_phi = F.logsigmoid(z)
        loss = variational_loss(log_phi[on_p], log_phi[on_u])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    phi = torch.sigmoid(z.detach())
    assert (phi / phi.max()).tolist() == pytest.approx([1, 0.5714285714, 0], abs=2e-3)


# mixtures


def test_the_target_of_a_mixture_lies_between_its_parents() -> None:
    log_target = mixed_log_target(logarithms([0.2, 0.4]), 0.25)
    assert log_target.exp().tolist() == pytest.approx([0.8, 0.85], abs=1e-12)
    assert log_target.tolist() == pytest.approx([-0.2231435513, -0.1625189295], abs=1e-10)


def test_the_mixup_term_of_two_mixtures() -> None:
    log_target = mixed_log_target(logarithms([0.2, 0.4]), 0.25)
    regulariser = mixup_loss(logarithms([0.7, 0.9]), log_target)
    assert regulariser.item() == pytest.approx(0.0105488585, abs=1e-10)
    variational = variational_loss(logarithms(PHI_P), logarithms(PHI_U))
    for weight, total in ((0.3, -0.3818894533), (0.03, -0.3847376451)):
        assert (variational + weight * regulariser).item() == pytest.approx(total, abs=1e-10)


@given(LOGARITHMS, st.floats(0.001, 0.999))
def test_the_target_is_the_logarithm_of_the_weighted_mean(
    unlabelled: list[float], share: float
) -> None:
    fast = mixed_log_target(torch.tensor(unlabelled, dtype=torch.float64), share)
    slow = [math.log(share * math.exp(value) + (1 - share)) for value in unlabelled]
    assert fast.tolist() == pytest.approx(slow, abs=1e-9)


@pytest.mark.parametrize(("share", "expected"), [(0.0, [0.0, 0.0]), (1.0, [-3.0, -0.5])])
def test_shares_that_rounded_to_an_end_give_finite_targets_and_gradients(
    share: float, expected: list[float]
) -> None:
    unlabelled = torch.tensor([-3.0, -0.5], requires_grad=True)
    log_target = mixed_log_target(unlabelled, share)
    (gradient,) = torch.autograd.grad(log_target.sum(), unlabelled)
    assert log_target.tolist() == pytest.approx(expected)
    assert gradient.tolist() == pytest.approx([share, share])


def test_both_sides_of_the_mixup_term_learn() -> None:
    unlabelled = logarithms([0.2, 0.4]).requires_grad_()
    mixed = logarithms([0.7, 0.9]).requires_grad_()
    loss = mixup_loss(mixed, mixed_log_target(unlabelled, 0.25))
    through_target, through_mixture = torch.autograd.grad(loss, (unlabelled, mixed))
    # d log T / d log Phi_U = a Phi_U / T
    pulled = [
        -float(m) * 0.25 * u / t
        for m, u, t in zip(through_mixture, (0.2, 0.4), (0.8, 0.85), strict=True)
    ]
    assert through_target.tolist() == pytest.approx(pulled)


def test_no_mixtures_cost_nothing() -> None:
    none = torch.empty(0)
    assert mixup_loss(none, none).item() == 0
