"""Best bin estimation: hand numbers, slow loops, ties, and the bootstrap."""

from typing import get_args

import numpy as np
import pytest
from jaxtyping import Float
from numpy.typing import ArrayLike

from onesided.core.errors import ConfigError, DataError
from onesided.priors import bbe, best_bin
from onesided.priors.bbe import Ties

Scores = Float[np.ndarray, "n"]

POSITIVE = [0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6]
UNLABELLED = [0.97, 0.88, 0.77, 0.66, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05]


def penalty(n_positive: int, n_unlabelled: int) -> float:
    width = np.log(4 / 0.1) / 2
    return float(1.01 * (np.sqrt(width / n_unlabelled) + np.sqrt(width / n_positive)))


def slow_ratio(positive: Scores, unlabelled: Scores, candidates: Scores) -> float:
    best = (np.inf, 0.0)
    for threshold in sorted(candidates):
        share_positive = np.mean(positive >= threshold)
        if share_positive > 0:
            ratio = np.mean(unlabelled >= threshold) / share_positive
            slack = penalty(len(positive), len(unlabelled)) / share_positive
            best = min(best, (ratio + slack, ratio))
    return float(best[1])


def slow_reference(positive: Scores, unlabelled: Scores) -> float:
    """Walk down the sorted U scores, one by one, as the authors' scan is described."""
    ordered = sorted(unlabelled, reverse=True)
    best = (np.inf, 0.0)
    for before, score in enumerate(ordered[:-1]):
        last_of_its_run = ordered[before + 1] < score
        above = sum(value >= score for value in positive)
        if last_of_its_run and before > 1 and above > 1:
            share_positive = above / len(positive)
            ratio = before / len(unlabelled) / share_positive
            slack = penalty(len(positive), len(unlabelled)) / share_positive
            best = min(best, (ratio + slack, ratio))
    return min(best[1], 1.0)


def random_scores(seed: int, *, decimals: int = 12) -> list[Scores]:
    rng = np.random.default_rng(seed)
    n_positive, n_unlabelled = rng.integers(5, 60, size=2)
    positive = rng.normal(size=n_positive) + 1
    unlabelled = rng.normal(size=n_unlabelled) + 2 * (rng.random(n_unlabelled) < 0.4) - 1
    return [positive.round(decimals), unlabelled.round(decimals)]


def grid(n_positive: int) -> list[Scores]:
    """Positives fill the upper half evenly; 1600 of 4000 unlabelled are there too."""
    return [
        0.5 + 0.5 * (np.arange(n_positive) + 0.5) / n_positive,
        np.concatenate(
            [
                0.5 + 0.5 * (np.arange(1600) + 0.5) / 1600,
                0.5 * (np.arange(2400) + 0.5) / 2400,
            ]
        ),
    ]


def test_eighteen_scores_give_the_bin_worked_out_by_hand() -> None:
    found = best_bin(POSITIVE, UNLABELLED)
    assert found.penalty == pytest.approx(0.9187271120, abs=1e-10)
    assert found.threshold == 0.6
    assert found.share_unlabelled == pytest.approx(0.4)
    assert found.share_positive == 1
    assert found.ratio == pytest.approx(0.4)
    assert found.bound == pytest.approx(1.3187271120, abs=1e-10)


def test_scan_of_the_authors_agrees_but_thresholds_at_unlabelled_scores_alone_do_not() -> None:
    assert best_bin(POSITIVE, UNLABELLED, ties="reference").ratio == pytest.approx(0.4)
    positive, unlabelled = np.array(POSITIVE), np.array(UNLABELLED)
    assert slow_ratio(positive, unlabelled, unlabelled) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("n_positive", "expected_penalty", "threshold", "ratio"),
    [(1000, 0.0650646154, 0.50025, 0.39975), (100, 0.1588564582, 0.5025, 0.398)],
)
def test_even_grids_give_the_known_numbers(
    n_positive: int, expected_penalty: float, threshold: float, ratio: float
) -> None:
    found = best_bin(*grid(n_positive))
    assert found.penalty == pytest.approx(expected_penalty, abs=1e-10)
    assert found.threshold == pytest.approx(threshold, abs=1e-12)
    assert found.ratio == pytest.approx(ratio, abs=1e-12)
    assert bbe(*grid(n_positive)).value == found.ratio


def test_equal_scores_count_as_the_formula_says_unless_the_reference_is_asked_for() -> None:
    positive, unlabelled = [0.8] * 5, [0.8] * 4 + [0.2] * 6
    assert best_bin(positive, unlabelled).ratio == pytest.approx(0.4)
    assert best_bin(positive, unlabelled, ties="reference").ratio == pytest.approx(0.3)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("decimals", [12, 1, 0])
def test_sorted_counts_equal_the_slow_loops(seed: int, decimals: int) -> None:
    positive, unlabelled = random_scores(seed, decimals=decimals)
    everything = np.concatenate([positive, unlabelled])
    exact = best_bin(positive, unlabelled).ratio
    assert exact == pytest.approx(slow_ratio(positive, unlabelled, everything))
    reference = best_bin(positive, unlabelled, ties="reference").ratio
    assert reference == pytest.approx(slow_reference(positive, unlabelled))


@pytest.mark.parametrize("seed", range(5))
def test_without_ties_both_countings_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    positive = rng.normal(size=80) + 2
    unlabelled = rng.normal(size=300) + np.where(rng.random(300) < 0.4, 2, -2)
    reference = best_bin(positive, unlabelled, ties="reference").ratio
    assert best_bin(positive, unlabelled).ratio == pytest.approx(reference)


@pytest.mark.parametrize("seed", range(5))
def test_only_the_order_of_scores_matters(seed: int) -> None:
    positive, unlabelled = random_scores(seed)
    moved = bbe(np.exp(positive) - 7, np.exp(unlabelled) - 7)
    assert moved == bbe(positive, unlabelled)


@pytest.mark.parametrize("seed", range(5))
def test_ratio_never_exceeds_one_even_if_the_scorer_is_upside_down(seed: int) -> None:
    positive, unlabelled = random_scores(seed)
    for ties in get_args(Ties):
        estimate = bbe(-positive, -unlabelled, ties=ties, resamples=20)
        assert estimate.value <= estimate.high <= 1


def test_scan_of_the_authors_returns_zero_when_no_bin_qualifies() -> None:
    found = best_bin([0.9], UNLABELLED, ties="reference")
    assert (found.ratio, found.share_positive, found.bound) == (0.0, 0.0, np.inf)


def test_interval_spans_the_middle_of_the_slow_bootstrap_and_its_mirror_image() -> None:
    positive, unlabelled = random_scores(2)
    estimate = bbe(positive, unlabelled, resamples=50, coverage=0.8, seed=5)
    rng = np.random.default_rng(5)
    positive_draws = rng.integers(len(positive), size=(50, len(positive)))
    unlabelled_draws = rng.integers(len(unlabelled), size=(50, len(unlabelled)))
    values = [
        best_bin(positive[one], unlabelled[other]).ratio
        for one, other in zip(positive_draws, unlabelled_draws, strict=True)
    ]
    low, high = np.quantile(values, [0.1, 0.9])
    mirrored = (2 * estimate.value - low, 2 * estimate.value - high)
    assert estimate.low == pytest.approx(max(0, min(low, estimate.value, *mirrored)))
    assert estimate.high == pytest.approx(min(1, max(high, estimate.value, *mirrored)))


@pytest.mark.parametrize("seed", range(10))
def test_interval_holds_the_value(seed: int) -> None:
    estimate = bbe(*random_scores(seed, decimals=1), resamples=20)
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


def test_interval_covers_the_mean_of_the_estimator_about_as_often_as_promised() -> None:
    estimates = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        unlabelled = rng.normal(size=500) + np.where(rng.random(500) < 0.4, 2, -2)
        estimates.append(bbe(rng.normal(size=100) + 2, unlabelled, coverage=0.9))
    mean = np.mean([estimate.value for estimate in estimates])
    covered = np.mean([estimate.low <= mean <= estimate.high for estimate in estimates])
    assert 0.75 <= covered <= 1
    assert mean == pytest.approx(0.4, abs=0.03)


def test_same_seed_gives_the_same_interval_and_another_seed_another() -> None:
    samples = random_scores(1)
    first, again, other = (bbe(*samples, seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert (first.low, first.high) != (other.low, other.high)


def test_many_scores_are_resampled_in_parts() -> None:
    rng = np.random.default_rng(0)
    positive, unlabelled = rng.normal(size=1000) + 3, rng.normal(size=200_000)
    unlabelled[:80_000] += 3
    estimate = bbe(positive, unlabelled, resamples=12)
    assert estimate.low < estimate.high
    assert estimate.value == pytest.approx(0.4, abs=0.05)


def test_estimate_says_what_it_was_computed_from() -> None:
    estimate = bbe(*grid(100), resamples=10)
    assert (estimate.method, estimate.n_positive, estimate.n_unlabelled) == ("BBE", 100, 4000)
    assert estimate.notes == ()


@pytest.mark.parametrize(
    ("positive", "unlabelled", "sentence"),
    [
        ([0.5] * 30, [0.5] * 30, "All scores are equal"),
        ([1.0] * 20 + [0.5] * 20, list(np.linspace(0, 1, 40)), "share one score"),
        (list(np.linspace(1, 2, 30)), list(np.linspace(0, 0.5, 30)), "No unlabelled score"),
        (POSITIVE, UNLABELLED, "Only 8 positives"),
    ],
)
def test_doubtful_scores_get_a_note(
    positive: list[float], unlabelled: list[float], sentence: str
) -> None:
    notes = bbe(positive, unlabelled, resamples=5).notes
    assert any(sentence in note for note in notes)


def test_float32_probabilities_tie_where_logits_do_not() -> None:
    logits = np.linspace(17, 30, 50)
    probabilities = (1 / (1 + np.exp(-logits))).astype(np.float32)
    assert any("share one score" in note for note in bbe(probabilities, UNLABELLED).notes)
    assert not any("share one score" in note for note in bbe(logits, UNLABELLED).notes)


@pytest.mark.parametrize(
    ("positive", "unlabelled", "sentence"),
    [
        ([], UNLABELLED, "positive scores must be an array with at least one sample"),
        (POSITIVE, [], "unlabelled scores must be an array with at least one sample"),
        ([0.1, np.nan], UNLABELLED, "1 of 2 positive scores hold NaN"),
        ([[0.1, 0.9]], UNLABELLED, "one number per sample"),
        (["high"], UNLABELLED, "must be numbers"),
    ],
)
def test_bad_scores_are_refused_in_one_sentence(
    positive: ArrayLike, unlabelled: ArrayLike, sentence: str
) -> None:
    with pytest.raises(DataError, match=sentence):
        bbe(positive, unlabelled)


def test_impossible_options_are_refused() -> None:
    with pytest.raises(ConfigError, match="delta must lie between 0 and 1"):
        best_bin(POSITIVE, UNLABELLED, delta=0.0)
    with pytest.raises(ConfigError, match="gamma not below 0"):
        best_bin(POSITIVE, UNLABELLED, gamma=-1.0)
    with pytest.raises(ConfigError, match="resamples must be at least 1"):
        bbe(POSITIVE, UNLABELLED, resamples=0)
    # TypeError where shapes and types are checked at run time, before the function is entered.
    with pytest.raises((ConfigError, TypeError), match="ties"):
        best_bin(POSITIVE, UNLABELLED, ties="neither")  # type: ignore[arg-type]
