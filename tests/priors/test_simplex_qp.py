"""The solver is checked by a general one and by its own bound."""

import numpy as np
import pytest
from jaxtyping import Float
from scipy.optimize import Bounds, LinearConstraint, minimize
from scipy.spatial.distance import cdist

from onesided.core.errors import DataError
from onesided.priors import simplex_qp
from onesided.priors.simplex_qp import (
    SimplexMinimum,
    _Iterate,
    _Newton,
    interior_point,
    minimise_on_simplex,
)

Matrix = Float[np.ndarray, "n n"]
Vector = Float[np.ndarray, "n"]


def objective(kernel: Matrix, linear: Vector, weights: Vector) -> float:
    return float(weights @ kernel @ weights - 2 * linear @ weights)


def gaussian(points: Float[np.ndarray, "n d"], width: float) -> Matrix:
    return np.asarray(np.exp(-cdist(points, points, "sqeuclidean") / (2 * width**2)))


def outside_the_hull(kernel: Matrix, stretch: float) -> Vector:
    """A target beyond the first half of the rows, seen from the second half."""
    half = len(kernel) // 2
    return np.asarray(
        stretch * kernel[:, :half].mean(axis=1) + (1 - stretch) * kernel[:, half:].mean(axis=1)
    )


def by_a_general_solver(kernel: Matrix, linear: Vector) -> float:
    def value(weights: Vector) -> float:
        return objective(kernel, linear, weights)

    def slope(weights: Vector) -> Vector:
        return np.asarray(2 * (kernel @ weights - linear))

    count = len(linear)
    on_simplex = LinearConstraint(np.ones(count), 1, 1)
    start, box = np.full(count, 1 / count), Bounds(0.0, 1.0)
    result = minimize(
        value, start, jac=slope, bounds=box, constraints=on_simplex, method="SLSQP", tol=1e-15
    )
    return float(result.fun)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("width", [0.3, 1.0, 3.0])
def test_minimum_is_the_one_a_general_solver_finds(seed: int, width: float) -> None:
    rng = np.random.default_rng(seed)
    kernel = gaussian(rng.normal(size=(12, 2)), width)
    linear = outside_the_hull(kernel, 1 + 3 * rng.random())
    ours = objective(kernel, linear, interior_point(kernel, linear).weights)
    reference = by_a_general_solver(kernel, linear)
    assert ours <= reference + 1e-10
    assert ours == pytest.approx(reference, abs=1e-7)


def test_two_points_are_solved_by_hand() -> None:
    # K = identity, b = (.8, .4): v1 - v2 = .4 and v1 + v2 = 1.
    found = interior_point(np.eye(2), np.array([0.8, 0.4]))
    assert found.weights == pytest.approx([0.7, 0.3], abs=1e-6)


def test_a_point_far_beyond_a_corner_is_projected_on_the_corner() -> None:
    found = minimise_on_simplex(np.eye(3), np.array([9.0, 0.0, 0.0]))
    assert found.weights == pytest.approx([1, 0, 0], abs=1e-9)
    assert found.support.tolist() == [0]


def test_one_point_has_all_the_weight() -> None:
    assert interior_point(np.ones((1, 1)), np.ones(1)).weights.tolist() == [1.0]


@pytest.mark.parametrize("stretch", [1.0, 1.05, 1.5, 4.5])
@pytest.mark.parametrize("width", [0.05, 1.0, 100.0])
def test_few_rows_lead_to_the_minimum_over_all_rows(stretch: float, width: float) -> None:
    points = np.random.default_rng(0).normal(size=(300, 2))
    kernel = gaussian(points, width)
    linear = outside_the_hull(kernel, stretch)
    everything = interior_point(kernel, linear)
    chosen = minimise_on_simplex(kernel, linear, start=np.arange(3))
    difference = objective(kernel, linear, chosen.weights) - objective(
        kernel, linear, everything.weights
    )
    assert abs(difference) <= 1e-10


def test_the_last_round_takes_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = gaussian(np.random.default_rng(0).normal(size=(300, 2)), 0.3)
    linear = outside_the_hull(kernel, 1.05)
    monkeypatch.setattr(simplex_qp, "MOST_ROUNDS", 2)
    assert minimise_on_simplex(kernel, linear, start=np.arange(3)).gap <= 1e-11


def slow_gap(kernel: Matrix, linear: Vector, weights: Vector) -> float:
    """How much f could fall along the steepest edge, if it fell in a straight line."""
    slopes = [
        2 * (kernel @ weights - linear) @ (weights - corner) for corner in np.eye(len(linear))
    ]
    return float(max(slopes))


def solutions() -> list[tuple[Matrix, Vector, SimplexMinimum]]:
    rng = np.random.default_rng(1)
    spread = rng.normal(size=(280, 3))
    duplicates = spread[rng.integers(0, 9, 280)]
    found = []
    for points in (spread, duplicates):
        for width in (0.1, 1.0, 1000.0):
            kernel = gaussian(points, width)
            linear = outside_the_hull(kernel, 2.5)
            start = np.arange(20)
            found.append((kernel, linear, minimise_on_simplex(kernel, linear, start=start)))
    return found


def test_certified_gap_is_true_and_small_even_for_singular_kernels() -> None:
    for kernel, linear, found in solutions():
        assert found.gap <= 1e-11
        assert slow_gap(kernel, linear, found.weights) <= 1.1e-11


def test_a_nearly_singular_kernel_does_not_send_the_method_in_circles() -> None:
    rng = np.random.default_rng(1715)  # circles with the textbook's full second-order term
    kernel = gaussian(rng.normal(size=(30, 2)), 3.0)
    found = interior_point(kernel, outside_the_hull(kernel, 1.1 + 2 * rng.random()))
    assert found.gap <= 1e-11


def test_weights_lie_on_the_simplex() -> None:
    for _, _, found in solutions():
        assert found.weights.min() >= 0
        assert found.weights.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("kernel", [-5 * np.eye(4), 1e12 * np.diag([1.0, -1.0, 1.0, -1.0])])
def test_a_matrix_that_is_no_kernel_is_refused(kernel: Matrix) -> None:
    with pytest.raises(DataError, match="positive semi-definite"):
        interior_point(kernel, np.arange(4) / 7)


def test_a_minimum_out_of_reach_of_rounding_is_not_claimed() -> None:
    kernel = 1e9 * gaussian(np.random.default_rng(0).normal(size=(40, 2)), 1.0)
    with pytest.raises(DataError, match="order 1"):
        interior_point(kernel, outside_the_hull(kernel, 1.2))


def test_a_step_solves_newtons_three_equations() -> None:
    random = np.random.default_rng(3)
    points, weights, slack = random.normal(size=(9, 2)), random.random(9), random.random(9)
    kernel, linear, change = gaussian(points, 1.0), random.random(9), random.normal(size=9)
    here = _Iterate(weights / weights.sum(), slack, 0.3)
    gradient = 2 * (kernel @ here.weights - linear)
    step = _Newton(kernel, here, gradient, np.empty((9, 9), order="F")).step(change)
    imbalance = gradient - here.level - here.slack
    np.testing.assert_allclose(
        2 * kernel @ step.weights - step.level - step.slack, -imbalance, atol=1e-9
    )
    np.testing.assert_allclose(here.slack * step.weights + here.weights * step.slack, change)
    assert step.weights.sum() == pytest.approx(0, abs=1e-9)


def test_many_rows_without_a_start_are_solved_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simplex_qp, "SMALL", 5)
    kernel = gaussian(np.random.default_rng(4).normal(size=(40, 2)), 0.7)
    linear = outside_the_hull(kernel, 2.0)
    found = minimise_on_simplex(kernel, linear)
    assert found.gap <= 1e-11
    np.testing.assert_allclose(found.weights, interior_point(kernel, linear).weights, atol=1e-5)
