"""Losses through a transition matrix: numbers by hand, and why balance prevents collapse."""

import math

import pytest
import torch
from torch import Tensor

from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.losses.noisy_labels import (
    balanced_transition_loss,
    class_balance_loss,
    mean_transition_loss,
    transition_cross_entropy,
)
from onesided.state.transition import row_stochastic

T = row_stochastic(torch.full((2, 2), -0.5, dtype=torch.float64))
THREE = [0.8, 0.8, 0.3]
ONE_LABELLED = torch.tensor([True, False, False])


def logits_of(positive: list[float]) -> Tensor:
    logits = torch.zeros(len(positive), 2, dtype=torch.float64)
    logits[:, POSITIVE] = torch.tensor(positive, dtype=torch.float64).log()
    logits[:, NEGATIVE] = (1 - torch.tensor(positive, dtype=torch.float64)).log()
    return logits


def test_one_sample_gives_the_numbers_computed_by_hand() -> None:
    p = torch.zeros(2, dtype=torch.float64)
    p[POSITIVE], p[NEGATIVE] = 0.8, 0.2
    seen = p @ T
    assert float(seen[POSITIVE]) == pytest.approx(0.63555883, abs=1e-8)
    assert float(seen[NEGATIVE]) == pytest.approx(0.36444117, abs=1e-8)
    cost = transition_cross_entropy(logits_of([0.8, 0.8]), T, torch.tensor([False, True]))
    assert cost.tolist() == pytest.approx([1.00939014, 0.45325062], abs=1e-8)


def test_three_samples_give_the_numbers_computed_by_hand() -> None:
    logits = logits_of(THREE)
    cost = transition_cross_entropy(logits, T, ONE_LABELLED)
    assert cost.tolist() == pytest.approx([0.45325062, 1.00939014, 0.52700150], abs=1e-8)
    plain = mean_transition_loss(logits, T, ONE_LABELLED)
    assert float(plain) == pytest.approx(0.66321408, abs=1e-8)
    balanced = balanced_transition_loss(logits, T, ONE_LABELLED)
    assert float(balanced) == pytest.approx(0.61072322, abs=1e-8)


def test_a_batch_without_positives_gives_half_the_mean_over_u() -> None:
    loss = balanced_transition_loss(logits_of(THREE[1:]), T, ONE_LABELLED[1:])
    assert float(loss) == pytest.approx(0.38409791, abs=1e-8)


def test_repeating_every_unlabelled_sample_leaves_the_balanced_loss_unchanged() -> None:
    once = balanced_transition_loss(logits_of(THREE), T, ONE_LABELLED)
    twice = balanced_transition_loss(
        logits_of([*THREE, *THREE[1:]]), T, torch.tensor([True, False, False, False, False])
    )
    plain = mean_transition_loss(
        logits_of([*THREE, *THREE[1:]]), T, torch.tensor([True, False, False, False, False])
    )
    assert float(twice) == pytest.approx(float(once))
    assert float(plain) != pytest.approx(
        float(mean_transition_loss(logits_of(THREE), T, ONE_LABELLED))
    )


def test_an_identity_matrix_leaves_ordinary_cross_entropy() -> None:
    cost = transition_cross_entropy(
        logits_of([0.7, 0.7]), torch.eye(2, dtype=torch.float64), torch.tensor([True, False])
    )
    assert cost.tolist() == pytest.approx([-math.log(0.7), -math.log(0.3)])


@pytest.mark.parametrize("margin", [-200.0, -50.0, 50.0, 200.0])
def test_a_sure_classifier_and_a_zero_in_the_matrix_give_numbers(margin: float) -> None:
    matrix = torch.zeros(2, 2)
    matrix[POSITIVE, POSITIVE], matrix[POSITIVE, NEGATIVE] = 0.05, 0.95
    matrix[NEGATIVE, NEGATIVE] = 1.0
    logits = torch.zeros(2, 2)
    logits[:, POSITIVE] = margin
    logits.requires_grad_()
    cost = transition_cross_entropy(logits, matrix, torch.tensor([True, False]))
    (gradient,) = torch.autograd.grad(cost.sum(), logits)
    assert torch.isfinite(cost).all()
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize(("prior", "rate"), [(0.4, 0.71428571), (0.5, 0.66666667)])
def test_balancing_makes_a_positive_show_its_label_more_often_than_not(
    prior: float, rate: float
) -> None:
    # Half of the weight is P, half is U of which `prior` is positive.
    shown, hidden = 0.5, 0.5 * prior
    assert shown / (shown + hidden) == pytest.approx(rate, abs=1e-8)
    assert all(1 / (1 + other / 100) > 0.5 for other in range(100))


def best_constant(balanced: bool) -> float:
    """Return the probability of positive that costs least on 50 P and 1000 U, alike for all."""
    labelled = torch.arange(1050) < 50
    formula = balanced_transition_loss if balanced else mean_transition_loss
    grid = [step / 100 for step in range(1, 100)]
    return min(grid, key=lambda p: float(formula(logits_of([p] * 1050), T, labelled)))


def test_the_plain_mean_prefers_all_negative_and_the_balanced_one_does_not() -> None:
    assert best_constant(balanced=False) == 0.01
    assert best_constant(balanced=True) == pytest.approx(0.5)


@pytest.mark.parametrize(("share", "value"), [(0.5, 0.69314718), (0.1, 1.20397280)])
def test_balance_gives_the_numbers_computed_by_hand(share: float, value: float) -> None:
    assert float(class_balance_loss(logits_of([share, share]))) == pytest.approx(value, abs=1e-8)


def test_balance_depends_on_the_mean_only_and_is_finite_without_one_class() -> None:
    assert float(class_balance_loss(logits_of([0.2, 0.8]))) == pytest.approx(math.log(2))
    gone = torch.zeros(3, 2)
    gone[:, NEGATIVE] = 200.0
    assert float(class_balance_loss(gone)) == pytest.approx(-math.log(1e-6) / 2, rel=1e-4)
