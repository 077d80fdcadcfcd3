import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.losses.classification import (
    balanced_cross_entropy,
    class_weighted_cross_entropy,
    margin,
    mean_entropy,
    mean_or_zero,
    p_positive,
    plain_cross_entropy,
    positive_unlabelled_cross_entropy,
    soft_cross_entropy,
)


def numbers(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def flags(*values: int) -> Tensor:
    return torch.tensor(values, dtype=torch.bool)


def random_rows(count: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Logits, soft targets and labels of `count` rows, both groups present."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(count, 2, generator=generator, dtype=torch.float64)
    target = torch.rand(count, 2, generator=generator, dtype=torch.float64)
    return logits, target / target.sum(dim=1, keepdim=True), torch.arange(count) % 3 == 0


def one_hot(column: int) -> Tensor:
    target = torch.zeros(1, 2, dtype=torch.float64)
    target[0, column] = 1
    return target


# Eq. 3, row by row


def test_soft_cross_entropy_is_equation_3_written_as_loops() -> None:
    logits, target, _ = random_rows(7)
    for row, cost in enumerate(soft_cross_entropy(logits, target).tolist()):
        scores, wanted = logits[row].tolist(), target[row].tolist()
        total = sum(math.exp(score) for score in scores)
        slow = -sum(
            share * math.log(math.exp(score) / total)
            for share, score in zip(wanted, scores, strict=True)
        )
        assert cost == pytest.approx(slow, abs=1e-12)


@pytest.mark.parametrize("column", [POSITIVE, NEGATIVE])
def test_a_hard_target_costs_what_torch_says(column: int) -> None:
    logits, _, _ = random_rows(1)
    expected = torch.nn.functional.cross_entropy(logits, torch.tensor([column]))
    torch.testing.assert_close(soft_cross_entropy(logits, one_hot(column))[0], expected)


def test_gradient_of_soft_cross_entropy_is_probability_minus_target() -> None:
    logits, target, _ = random_rows(5)
    logits.requires_grad_()
    (gradient,) = torch.autograd.grad(soft_cross_entropy(logits, target).sum(), logits)
    torch.testing.assert_close(gradient, logits.detach().softmax(dim=1) - target)


def test_a_confident_mistake_costs_its_margin_and_stays_finite() -> None:
    logits = torch.tensor([[800.0, -800.0]], dtype=torch.float64, requires_grad=True)
    cost = soft_cross_entropy(logits, one_hot(1))
    (gradient,) = torch.autograd.grad(cost.sum(), logits)
    assert cost.item() == 1600
    assert gradient.tolist() == [[1, -1]]


# mean_or_zero


def test_the_mean_covers_masked_rows_only() -> None:
    assert mean_or_zero(numbers(1, 10, 3), flags(1, 0, 1)).item() == 2


def test_a_mean_over_nothing_is_a_zero_that_can_be_differentiated() -> None:
    values = numbers(1, 2).requires_grad_()
    mean = mean_or_zero(values, flags(0, 0))
    (gradient,) = torch.autograd.grad(mean, values)
    assert mean.item() == 0
    assert gradient.tolist() == [0, 0]


def test_a_broken_row_outside_the_mask_does_not_spoil_the_mean() -> None:
    assert mean_or_zero(numbers(math.inf, 4), flags(0, 1)).item() == 4


# first two terms of Eq. 14


def test_positives_and_unlabelled_are_averaged_apart() -> None:
    logits, target, labelled = random_rows(10)
    cost = soft_cross_entropy(logits, target).tolist()
    of_positives = [value for value, is_labelled in zip(cost, labelled, strict=True) if is_labelled]
    of_unlabelled = [
        value for value, is_labelled in zip(cost, labelled, strict=True) if not is_labelled
    ]
    slow = sum(of_positives) / len(of_positives) + sum(of_unlabelled) / len(of_unlabelled)
    fast = positive_unlabelled_cross_entropy(logits, target, labelled)
    assert fast.item() == pytest.approx(slow, abs=1e-12)


@pytest.mark.parametrize("all_labelled", [True, False])
def test_a_batch_of_one_group_costs_that_group_alone(all_labelled: bool) -> None:
    logits, target, _ = random_rows(6)
    loss = positive_unlabelled_cross_entropy(logits, target, torch.full((6,), all_labelled))
    torch.testing.assert_close(loss, soft_cross_entropy(logits, target).mean())


def test_labelled_rows_weigh_the_same_however_many_unlabelled_there_are() -> None:
    logits, target, labelled = random_rows(6)
    unlabelled = torch.arange(6)[~labelled]
    rows = torch.cat([torch.arange(6), unlabelled, unlabelled])
    torch.testing.assert_close(
        positive_unlabelled_cross_entropy(logits[rows], target[rows], labelled[rows]),
        positive_unlabelled_cross_entropy(logits, target, labelled),
    )


# margin


def test_classes_weigh_alike_however_the_targets_divide_them() -> None:
    logits, target, _ = random_rows(9)
    expected = 0.0
    for column in (NEGATIVE, POSITIVE):
        costs = [-float(row.log_softmax(0)[column]) for row in logits]
        weights = [float(row[column]) for row in target]
        expected += sum(w * c for w, c in zip(weights, costs, strict=True)) / sum(weights)
    assert float(class_weighted_cross_entropy(logits, target)) == pytest.approx(expected, abs=1e-12)


def test_until_targets_move_both_ways_of_weighing_are_one() -> None:
    logits, _, labelled = random_rows(9)
    target = torch.nn.functional.one_hot(labelled.long(), 2).double()
    assert torch.allclose(
        class_weighted_cross_entropy(logits, target),
        positive_unlabelled_cross_entropy(logits, target, labelled),
        atol=1e-14,
    )


def test_a_class_without_targets_costs_nothing_and_spoils_no_gradient() -> None:
    logits = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    target = one_hot(NEGATIVE).expand(4, 2)
    loss = class_weighted_cross_entropy(logits, target)
    loss.backward()  # type: ignore[no-untyped-call]
    expected = -logits.detach().log_softmax(1)[:, NEGATIVE].mean()
    assert float(loss.detach()) == pytest.approx(float(expected))
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


def test_a_large_positive_logit_gives_a_large_margin() -> None:
    logits = torch.zeros(1, 2, dtype=torch.float64)
    logits[0, POSITIVE], logits[0, NEGATIVE] = 2.0, -0.5
    assert margin(logits).tolist() == [2.5]


def test_the_margin_is_the_log_odds_of_positive() -> None:
    logits, _, _ = random_rows(9)
    torch.testing.assert_close(margin(logits).sigmoid(), p_positive(logits))


# positive against the rest


def test_plain_and_balanced_agree_when_the_classes_are_equally_many() -> None:
    margins, positive = numbers(2, -1, 0.5, -1.5), flags(1, 1, 0, 0)
    assert plain_cross_entropy(margins, positive).item() == pytest.approx(0.6539199902, abs=1e-10)
    assert balanced_cross_entropy(margins, positive).item() == pytest.approx(
        0.6539199902, abs=1e-10
    )


def test_plain_and_balanced_differ_when_they_are_not() -> None:
    margins, positive = numbers(2, -1, 0.5, -1.5, 0), flags(1, 1, 0, 0, 0)
    assert plain_cross_entropy(margins, positive).item() == pytest.approx(0.6617654283, abs=1e-10)
    assert balanced_cross_entropy(margins, positive).item() == pytest.approx(
        0.6714869984, abs=1e-10
    )


@pytest.mark.parametrize(("positives", "negatives"), [(1, 1), (1, 9), (7, 2)])
def test_ignorance_costs_log_two(positives: int, negatives: int) -> None:
    positive = torch.arange(positives + negatives) < positives
    margins = torch.zeros(positives + negatives, dtype=torch.float64)
    assert plain_cross_entropy(margins, positive).item() == pytest.approx(0.6931471806, abs=1e-10)
    assert balanced_cross_entropy(margins, positive).item() == pytest.approx(
        0.6931471806, abs=1e-10
    )


def test_repeating_every_unlabelled_row_changes_the_plain_loss_only() -> None:
    once, twice = numbers(2, -1, 0.5, -1.5, 0), numbers(2, -1, 0.5, -1.5, 0, 0.5, -1.5, 0)
    labels_once, labels_twice = flags(1, 1, 0, 0, 0), flags(1, 1, 0, 0, 0, 0, 0, 0)
    torch.testing.assert_close(
        balanced_cross_entropy(once, labels_once), balanced_cross_entropy(twice, labels_twice)
    )
    change = plain_cross_entropy(once, labels_once) - plain_cross_entropy(twice, labels_twice)
    assert abs(change.item()) > 1e-3


@pytest.mark.parametrize("positive", [True, False])
def test_a_batch_of_one_class_costs_half_of_its_mean(positive: bool) -> None:
    margins, labels = numbers(1, -2, 3), torch.full((3,), positive)
    torch.testing.assert_close(
        balanced_cross_entropy(margins, labels), plain_cross_entropy(margins, labels) / 2
    )


@given(st.lists(st.tuples(st.floats(-30, 30), st.booleans()), min_size=1, max_size=12))
def test_plain_cross_entropy_equals_the_two_logit_form(rows: list[tuple[float, bool]]) -> None:
    margins = numbers(*(value for value, _ in rows))
    positive = torch.tensor([label for _, label in rows])
    logits = torch.zeros(len(rows), 2, dtype=torch.float64)
    logits[:, POSITIVE] = margins
    target = torch.zeros_like(logits)
    target[:, POSITIVE], target[:, NEGATIVE] = positive.double(), (~positive).double()
    torch.testing.assert_close(
        plain_cross_entropy(margins, positive), soft_cross_entropy(logits, target).mean()
    )


@pytest.mark.parametrize("value", [21.0, 30.0, 36.0])
def test_large_margins_keep_their_last_digits(value: float) -> None:
    loss = plain_cross_entropy(numbers(-value), flags(1)).item()
    assert loss - value == pytest.approx(math.log1p(math.exp(-value)), abs=1e-14)
    assert loss >= value
    assert plain_cross_entropy(numbers(value), flags(1)).item() == pytest.approx(
        math.log1p(math.exp(-value)), rel=1e-12
    )


def test_probability_of_positive_is_the_share_of_its_exponential() -> None:
    logits = torch.tensor([[0.3, 1.2], [-4.0, -4.0], [2.0, -1.0]], dtype=torch.float64)
    expected = [
        math.exp(positive) / (math.exp(positive) + math.exp(negative))
        for negative, positive in logits.tolist()
    ]
    assert p_positive(logits).tolist() == pytest.approx(expected, rel=1e-12)


def test_a_larger_logit_of_positive_means_a_larger_probability() -> None:
    assert p_positive(torch.tensor([[0.0, 5.0]])) > 0.99
    assert p_positive(torch.tensor([[5.0, 0.0]])) < 0.01


LOGIT = st.floats(-1e4, 1e4)


def test_entropy_is_the_textbook_formula_written_as_loops() -> None:
    generator = torch.Generator().manual_seed(1)
    logits = 2 * torch.randn(6, 2, generator=generator, dtype=torch.float64)
    slow = 0.0
    for row in logits.tolist():
        total = sum(math.exp(value) for value in row)
        shares = [math.exp(value) / total for value in row]
        slow -= sum(share * math.log(share) for share in shares) / len(logits)
    assert mean_entropy(logits).item() == pytest.approx(slow, abs=1e-12)


def test_probabilities_of_three_quarters_and_one_quarter_have_entropy_0_5623() -> None:
    logits = torch.tensor([[math.log(3), 0.0]], dtype=torch.float64)
    assert mean_entropy(logits).item() == pytest.approx(0.5623351446, abs=1e-10)


@given(st.lists(st.tuples(LOGIT, LOGIT), min_size=1, max_size=8))
def test_entropy_lies_between_zero_and_log_two(rows: list[tuple[float, float]]) -> None:
    entropy = mean_entropy(torch.tensor(rows, dtype=torch.float64)).item()
    assert 0 <= entropy <= math.log(2) + 1e-12


@given(LOGIT)
def test_a_common_shift_of_the_logits_changes_nothing(shift: float) -> None:
    logits = torch.tensor([[0.3, -1.2], [2.0, 0.1]], dtype=torch.float64)
    torch.testing.assert_close(
        mean_entropy(logits + shift), mean_entropy(logits), atol=1e-10, rtol=0
    )


def test_indecision_has_the_largest_entropy() -> None:
    logits = torch.full((3, 2), 0.7, dtype=torch.float64)
    assert mean_entropy(logits).item() == pytest.approx(math.log(2), abs=1e-15)


@pytest.mark.parametrize("size", [50.0, 1e3, 1e30])
def test_certainty_has_no_entropy_and_a_finite_gradient(size: float) -> None:
    logits = torch.tensor([[size, -size], [-size, size]], requires_grad=True)
    entropy = mean_entropy(logits)
    (gradient,) = torch.autograd.grad(entropy, logits)
    assert entropy.item() == pytest.approx(0, abs=1e-12)
    assert gradient.abs().max() < 1e-12


def test_descending_the_entropy_raises_the_confidence() -> None:
    logits = torch.tensor([[0.4, 0.0], [0.0, 0.4]], dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(mean_entropy(logits), logits)
    surer = (logits - gradient).detach().softmax(dim=1).max(dim=1).values
    assert (surer > logits.detach().softmax(dim=1).max(dim=1).values).all()


def test_the_gradient_is_the_derivative() -> None:
    logits = torch.tensor([[0.4, -1.0], [3.0, 0.4]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(mean_entropy, (logits,))
