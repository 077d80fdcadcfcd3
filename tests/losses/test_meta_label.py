"""Meta labels: the closed form against a double backward pass, and the hand numbers."""

import math
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.losses.meta_label import LinearView, balanced_soft_cross_entropy, meta_gradient

LN3 = math.log(3)


def soft(positive: list[float]) -> Tensor:
    target = torch.zeros(len(positive), 2, dtype=torch.float64)
    target[:, POSITIVE] = torch.tensor(positive, dtype=torch.float64)
    target[:, NEGATIVE] = 1 - target[:, POSITIVE]
    return target


def values(numbers: list[float]) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def slow_loss(margin: Tensor, target: Tensor, mass: Tensor | None = None) -> Tensor:
    mass = target.sum(dim=0) if mass is None else mass
    total = torch.zeros((), dtype=margin.dtype)
    for label in (NEGATIVE, POSITIVE):
        probability = torch.sigmoid(margin if label == POSITIVE else -margin)
        cost = -probability.clamp(1e-4, 1 - 1e-4).log()
        total = total + (target[:, label] * cost).sum() / mass[label]
    return total


@dataclass(frozen=True)
class Problem:
    """Noisy and clean samples under one linear head."""

    h: Tensor
    clean: Tensor
    w: Tensor
    bias: float
    target: Tensor
    truth: Tensor

    @property
    def noisy_view(self) -> LinearView:
        return LinearView(self.h, self.h @ self.w + self.bias, self.target)

    @property
    def clean_view(self) -> LinearView:
        return LinearView(self.clean, self.clean @ self.w + self.bias, self.truth)


def by_hand(truth: list[float]) -> Problem:
    return Problem(
        h=torch.tensor([[1, 0], [0.8, 0.2], [-1, 0.5]], dtype=torch.float64),
        clean=torch.tensor([[1, 0.1], [-1, 0.2]], dtype=torch.float64),
        w=values([0.5, -0.25]),
        bias=0.1,
        target=soft([1, 0, 0]),
        truth=soft(truth),
    )


def at_random(seed: int) -> Problem:
    draw = torch.Generator().manual_seed(seed)
    h, clean = (2 * torch.randn(n, 4, generator=draw, dtype=torch.float64) for n in (9, 6))
    w = 2 * torch.randn(4, generator=draw, dtype=torch.float64)  # some rows are clipped
    target = soft(torch.rand(9, generator=draw).tolist())
    return Problem(h, clean, w, 0.2, target, soft([1, 0, 1, 0, 1, 0]))


def slow_meta_gradient(problem: Problem, step: float, mass: Tensor | None = None) -> Tensor:
    """Take the virtual step for real, with a graph, and differentiate through it."""
    w = problem.w.clone().requires_grad_()
    shift = torch.zeros_like(problem.target, requires_grad=True)
    noisy = slow_loss(problem.h @ w + problem.bias, problem.target + shift, mass)
    (u,) = torch.autograd.grad(noisy, w, create_graph=True)
    after = problem.clean @ (w - step * u) + problem.bias
    (gradient,) = torch.autograd.grad(slow_loss(after, problem.truth), shift)
    return gradient


def test_hard_labels_give_the_number_computed_by_hand() -> None:
    loss = balanced_soft_cross_entropy(values([LN3, 0, -LN3]), soft([1, 0, 0]))
    assert float(loss) == pytest.approx(0.77809670, abs=1e-8)
    assert float(loss) == pytest.approx(-math.log(0.75) + (-math.log(0.5) - math.log(0.75)) / 2)


def test_a_soft_label_gives_the_number_computed_by_hand() -> None:
    loss = balanced_soft_cross_entropy(values([LN3, 0, -LN3]), soft([1, 0.25, 0]))
    assert float(loss) == pytest.approx(0.83022793, abs=1e-8)


def test_a_confident_mistake_costs_much_and_has_no_gradient() -> None:
    margin = values([10, -10]).requires_grad_()
    loss = balanced_soft_cross_entropy(margin, soft([0, 1]))
    (gradient,) = torch.autograd.grad(loss, margin)
    assert float(loss.detach()) == pytest.approx(18.42068074, abs=1e-8)
    assert gradient.tolist() == [0, 0]


@pytest.mark.parametrize(("beyond", "learns"), [(-1e-6, True), (1e-6, False)])
def test_the_gradient_ends_at_a_logit_of_9_21(beyond: float, learns: bool) -> None:
    margin = values([9.21024037 + beyond, 0]).requires_grad_()
    loss = balanced_soft_cross_entropy(margin, soft([0, 1]))
    (gradient,) = torch.autograd.grad(loss, margin)
    assert bool(gradient[0] != 0) == learns


STEP = 1e-3


def test_the_meta_gradient_has_the_numbers_computed_by_hand() -> None:
    problem = by_hand([1, 0])
    noisy = problem.noisy_view
    assert float(balanced_soft_cross_entropy(noisy.margin, noisy.target)) == pytest.approx(
        1.14146830, abs=1e-8
    )
    gradient = meta_gradient(noisy, problem.clean_view, step=STEP)
    assert gradient[:, POSITIVE].tolist() == pytest.approx(
        [0, 3.5370728e-5, 7.4945835e-4], abs=1e-10
    )
    assert gradient[:, NEGATIVE].tolist() == pytest.approx(
        [2.2323359e-4, 1.6180325e-4, -1.6180325e-4], abs=1e-10
    )
    assert gradient.argmin(dim=1).tolist() == [POSITIVE, POSITIVE, NEGATIVE]


def test_the_virtual_step_leads_to_the_clean_loss_computed_by_hand() -> None:
    problem = by_hand([1, 0])
    w = problem.w.clone().requires_grad_()
    noisy = balanced_soft_cross_entropy(problem.h @ w + problem.bias, problem.target)
    (u,) = torch.autograd.grad(noisy, w)
    assert u.tolist() == pytest.approx([-0.29592991, 0.15398488], abs=1e-8)
    after = problem.clean @ (problem.w - STEP * u) + problem.bias
    assert float(balanced_soft_cross_entropy(after, problem.truth)) == pytest.approx(
        0.93943895, abs=1e-8
    )


@pytest.mark.parametrize("step", [1e-3, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_the_closed_form_equals_the_double_backward_pass(seed: int, step: float) -> None:
    problem = at_random(seed)
    fast = meta_gradient(problem.noisy_view, problem.clean_view, step=step)
    assert torch.allclose(fast, slow_meta_gradient(problem, step), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("seed", range(4))
def test_scaling_the_labels_of_a_class_is_a_direction_without_gradient(seed: int) -> None:
    problem = at_random(seed)
    gradient = meta_gradient(problem.noisy_view, problem.clean_view, step=STEP)
    along = (problem.target * gradient).sum(dim=0)
    assert torch.allclose(along, torch.zeros(2, dtype=torch.float64), atol=1e-15)


def test_leaving_out_the_derivative_of_the_mass_turns_some_votes() -> None:
    turned = 0
    for seed in range(20):
        problem = at_random(seed)
        full = meta_gradient(problem.noisy_view, problem.clean_view, step=STEP)
        fixed = slow_meta_gradient(problem, STEP, mass=problem.target.sum(dim=0))
        turned += int((full.argmin(dim=1) != fixed.argmin(dim=1)).sum())
    assert turned > 0


@pytest.mark.parametrize("truth", [[1.0, 1.0], [0.0, 0.0]], ids=["positives", "negatives"])
def test_a_clean_batch_of_one_class_gives_numbers(truth: list[float]) -> None:
    problem = by_hand(truth)
    clean = problem.clean_view
    assert torch.isfinite(balanced_soft_cross_entropy(clean.margin, clean.target))
    assert torch.isfinite(meta_gradient(problem.noisy_view, clean, step=STEP)).all()


def test_unguarded_a_clean_batch_of_one_class_votes_for_the_first_column_everywhere() -> None:
    broken = slow_meta_gradient(by_hand([1, 1]), STEP)
    assert broken.isnan().all()
    assert (-broken).argmax(dim=1).tolist() == [NEGATIVE] * 3


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_a_training_batch_of_one_class_gives_numbers(label: float) -> None:
    problem = replace(by_hand([1, 0]), target=soft([label] * 3))
    noisy = problem.noisy_view
    assert torch.isfinite(balanced_soft_cross_entropy(noisy.margin, noisy.target))
    assert torch.isfinite(meta_gradient(noisy, problem.clean_view, step=STEP)).all()


def test_the_length_of_the_step_scales_the_gradient_and_leaves_the_votes() -> None:
    problem = by_hand([1, 0])
    short, long = (
        meta_gradient(problem.noisy_view, problem.clean_view, step=step) for step in (1e-4, 1e-2)
    )
    assert torch.equal(short.argmin(dim=1), long.argmin(dim=1))
    assert torch.allclose(100 * short, long, rtol=0.05)


def test_repeating_the_samples_of_one_class_leaves_the_loss_unchanged() -> None:
    margin, target = values([LN3, 0, -LN3]), soft([1, 0, 0])
    twice = torch.tensor([0, 1, 2, 1, 2])
    repeated = balanced_soft_cross_entropy(margin[twice], target[twice])
    assert float(repeated) == pytest.approx(float(balanced_soft_cross_entropy(margin, target)))
