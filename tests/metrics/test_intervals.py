import numpy as np
import pytest
from scipy.special import expit, logit, ndtr
from scipy.stats import binomtest

from onesided.metrics.intervals import (
    AucSpread,
    auc_spread,
    clopper_pearson,
    placements,
    prior_draws,
    share_draws,
)


@pytest.mark.parametrize(
    ("successes", "trials"), [(0, 1), (1, 1), (0, 20), (20, 20), (3, 20), (90, 100), (1, 4000)]
)
@pytest.mark.parametrize("coverage", [0.9, 0.95])
def test_exact_interval_agrees_with_scipy(successes: int, trials: int, coverage: float) -> None:
    expected = binomtest(successes, trials).proportion_ci(coverage, method="exact")
    low, high = clopper_pearson(successes, trials, coverage=coverage)
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-10)


def test_draws_of_a_share_have_the_exact_bounds_as_quantiles() -> None:
    low, high = share_draws(17, 20, np.random.default_rng(0))
    exact = clopper_pearson(17, 20)
    assert np.quantile(low, 0.025) == pytest.approx(exact[0], abs=0.01)
    assert np.quantile(high, 0.975) == pytest.approx(exact[1], abs=0.01)


def test_draws_of_a_share_reach_the_end_where_none_or_all_succeeded() -> None:
    rng = np.random.default_rng(0)
    assert share_draws(0, 9, rng)[0].max() == 0
    assert share_draws(9, 9, rng)[1].min() == 1


def test_draws_of_the_prior_have_its_value_and_interval_as_quantiles() -> None:
    draws = prior_draws(0.3, (0.25, 0.45), np.random.default_rng(0), coverage=0.95)
    assert np.quantile(draws, [0.025, 0.5, 0.975]) == pytest.approx([0.25, 0.3, 0.45], abs=0.01)


def test_a_prior_without_interval_is_certain() -> None:
    assert set(prior_draws(0.3, None, np.random.default_rng(0), coverage=0.95)) == {0.3}


def test_draws_of_the_prior_stay_below_one_where_auc_is_undefined() -> None:
    draws = prior_draws(0.9, (0.0, 1.0), np.random.default_rng(0), coverage=0.95)
    assert draws.min() >= 0
    assert draws.max() < 1


def test_placements_count_pairs_and_halve_ties() -> None:
    scores, reference = np.array([1.0, 2.0, 2.0, 5.0]), np.array([2.0, 0.0, 2.0, 3.0, 5.0])
    slow = [
        np.mean([(score > other) + 0.5 * (score == other) for other in reference])
        for score in scores
    ]
    assert placements(scores, reference) == pytest.approx(slow)


def test_variance_of_an_auc_is_delongs_for_large_samples() -> None:
    rng = np.random.default_rng(3)
    higher, lower = rng.normal(1, 1, 800), rng.normal(0, 1, 1200)
    spread = auc_spread(higher, lower)
    wins = (higher[:, None] > lower).astype(float)
    delong = wins.mean(1).var(ddof=1) / 800 + wins.mean(0).var(ddof=1) / 1200
    auc = wins.mean()
    assert spread.value == pytest.approx(auc)
    assert spread.error * auc * (1 - auc) == pytest.approx(delong**0.5, rel=0.02)


def test_a_perfect_auc_of_few_items_is_not_certain() -> None:
    low, high = auc_spread(np.array([8.0, 9.0, 7.0]), np.arange(5.0)).interval(0.95)
    assert low < 0.8
    assert high == 1


def test_auc_of_a_single_pair_has_an_interval() -> None:
    low, high = auc_spread(np.array([1.0]), np.array([0.0])).interval(0.95)
    assert 0 <= low < high <= 1


@pytest.mark.parametrize(
    ("n_higher", "n_lower", "distance"), [(10, 1000, 1.0), (10, 1000, 3.0), (50, 300, 2.0)]
)
def test_interval_of_an_auc_covers(n_higher: int, n_lower: int, distance: float) -> None:
    rng = np.random.default_rng(n_higher)
    truth = ndtr(distance / np.sqrt(2))
    hits = 0
    for _ in range(500):
        spread = auc_spread(rng.normal(distance, 1, n_higher), rng.normal(0, 1, n_lower))
        low, high = spread.interval(0.95)
        hits += low <= truth <= high
    assert hits >= 0.92 * 500


def test_draws_of_an_auc_agree_with_its_interval() -> None:
    rng = np.random.default_rng(1)
    spread = auc_spread(rng.normal(1, 1, 60), rng.normal(0, 1, 300))
    quantiles = np.quantile(spread.draws(rng), [0.025, 0.975])
    assert quantiles == pytest.approx(spread.interval(0.95), abs=0.01)


def test_equal_scores_have_an_auc_of_a_half_that_is_not_certain() -> None:
    low, high = auc_spread(np.full(5, 0.3), np.full(40, 0.3)).interval(0.95)
    assert low < 0.45
    assert high > 0.55


def test_an_auc_less_its_optimism_is_as_uncertain_as_both_together() -> None:
    spread = AucSpread(0.8, float(logit(0.8)), 0.3)
    lowered = spread.less(0.05)
    assert lowered.value == pytest.approx(0.75)
    assert expit(lowered.centre) == pytest.approx(0.75)
    # An error on the logit scale times p (1 - p) is one of the AUC.
    before, after = 0.3 * 0.8 * 0.2, lowered.error * 0.75 * 0.25
    assert after == pytest.approx(np.hypot(before, 0.05))
    assert spread.less(0.0) == spread
