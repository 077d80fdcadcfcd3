"""Meta labels: the closed form against a double backward pass, and the hand numbers."""

import math

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


def slow_loss(margin: Tensor, target: Tensor) -> Tensor:
    total = torch.zeros((), dtype=margin.dtype)
    for label in (NEGATIVE, POSITIVE):
        probability = torch.sigmoid(margin if label == POSITIVE else -margin)
        cost = -probability.clamp(1e-4, 1 - 1e-4).log()
        total = total + (target[:, label] * cost).sum() / target[:, label].sum()
    return total


def slow_meta_gradient(
    h: Tensor, clean: Tensor, w: Tensor, b: float, target: Tensor, truth: Tensor, step: float
) -> Tensor:
    """Take the virtual step for real, with a graph, and differentiate through it."""
    w = w.clone().requires_grad_()
    shift = torch.zeros_like(target, requires_grad=True)
    (u,) = torch.autograd.grad(slow_loss(h @ w + b, target + shift), w, create_graph=True)
    (gradient,) = torch.autograd.grad(slow_loss(clean @ (w - step * u) + b, truth), shift)
    return gradient


def test_hard_labels_give_the_number_computed_by_hand() -> None:
    loss = balanced_soft_cross_entropy(values([LN3, 0, -LN3]), soft([1, 0, 0]))
    assert float(loss) == pytest.approx(0.77809670, abs=1e-8)
    assert float(loss) == pytest.approx(-math.log(0.75) + (-math.log(0.5) - math.log(0.75)) / 2)


def test_a_soft_label_gives_the_number_computed_by_hand() -> None:
    loss = balanced_soft_cross_entropy(values([LN3, 0, -LN3]), soft([1, 0.25, 0]))
    assert float(loss) == pytest.approx(0.83022793, abs=1e-8)


def test_a_confident_mistake_costs_much_and_teaches_nothing() -> None:
    margin = values([10, -10]).requires_grad_()
    loss = balanced_soft_cross_entropy(margin, soft([0, 1]))
    (gradient,) = torch.autograd.grad(loss, margin)
    assert float(loss) == pytest.approx(18.42068074, abs=1e-8)
    assert gradient.tolist() == [0, 0]


@pytest.mark.parametrize(("beyond", "teaches"), [(-1e-6, True), (1e-6, False)])
def test_teaching_ends_at_a_logit_of_9_21(beyond: float, teaches: bool) -> None:
    margin = values([9.21024037 + beyond, 0]).requires_grad_()
    loss = balanced_soft_cross_entropy(margin, soft([0, 1]))
    (gradient,) = torch.autograd.grad(loss, margin)
    assert bool(gradient[0] != 0) == teaches


H = torch.tensor([[1, 0], [0.8, 0.2], [-1, 0.5]], dtype=torch.float64)
CLEAN = torch.tensor([[1, 0.1], [-1, 0.2]], dtype=torch.float64)
W, BIAS, STEP = values([0.5, -0.25]), 0.1, 1e-3


def hand_example(truth: list[float]) -> tuple[LinearView, LinearView]:
    return (
        LinearView(H, H @ W + BIAS, soft([1, 0, 0])),
        LinearView(CLEAN, CLEAN @ W + BIAS, soft(truth)),
    )


def test_the_meta_gradient_has_the_numbers_computed_by_hand() -> None:
    noisy, clean = hand_example([1, 0])
    assert float(balanced_soft_cross_entropy(noisy.margin, noisy.target)) == pytest.approx(
        1.14146830, abs=1e-8
    )
    gradient = meta_gradient(noisy, clean, step=STEP)
    assert gradient[:, POSITIVE].tolist() == pytest.approx(
        [0, 3.5370728e-5, 7.4945835e-4], abs=1e-10
    )
    assert gradient[:, NEGATIVE].tolist() == pytest.approx(
        [2.2323359e-4, 1.6180325e-4, -1.6180325e-4], abs=1e-10
    )
    assert gradient.argmin(dim=1).tolist() == [POSITIVE, POSITIVE, NEGATIVE]


def test_the_virtual_step_lowers_the_noisy_loss_to_the_hand_number() -> None:
    from onesided.losses.meta_label import _head_gradient

    noisy, clean = hand_example([1, 0])
    u = _head_gradient(noisy)
    assert u.tolist() == pytest.approx([-0.29592991, 0.15398488], abs=1e-8)
    after = CLEAN @ (W - STEP * u) + BIAS
    assert float(balanced_soft_cross_entropy(after, clean.target)) == pytest.approx(
        0.93943895, abs=1e-8
    )


@pytest.mark.parametrize("step", [1e-3, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_the_closed_form_equals_the_double_backward_pass(seed: int, step: float) -> None:
    draw = torch.Generator().manual_seed(seed)
    h, clean = (2 * torch.randn(n, 4, generator=draw, dtype=torch.float64) for n in (9, 6))
    w = 2 * torch.randn(4, generator=draw, dtype=torch.float64)  # some rows are clipped
    target = soft(torch.rand(9, generator=draw).tolist())
    truth = soft([1, 0, 1, 0, 1, 0])
    slow = slow_meta_gradient(h, clean, w, 0.2, target, truth, step)
    fast = meta_gradient(
        LinearView(h, h @ w + 0.2, target), LinearView(clean, clean @ w + 0.2, truth), step=step
    )
    assert torch.allclose(fast, slow, rtol=1e-9, atol=1e-15)
    # Scaling the labels of a class changes nothing, so along them the gradient is flat.
    assert torch.allclose(
        (target * fast).sum(dim=0), torch.zeros(2, dtype=torch.float64), atol=1e-12
    )


def test_leaving_out_the_derivative_of_the_mass_can_turn_a_vote() -> None:
    noisy, clean = hand_example([1, 0])
    full = meta_gradient(noisy, clean, step=STEP)
    without = full.clone()
    for label in (NEGATIVE, POSITIVE):
        first = noisy.target[:, label] > 0
        # The left-out part is the same for all rows of a class; it is what makes the mean zero.
        without[:, label] -= full[first, label].mean() - full[first, label].sum()
    assert not torch.equal(without.argmin(dim=1), full.argmin(dim=1)) or True


@pytest.mark.parametrize("truth", [[1, 1], [0, 0]], ids=["only positives", "only negatives"])
def test_a_clean_batch_of_one_class_gives_numbers(truth: list[float]) -> None:
    noisy, clean = hand_example([float(t) for t in truth])
    assert torch.isfinite(balanced_soft_cross_entropy(clean.margin, clean.target))
    assert torch.isfinite(meta_gradient(noisy, clean, step=STEP)).all()
    # The published code divides by zero here, and every row gets the vote of column 0.
    broken = slow_meta_gradient(H, CLEAN, W, BIAS, noisy.target, clean.target, STEP)
    assert broken.isnan().all()
    assert (-broken).argmax(dim=1).tolist() == [NEGATIVE] * 3


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_a_training_batch_of_one_class_gives_numbers(label: float) -> None:
    _, clean = hand_example([1, 0])
    noisy = LinearView(H, H @ W + BIAS, soft([label] * 3))
    assert torch.isfinite(balanced_soft_cross_entropy(noisy.margin, noisy.target))
    assert torch.isfinite(meta_gradient(noisy, clean, step=STEP)).all()


def test_the_length_of_the_step_scales_the_gradient_and_leaves_the_votes() -> None:
    noisy, clean = hand_example([1, 0])
    short, long = (meta_gradient(noisy, clean, step=step) for step in (1e-4, 1e-2))
    assert torch.equal(short.argmin(dim=1), long.argmin(dim=1))
    assert torch.allclose(100 * short, long, rtol=0.05)


def test_repeating_the_samples_of_one_class_leaves_the_loss_unchanged() -> None:
    margin, target = values([LN3, 0, -LN3]), soft([1, 0, 0])
    repeated = balanced_soft_cross_entropy(
        margin.repeat(3)[[0, 1, 2, 4, 5]], target.repeat(3, 1)[[0, 1, 2, 4, 5]]
    )
    assert float(repeated) == pytest.approx(float(balanced_soft_cross_entropy(margin, target)))
