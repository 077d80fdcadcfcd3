"""Thresholds against brute force: try every cut there is, and count."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onesided.core.errors import ConfigError, DataError
from onesided.metrics.threshold_rules import (
    HALF,
    ThresholdRule,
    lee_liu_threshold,
    parse_rule,
    prior_threshold,
    recall_threshold,
    top_k_threshold,
)

# A coarse grid among the scores, so that ties are common.
SCORE = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), st.floats(0, 1))
SCORES = st.lists(SCORE, min_size=1, max_size=30).map(np.array)


def cuts(*scores: np.ndarray) -> list[float]:
    """Every threshold that can make a difference: each score, and zero below all of them."""
    return sorted({0.0, *np.concatenate(scores).tolist()})


def above(scores: np.ndarray, threshold: float) -> int:
    return sum(score > threshold for score in scores.tolist())


@given(SCORES, st.integers(0, 35))
def test_top_k_calls_as_many_as_asked_or_the_most_that_ties_allow(
    scores: np.ndarray, count: int
) -> None:
    threshold = top_k_threshold(scores, count)
    possible = {above(scores, cut) for cut in [*cuts(scores), 1.0]}
    assert above(scores, threshold) == max(number for number in possible if number <= count)
    assert 0 <= threshold <= 1


def test_top_k_lies_half_way_between_two_scores() -> None:
    assert top_k_threshold(np.array([0.9, 0.1, 0.7, 0.2]), 2) == pytest.approx(0.45)


def test_neighbouring_numbers_are_distinguished() -> None:
    low, high = np.nextafter(1.0, 0.0), 1.0
    scores = np.array([low, high])
    assert above(scores, top_k_threshold(scores, 1)) == 1


@given(SCORES, st.floats(0, 1))
def test_the_prior_s_share_is_met_to_the_nearest_item_below_ties(
    scores: np.ndarray, prior: float
) -> None:
    wanted = round(prior * len(scores))
    possible = [above(scores, cut) for cut in [*cuts(scores), 1.0]]
    called = above(scores, prior_threshold(scores, prior))
    assert called == max(number for number in possible if number <= wanted)


@given(SCORES, SCORES, st.floats(0.01, 1))
def test_recall_is_reached_by_the_highest_threshold_that_does(
    positive: np.ndarray, unlabelled: np.ndarray, recall: float
) -> None:
    enough = [
        cut
        for cut in cuts(positive, unlabelled)
        if above(positive, cut) >= recall * len(positive) - 1e-6
    ]
    if not enough:
        with pytest.raises(DataError, match="score of zero"):
            recall_threshold(positive, unlabelled, recall)
        return
    threshold = recall_threshold(positive, unlabelled, recall)
    assert above(positive, threshold) == above(positive, max(enough))
    assert above(unlabelled, threshold) == above(unlabelled, max(enough))


@given(SCORES, SCORES)
def test_max_f1_has_the_largest_criterion_of_all_thresholds(
    positive: np.ndarray, unlabelled: np.ndarray
) -> None:
    def criterion(threshold: float) -> float:
        recall = above(positive, threshold) / len(positive)
        return recall**2 * (len(unlabelled) + 1) / (above(unlabelled, threshold) + 1)

    if not (positive.any() or unlabelled.any()):
        with pytest.raises(DataError, match="All scores are zero"):
            lee_liu_threshold(positive, unlabelled)
        return
    threshold = lee_liu_threshold(positive, unlabelled)
    best = max(map(criterion, cuts(positive, unlabelled)))
    assert criterion(threshold) == pytest.approx(best)


def test_of_equal_criteria_the_one_with_more_recall_is_taken() -> None:
    # From 0.9 on: recall 1/2 and none of three called, (1/4) / (1/4). From 0.2 on: 1 / (4/4).
    positive, unlabelled = np.array([0.2, 0.9]), np.array([0.3, 0.3, 0.4])
    assert lee_liu_threshold(positive, unlabelled) == pytest.approx(0.1)


def test_max_f1_finds_the_gap_between_two_groups() -> None:
    positive = np.array([0.8, 0.85, 0.9, 0.95])
    unlabelled = np.array([0.05, 0.1, 0.15, 0.2, 0.82, 0.88])
    assert lee_liu_threshold(positive, unlabelled) == pytest.approx(0.5)


def test_a_threshold_above_all_of_u_does_not_win_by_dividing_by_zero() -> None:
    # One lucky positive above everything, the rest mixed with the upper half of U.
    positive = np.array([0.99, 0.7, 0.71, 0.72, 0.73, 0.74])
    unlabelled = np.array([0.1, 0.2, 0.3, 0.75, 0.76, 0.77])
    assert lee_liu_threshold(positive, unlabelled) < 0.7


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("0.5", HALF),
        (0.5, HALF),
        ("0", ThresholdRule("fixed", 0.0)),
        ("1", ThresholdRule("fixed", 1.0)),
        ("prior", ThresholdRule("prior")),
        (" Prior=0.3", ThresholdRule("prior", 0.3)),
        ("max-f1", ThresholdRule("max-f1")),
        ("recall=1", ThresholdRule("recall", 1.0)),
        ("top-k=500", ThresholdRule("top-k", 500.0)),
    ],
)
def test_a_rule_is_read_as_it_is_written(text: object, rule: ThresholdRule) -> None:
    assert parse_rule(text) == rule
    assert parse_rule(str(rule)) == rule


@pytest.mark.parametrize(
    "text",
    [
        *("", "half", "1.1", "-0.1", "nan", "inf", True, "=0.5", "max-f1=2"),
        *("prior=", "prior=0", "prior=1", "recall", "recall=0", "recall=1.01", "recall=x"),
        *("top-k", "top-k=0", "top-k=1.5"),
    ],
)
def test_anything_else_is_refused_with_what_is_expected(text: object) -> None:
    with pytest.raises(ConfigError, match=r"expected a number from 0 to 1, or prior.*top-k=500"):
        parse_rule(text)
