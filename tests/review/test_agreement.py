"""Agreement of reviewers against scikit-learn, and time of work by hand."""

import random

import pytest
from sklearn.metrics import cohen_kappa_score

from onesided.review.agreement import BREAK, FIRST, agreement, cohens_kappa, working_seconds
from onesided.storage.answers import Answer


def given(item: str, answer: str, reviewer: str, time: str = "2026-01-01T10:00:00Z") -> Answer:
    return Answer(item, answer, reviewer, time)


def test_kappa_is_that_of_scikit_learn() -> None:
    for seed in range(30):
        draw = random.Random(seed)
        pairs = [(draw.random() < 0.4, draw.random() < 0.6) for _ in range(40)]
        first, second = zip(*pairs, strict=True)
        assert cohens_kappa(pairs) == pytest.approx(cohen_kappa_score(first, second))


def test_kappa_by_hand() -> None:
    # The example of textbooks: 20 both yes, 15 both no, 5 and 10 of one kind: kappa 0.4.
    pairs = [(True, True)] * 20 + [(False, False)] * 15 + [(True, False)] * 5
    pairs += [(False, True)] * 10
    assert cohens_kappa(pairs) == pytest.approx(0.4)


def test_without_two_kinds_of_answers_there_is_no_kappa() -> None:
    assert cohens_kappa([(True, True)] * 5) is None
    (pair,) = agreement([given("x", "positive", "A"), given("x", "positive", "B")])
    assert (pair.items, pair.agreed, pair.kappa) == (1, 1, None)
    assert "not defined" in str(pair)


def test_only_items_that_both_decided_count() -> None:
    answers = [
        given("x", "positive", "A"),
        given("x", "negative", "B"),
        given("y", "positive", "A"),
        given("y", "unsure", "B"),
        given("z", "negative", "A"),
        given("z", "negative", "B"),
        given("z", "skip", "C"),
    ]
    (pair,) = agreement(answers)
    assert (pair.reviewers, pair.items, pair.agreed) == (("A", "B"), 2, 1)


def test_breaks_are_no_work_and_people_work_side_by_side() -> None:
    times = ["10:00:00", "10:00:20", "10:00:50", "11:00:00", "11:00:04"]
    own = [given("x", "positive", "A", f"2026-01-01T{time}Z") for time in times]
    expected = FIRST + 20 + 30 + FIRST + 4
    assert working_seconds(own) == expected
    other = [given("x", "positive", "B", "2026-01-01T10:00:10Z")]
    assert working_seconds(own + other) == expected + FIRST
    assert BREAK < 3600
