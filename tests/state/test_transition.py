"""Transition matrices: their initial values, their form after learning, their steps."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.state.transition import KnownTransition, LearnedTransition, row_stochastic


@pytest.mark.parametrize(
    ("scale", "diagonal"), [(0.5, 0.72593138), (0.25, 0.69549566), (2.5, 0.92949054)]
)
def test_the_start_gives_the_numbers_computed_by_hand(scale: float, diagonal: float) -> None:
    matrix = LearnedTransition(scale).double().matrix
    assert matrix.diagonal().tolist() == pytest.approx([diagonal, diagonal], abs=1e-7)
    assert float(matrix[NEGATIVE, POSITIVE]) == pytest.approx(1 - diagonal, abs=1e-7)


def test_the_volume_of_the_start_is_the_number_computed_by_hand() -> None:
    volume = torch.linalg.slogdet(LearnedTransition(0.5).double().matrix).logabsdet
    assert float(volume) == pytest.approx(-0.79437677, abs=1e-7)


@given(st.lists(st.floats(-30, 30), min_size=4, max_size=4))
def test_rows_sum_to_one_and_the_diagonal_holds_at_least_half(weights: list[float]) -> None:
    matrix = row_stochastic(torch.tensor(weights, dtype=torch.float64).reshape(2, 2))
    assert matrix.sum(dim=1).tolist() == pytest.approx([1, 1])
    assert (matrix.diagonal() >= 0.5).all()


def test_a_step_is_plain_gradient_descent_on_the_weights() -> None:
    def objective(matrix: Tensor) -> Tensor:
        return (matrix * torch.tensor([[1.0, 2.0], [0.5, 3.0]], dtype=torch.float64)).sum()

    state = LearnedTransition(0.5).double()
    weights = state.weights.clone().requires_grad_()
    objective(row_stochastic(weights)).backward()  # type: ignore[no-untyped-call]
    assert weights.grad is not None
    expected = weights.detach() - 0.1 * weights.grad
    state.descend(objective, rate=0.1)
    assert torch.allclose(state.weights, expected)
    assert not state.weights.requires_grad


def test_a_step_is_taken_where_gradients_are_switched_off_too() -> None:
    state = LearnedTransition(0.5)
    before = state.matrix
    with torch.no_grad():
        state.descend(lambda matrix: matrix[0, 0], rate=1.0)
    assert state.matrix[0, 0] < before[0, 0]


@pytest.mark.parametrize(
    ("labelled", "unlabelled", "prior", "shown"),
    [
        (1000, 40_000, 0.4, 0.05882),
        (1000, 40_000, 0.5, 0.04762),
        (300, 4000, 0.5, 0.13043),
        (500, 20_000, 0.4, 0.05882),
    ],
    ids=["CIFAR-10", "CIFAR-100", "ABCD", "xBD"],
)
def test_a_known_prior_gives_the_share_of_positives_that_are_labelled(
    labelled: int, unlabelled: int, prior: float, shown: float
) -> None:
    matrix = KnownTransition(labelled, unlabelled, prior).matrix
    assert float(matrix[POSITIVE, POSITIVE]) == pytest.approx(shown, abs=5e-6)
    assert float(matrix[POSITIVE, NEGATIVE]) == pytest.approx(1 - shown, abs=5e-6)
    assert float(matrix[NEGATIVE, POSITIVE]) == 0
    assert matrix.sum(dim=1).tolist() == pytest.approx([1, 1])


def test_both_matrices_travel_with_the_checkpoint() -> None:
    assert list(LearnedTransition(0.5).state_dict()) == ["weights"]
    assert list(KnownTransition(1, 1, 0.5).state_dict()) == ["matrix"]
