import numpy as np
import pytest
from scipy.stats import norm

from onesided.priors.binormal import GRID, WIDTHS, binormal, cells, loss, lowest, profile


def scores(
    prior: float, distance: float, *, seed: int, positives: int = 100, width: float = 1.0
) -> tuple[np.ndarray, np.ndarray, float]:
    """Scores of P and of U as bell curves, and the share of positives that U really has."""
    random = np.random.default_rng(seed)
    truth = random.random(2000) < prior
    unlabelled = np.where(truth, random.normal(distance, 1, 2000), random.normal(0, width, 2000))
    return random.normal(distance, 1, positives), unlabelled, float(truth.mean())


def test_the_likelihood_is_that_of_the_counts_cell_by_cell() -> None:
    positive, unlabelled, prior = np.array([2, 5, 9]), np.array([40, 30, 20]), 0.3
    first, step, distance, width = -0.8, 1.1, 1.4, 1.2
    cuts = [-np.inf, first, first + step, np.inf]
    expected = (np.log(width) / WIDTHS) ** 2 / 2
    for cell in range(3):
        p = norm.cdf(cuts[cell + 1]) - norm.cdf(cuts[cell])
        n = norm.cdf(cuts[cell + 1], -distance, width) - norm.cdf(cuts[cell], -distance, width)
        expected -= positive[cell] * np.log(p)
        expected -= unlabelled[cell] * np.log(prior * p + (1 - prior) * n)
    at = np.array([first, np.log(step), distance, np.log(width)])
    found, _ = loss(at, prior, positive, unlabelled)
    assert found == pytest.approx(expected, rel=1e-9)


def test_the_gradient_is_that_of_small_steps() -> None:
    random = np.random.default_rng(0)
    positive, unlabelled = random.integers(1, 20, 8), random.integers(1, 200, 8)
    at = np.array([-1.2, *random.normal(-1, 0.3, 6), 1.3, 0.2])
    _, gradient = loss(at, 0.3, positive, unlabelled)
    for place, step in enumerate(1e-6 * np.eye(len(at))):
        ends = [loss(at + sign * step, 0.3, positive, unlabelled)[0] for sign in (1, -1)]
        assert gradient[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-4)


def test_cells_hold_every_score_once_and_none_is_empty() -> None:
    positive, unlabelled, _ = scores(0.3, 2.0, seed=1)
    counted = cells(positive, np.round(unlabelled, 1))
    assert [int(part.sum()) for part in counted] == [100, 2000]
    assert ((counted[0] + counted[1]) > 0).all()


def test_only_the_order_of_scores_matters() -> None:
    positive, unlabelled, _ = scores(0.3, 2.0, seed=2)
    plain, bent = binormal(positive, unlabelled), binormal(np.exp(positive), np.exp(unlabelled))
    assert (plain.value, plain.low, plain.high) == (bent.value, bent.low, bent.high)


@pytest.mark.slow
def test_intervals_hold_the_prior_of_overlapping_curves() -> None:
    cases = [(0.15, 1.2), (0.15, 2.5), (0.4, 1.2), (0.4, 2.5), (0.3, 1.8), (0.5, 3.0)]
    held = 0
    for seed, (prior, distance) in enumerate(cases * 2):
        positive, unlabelled, true = scores(prior, distance, seed=seed)
        found = binormal(positive, unlabelled)
        held += found.low <= true <= found.high
    assert held >= 11


@pytest.mark.parametrize("width", [0.8, 1.2])
def test_the_low_end_stands_where_negatives_are_spread_otherwise(width: float) -> None:
    cases = [scores(0.3, 2.0, seed=seed, width=width) for seed in range(6)]
    assert sum(binormal(p, u).low <= true for p, u, true in cases) >= 5


def test_it_is_narrow_where_classes_separate() -> None:
    found = binormal(*scores(0.3, 4.0, seed=3)[:2])
    assert found.high - found.low < 0.1


def test_scores_that_say_nothing_allow_every_prior() -> None:
    found = binormal(np.full(50, 0.5), np.full(200, 0.5))
    assert (found.low, found.high) == (0.005, 0.99)


def test_the_estimate_is_the_lowest_point_of_a_smooth_loss() -> None:
    for at in (0.013, 0.118, 0.415, 0.77):
        assert lowest((GRID - at) ** 2) == pytest.approx(at, abs=1e-9)
    assert lowest(np.zeros(len(GRID))) == GRID[0]
    assert lowest(-GRID) == GRID[-1]


def test_three_levels_of_score_speak_for_a_prior_and_two_do_not() -> None:
    three = profile(np.array([2, 5, 60]), np.array([80, 20, 30]))
    assert np.ptp(three) > 1
    assert not profile(np.array([5, 60]), np.array([80, 30])).any()


def test_a_handful_of_scores_leaves_the_lowest_prior_possible() -> None:
    estimate = binormal([0.6, 0.7, 0.9], [0.1, 0.2, 0.3, 0.35, 0.65, 0.8])
    assert estimate.low == GRID[0] < estimate.value
