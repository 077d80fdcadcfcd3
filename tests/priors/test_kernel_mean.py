"""The distance curve on kernels small enough to know the answer."""

from functools import cache

import numpy as np
import pytest
from jaxtyping import Float
from scipy.stats import norm

from onesided.priors.kernel_mean import (
    CELL,
    REACHABLE,
    DistanceCurve,
    gaussian_kernel,
    km1_threshold,
    km2_threshold,
    prior_from_kernel,
)
from onesided.priors.simplex_qp import interior_point

Matrix = Float[np.ndarray, "n n"]


def label_kernel(labels: str, off_diagonal: float) -> Matrix:
    """1 for equal letters, a constant for different ones."""
    letters = np.array(list(labels))
    return np.where(letters[:, None] == letters, 1.0, off_diagonal)


def quantiles(count: int) -> Float[np.ndarray, "n"]:
    return np.asarray(norm.ppf((np.arange(count) + 0.5) / count))


def two_normals(shift: float) -> Float[np.ndarray, "n 1"]:
    """150 unlabelled rows, 60 of them positive, then 60 positives, without randomness."""
    positive, negative = quantiles(60) + shift, quantiles(90) - shift
    return np.concatenate([positive, negative, positive])[:, None]


@cache
def curve_of_two_normals(shift: float) -> DistanceCurve:
    return DistanceCurve(gaussian_kernel(two_normals(shift), 150), 150)


def slow_distance(kernel: Matrix, n_unlabelled: int, stretch: float) -> float:
    n_positive = len(kernel) - n_unlabelled
    end = np.repeat(
        [stretch / n_unlabelled, (1 - stretch) / n_positive], [n_unlabelled, n_positive]
    )
    apart = end - interior_point(kernel, kernel @ end).weights
    return float(np.sqrt(max(apart @ kernel @ apart, 0.0)))


def slow_prior(kernel: Matrix, n_unlabelled: int) -> float:
    """KM2 as published: two programs per halving, nothing stored, no short cut."""

    def distance(stretch: float) -> float:
        return slow_distance(kernel, n_unlabelled, stretch)

    apart = np.repeat(
        [1 / n_unlabelled, -1 / (len(kernel) - n_unlabelled)],
        [n_unlabelled, len(kernel) - n_unlabelled],
    )
    last = np.sqrt(apart @ kernel @ apart)
    threshold = 0.8 * (distance(1.05) - distance(1.0)) / 0.05 + 0.2 * last
    left, right = 1.0, 8.0
    while right - left > 0.04:
        middle = (left + right) / 2
        if (distance(middle + 0.02) - distance(middle)) / 0.02 > threshold:
            right = middle
        else:
            left = middle
    return 1 - 2 / (left + right)


@pytest.mark.parametrize(
    ("off_diagonal", "expected"), [(0.0, 0.7071067812), (0.3, 0.5916079783), (0.9, 0.2236067977)]
)
def test_distance_of_two_letters_is_known_in_closed_form(
    off_diagonal: float, expected: float
) -> None:
    curve = DistanceCurve(label_kernel("aba", off_diagonal), 2)
    for stretch in (1.0, 1.5, 2.0, 2.5, 3.0):
        closed_form = max(0.0, stretch / 2 - 1) * np.sqrt(2 - 2 * off_diagonal)
        assert curve.at(stretch).distance == pytest.approx(closed_form, abs=1e-5)
    assert curve.at(3.0).distance == pytest.approx(expected, abs=1e-9)
    assert curve.between_means == pytest.approx(np.sqrt(2 - 2 * off_diagonal) / 2)
    assert curve.first_slope() == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize("off_diagonal", [0.0, 0.3, 0.9])
def test_half_of_two_letters_is_found_to_one_cell(off_diagonal: float) -> None:
    assert prior_from_kernel(label_kernel("aba", off_diagonal), 2) == pytest.approx(497 / 1009)


def test_a_quarter_of_four_letters_is_found_to_one_cell() -> None:
    kernel = label_kernel("abcda", 0.0)
    curve = DistanceCurve(kernel, 4)
    assert curve.at(2.0).distance == pytest.approx(0.5773502692, abs=1e-9)
    assert curve.between_means == pytest.approx(0.8660254038, abs=1e-9)
    assert prior_from_kernel(kernel, 4) == pytest.approx(161 / 673)


def on_the_grid(prior: float) -> bool:
    position = (512 / (1 - prior) - 512) / 7
    return abs(position - round(position)) < 1e-6 and round(position) % 2 == 1


def test_every_value_lies_on_the_grid_of_the_search() -> None:
    rng = np.random.default_rng(0)
    for _ in range(10):
        features = rng.normal(size=(30, 2)) + np.outer(np.arange(30) > 12, [2, 1])
        prior = prior_from_kernel(gaussian_kernel(features, 20), 20)
        assert on_the_grid(prior)
        assert REACHABLE[0] <= prior <= REACHABLE[1]


@pytest.mark.parametrize(
    ("published", "position"),
    [(0.4781, 67), (0.7188, 187), (0.4854, 69), (0.5751, 99), (0.4547, 61)],
)
def test_priors_of_the_ncpu_paper_lie_on_the_same_grid(published: float, position: int) -> None:
    assert 1 - 1 / (1 + position * CELL / 2) == pytest.approx(published, abs=5e-5)
    assert 1 - 512 / (512 + 7 * position) == pytest.approx(published, abs=5e-5)


def test_range_ends_where_the_search_does() -> None:
    assert pytest.approx((0.01349, 0.87479), abs=1e-5) == REACHABLE


def test_kernel_width_is_the_median_for_two_normals() -> None:
    features = two_normals(2)
    median = np.sqrt(np.median((features - features.T) ** 2))
    assert median == pytest.approx(2.2048613735)
    expected = np.exp(-((features - features.T) ** 2) / (2 * median**2))
    assert gaussian_kernel(features, 150) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("shift", "between_means", "threshold", "prior"),
    [(2, 0.6468461663, 0.1293765833, 343 / 855), (3, 0.7271953431, 0.1454, 329 / 841)],
)
def test_two_normals_give_the_known_numbers(
    shift: float, between_means: float, threshold: float, prior: float
) -> None:
    curve = curve_of_two_normals(shift)
    assert curve.between_means == pytest.approx(between_means, abs=1e-9)
    # The number of reference holds the noise of d(1), which is 0 here: hence 1e-4.
    assert km2_threshold(curve) == pytest.approx(threshold, abs=1e-4)
    found = [prior_from_kernel(curve.kernel, 150, rule) for rule in (km1_threshold, km2_threshold)]
    assert found == pytest.approx([prior, prior], abs=0.0101)  # one cell either way
    assert found[1] == pytest.approx(prior)


def test_distance_is_convex_and_never_falls() -> None:
    curve = curve_of_two_normals(2)
    values = np.array([curve.at(stretch).distance for stretch in np.linspace(1, 4, 31)])
    assert values[0] < 1e-5
    assert np.diff(values).min() >= -1e-5
    assert np.diff(values, 2).min() >= -1e-5


def test_distance_far_out_rises_as_fast_as_the_means_are_apart() -> None:
    curve = curve_of_two_normals(3)
    slope = (curve.at(1001.0).distance - curve.at(1000.0).distance) / 1
    assert slope == pytest.approx(curve.between_means, rel=1e-3)


@pytest.mark.parametrize("stretch", [1.7, 1.9, 2.5, 5.0])
def test_slope_bound_is_tight_and_below_the_forward_slope(stretch: float) -> None:
    curve = curve_of_two_normals(2)
    forward = (curve.at(stretch + 1e-3).distance - curve.at(stretch).distance) / 1e-3
    bound = curve.at(stretch).slope_at_least
    assert bound <= forward
    assert bound == pytest.approx(forward, abs=2e-3)


def test_distance_does_not_depend_on_what_was_solved_before() -> None:
    kernel = gaussian_kernel(np.random.default_rng(0).normal(size=(300, 3)), 200)
    curve = DistanceCurve(kernel, 200)
    for stretch in (4.5, 1.1, 2.0, 1.5):
        squared = curve.at(stretch).distance ** 2
        assert squared == pytest.approx(slow_distance(kernel, 200, stretch) ** 2, abs=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_short_cuts_do_not_change_the_estimate(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(45, 2)) + 2.0 * np.outer(rng.random(45) < 0.4, [1, 1])
    features[30:] += [2.0, 2.0]
    kernel = gaussian_kernel(features, 30)
    assert prior_from_kernel(kernel, 30) == slow_prior(kernel, 30)


def test_threshold_of_km1_depends_on_the_smaller_sample_only() -> None:
    curve = curve_of_two_normals(2)
    assert km1_threshold(curve) == pytest.approx(1 / np.sqrt(60))


def test_km1_takes_the_threshold_of_km2_where_its_own_is_out_of_reach() -> None:
    curve = DistanceCurve(label_kernel("aba", 0.0), 2)  # 1 / sqrt(1) > .9 D
    assert km1_threshold(curve) == km2_threshold(curve)


def test_unlabelled_that_equal_the_positives_give_the_upper_end() -> None:
    features = np.repeat(quantiles(20)[None], 2, axis=0).reshape(-1, 1)
    assert prior_from_kernel(gaussian_kernel(features, 20), 20) == REACHABLE[1]


def test_duplicates_do_not_make_the_width_vanish() -> None:
    features = np.array([0.0] * 9 + [1.0] + [1.0])[:, None]  # most distances are 0
    kernel = gaussian_kernel(features, 10)
    assert 0 < kernel[0, 9] < 1
