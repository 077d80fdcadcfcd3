import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from onesided.losses.entropy import mean_entropy

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
def test_certainty_has_none_and_a_finite_gradient(size: float) -> None:
    logits = torch.tensor([[size, -size], [-size, size]], requires_grad=True)
    entropy = mean_entropy(logits)
    (slope,) = torch.autograd.grad(entropy, logits)
    assert entropy.item() == pytest.approx(0, abs=1e-12)
    assert slope.abs().max() < 1e-12


def test_descending_the_entropy_makes_the_classifier_surer_of_what_it_thinks() -> None:
    logits = torch.tensor([[0.4, 0.0], [0.0, 0.4]], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(mean_entropy(logits), logits)
    surer = (logits - slope).detach().softmax(dim=1).max(dim=1).values
    assert (surer > logits.detach().softmax(dim=1).max(dim=1).values).all()


def test_the_gradient_is_the_derivative() -> None:
    logits = torch.tensor([[0.4, -1.0], [3.0, 0.4]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(mean_entropy, (logits,))
