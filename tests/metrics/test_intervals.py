import numpy as np
import pytest
from scipy.special import expit, logit, ndtr
from scipy.stats import binomtest
from scipy.stats import t as student

from onesided.metrics.intervals import (
    AucSpread,
    auc_spread,
    clopper_pearson,
    less,
    placements,
    prior_draws,
    share_draws,
    worth,
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


# Items of groups


def in_groups(
    rng: np.random.Generator, groups: int, each: int, *, alike: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return normal scores of which a share of the variance is common to a group, and groups."""
    common = np.repeat(rng.normal(size=groups), each)
    scores = np.sqrt(alike) * common + np.sqrt(1 - alike) * rng.normal(size=groups * each)
    return scores, np.repeat(np.arange(groups), each)


def slow_worth(hits: np.ndarray, group: np.ndarray) -> float:
    """Korn and Graubard (1998), with loops over groups."""
    names, n = sorted(set(group)), len(hits)
    share = sum(hits) / n
    totals = [sum(hits[i] - share for i in range(n) if group[i] == name) for name in names]
    variance = len(names) / (len(names) - 1) * sum(total**2 for total in totals) / n**2
    effective = share * (1 - share) / variance
    ratio = student.ppf(0.975, n - 1) / student.ppf(0.975, len(names) - 1)
    return float(min(n, effective * ratio**2))


@pytest.mark.parametrize("seed", range(3))
def test_what_items_of_groups_are_worth_is_korn_and_graubards(seed: int) -> None:
    scores, group = in_groups(np.random.default_rng(seed), 12, 4, alike=0.6)
    assert worth(scores > 0.2, group) == pytest.approx(slow_worth(scores > 0.2, group))


def test_items_that_stand_for_themselves_are_worth_what_they_are() -> None:
    hits = np.arange(30) < 12
    assert worth(hits, None) == worth(hits, np.arange(30)) == 30


def test_copies_of_an_item_are_worth_one_item() -> None:
    hits = np.repeat(np.arange(200) % 3 == 0, 5)
    assert worth(hits, np.repeat(np.arange(200), 5)) == pytest.approx(200, rel=0.02)


def test_where_no_item_or_every_item_is_a_hit_each_group_counts_as_one() -> None:
    group = np.repeat(np.arange(7), 10)
    assert worth(np.zeros(70, bool), group) == worth(np.ones(70, bool), group) == 7


def test_groups_that_are_nothing_but_names_cost_little() -> None:
    """Items that are independent, in many groups, are worth nearly as many."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(100), 3)
    found = [worth(rng.random(300) < 0.7, group) for _ in range(50)]
    assert np.mean(found) > 0.85 * 300


def test_the_interval_of_a_share_covers_only_if_it_knows_the_groups() -> None:
    rng, held = np.random.default_rng(4), {True: 0, False: 0}
    truth = float(ndtr(0.5))
    for _ in range(400):
        scores, group = in_groups(rng, 30, 4, alike=0.7)
        hits = scores > -0.5
        for knows in held:
            trials = worth(hits, group if knows else None)
            low, high = clopper_pearson(hits.mean() * trials, trials)
            held[knows] += low <= truth <= high
    assert held[True] >= 0.93 * 400
    assert held[False] < 0.85 * 400


def slow_grouped_variance(
    higher: np.ndarray, lower: np.ndarray, groups: tuple[np.ndarray, np.ndarray]
) -> float:
    """Obuchowski (1997): the variance of sums of placements over groups, with loops."""
    wins = (higher[:, None] > lower) + 0.5 * (higher[:, None] == lower)
    auc = wins.mean()
    names = sorted({*groups[0], *groups[1]})
    total = 0.0
    for name in names:
        of_higher = sum(
            (wins[i].mean() - auc) / len(higher) for i in np.flatnonzero(groups[0] == name)
        )
        of_lower = sum(
            (wins[:, j].mean() - auc) / len(lower) for j in np.flatnonzero(groups[1] == name)
        )
        total += (of_higher + of_lower) ** 2
    return float(len(names) / (len(names) - 1) * total)


def test_the_variance_of_an_auc_of_groups_is_obuchowskis() -> None:
    rng = np.random.default_rng(8)
    higher, of_higher = in_groups(rng, 20, 5, alike=0.9)
    lower, of_lower = in_groups(rng, 20, 10, alike=0.9)
    groups = (of_higher, of_lower)  # each group holds items of both
    spread = auc_spread(higher + 1, lower, groups)
    few = student.ppf(0.975, 19) / student.ppf(0.975, 10**9)
    slow = slow_grouped_variance(higher + 1, lower, groups) * few**2
    assert (spread.error * spread.value * (1 - spread.value)) ** 2 == pytest.approx(slow, rel=1e-6)
    assert spread.value == auc_spread(higher + 1, lower).value
    assert spread.error > 1.5 * auc_spread(higher + 1, lower).error


def test_the_interval_of_an_auc_covers_only_if_it_knows_the_groups() -> None:
    rng, held = np.random.default_rng(2), {True: 0, False: 0}
    truth = ndtr(1 / np.sqrt(2))
    for _ in range(300):
        higher, of_higher = in_groups(rng, 30, 4, alike=0.8)
        lower = rng.normal(size=600)
        for knows in held:
            groups = (of_higher, 30 + np.arange(600)) if knows else None
            low, high = auc_spread(higher + 1, lower, groups).interval(0.95)
            held[knows] += low <= truth <= high
    assert held[True] >= 0.92 * 300
    assert held[False] < 0.85 * 300


@pytest.mark.parametrize(("groups", "each", "low_groups"), [(5, 20, 0.1), (10, 10, 0.05)])
def test_a_perfect_auc_of_few_groups_may_be_luck(groups: int, each: int, low_groups: float) -> None:
    """Some groups of positives lie at the bottom, all of their items: most samples hold none."""
    rng, held = np.random.default_rng(5), 0
    truth = 1 - low_groups
    for _ in range(200):
        low = np.repeat(rng.random(groups) < low_groups, each)
        higher, lower = np.where(low, -1.0, 2.0), rng.random(300)
        group = (np.repeat(np.arange(groups), each), groups + np.arange(300))
        ends = auc_spread(higher, lower, group).interval(0.95)
        held += ends[0] <= truth <= ends[1]
    assert held >= 0.93 * 200


def test_groups_of_one_item_change_no_auc_and_a_single_group_tells_nothing() -> None:
    rng = np.random.default_rng(1)
    higher, lower = rng.normal(1, 1, 30), rng.normal(0, 1, 90)
    apart = (np.arange(30), 30 + np.arange(90))
    assert auc_spread(higher, lower, apart) == auc_spread(higher, lower)
    low, high = auc_spread(higher, lower, (np.zeros(30, int), apart[1])).interval(0.95)
    assert high - low > 0.9


def test_a_share_less_its_optimism_is_as_uncertain_as_both_together() -> None:
    low, high = less(0.8, (0.7, 0.88), 0.05)
    wide = 1.959964 * 0.05
    assert low == pytest.approx(0.75 - np.hypot(0.1, wide))
    assert high == pytest.approx(0.75 + np.hypot(0.08, wide))
    assert less(0.8, (0.7, 0.88), 0.0) == (0.7, 0.88)
    assert less(0.02, (0.0, 0.1), 0.05)[0] == 0
