"""What comes next, compared with slow and obvious versions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from onesided.core.errors import ConfigError
from onesided.review.strategies import (
    MIXED,
    at_random,
    diverse,
    interleave,
    likely,
    parse_strategy,
    similar,
    uncertain,
)

RANDOM = np.random.default_rng(0)
SCORES = RANDOM.random(60).round(2)  # with ties
FEATURES = RANDOM.normal(size=(60, 5)).astype(np.float32)
OPEN = np.array([row for row in range(60) if row % 7])


def test_likely_items_come_by_score_and_ties_by_their_place() -> None:
    slow = sorted(OPEN.tolist(), key=lambda row: (-SCORES[row], row))
    assert likely(SCORES, OPEN).tolist() == slow


def test_uncertain_items_come_by_their_distance_to_the_threshold() -> None:
    slow = sorted(OPEN.tolist(), key=lambda row: (abs(SCORES[row] - 0.4), row))
    assert uncertain(SCORES, OPEN, threshold=0.4).tolist() == slow


def test_random_items_keep_their_order_when_some_are_answered() -> None:
    before = at_random(60, OPEN, seed=3).tolist()
    assert sorted(before) == OPEN.tolist()
    left = np.array([row for row in OPEN if row not in before[:10]])
    assert at_random(60, left, seed=3).tolist() == before[10:]
    assert at_random(60, OPEN, seed=4).tolist() != before


def test_random_order_prefers_no_item() -> None:
    # Each of 10 items is first about as often as any other: binomial, five standard deviations.
    rows = np.arange(10)
    first = np.array([at_random(10, rows, seed=seed)[0] for seed in range(2000)])
    counts = np.bincount(first, minlength=10)
    assert np.abs(counts - 200).max() < 5 * np.sqrt(2000 * 0.1 * 0.9)


def slow_diverse(answered: list[int], count: int, threshold: float) -> list[int]:
    ordered = sorted(OPEN.tolist(), key=lambda row: (-SCORES[row], row))
    called = [row for row in ordered if SCORES[row] > threshold]
    among = ordered[: max(len(called), 2 * count)]
    chosen: list[int] = []
    while len(chosen) < min(count, len(among)):
        known = [*answered, *chosen]
        left = [row for row in among if row not in chosen]
        if not known:
            chosen.append(left[0])
            continue
        gaps = [min(np.linalg.norm(FEATURES[row] - FEATURES[other]) for other in known)
                for row in left]  # fmt: skip
        chosen.append(left[int(np.argmax(gaps))])
    return chosen


@pytest.mark.parametrize("answered", [[], [0, 7, 14]])
@pytest.mark.parametrize("threshold", [0.5, 0.99])
def test_diverse_items_are_farthest_from_all_that_were_chosen_or_answered(
    answered: list[int], threshold: float
) -> None:
    known = np.array(answered, np.int64)
    found = diverse(SCORES, FEATURES, OPEN, known, count=4, threshold=threshold)
    assert found.tolist() == slow_diverse(answered, 4, threshold)


def test_a_diverse_batch_is_of_items_that_are_called_positive() -> None:
    # The farthest items of the pool are those that look like nothing else, and they score low.
    scores = np.r_[np.full(40, 0.9), np.full(20, 0.1)]
    features = np.r_[RANDOM.normal(size=(40, 3)), 100 * RANDOM.normal(size=(20, 3))]
    none = np.zeros(0, np.int64)
    found = diverse(scores, features, np.arange(60), none, count=10, threshold=0.5)
    assert found.max() < 40


def test_a_diverse_batch_is_not_ten_times_the_same() -> None:
    # Nine in ten of the likeliest items are copies of one; five kinds hide among them.
    features = np.zeros((100, 2), np.float32)
    features[::20] = [[10 * kind, -10 * kind] for kind in range(5)]
    scores = np.linspace(1, 0.5, 100)
    rows = np.arange(100)
    found = diverse(scores, features, rows, np.zeros(0, np.int64), count=10, threshold=0.4)
    assert len({tuple(features[row]) for row in found}) == 5
    assert len({tuple(features[row]) for row in likely(scores, rows)[:10]}) == 1 + 0


def test_farthest_first_is_at_most_twice_as_far_as_the_best_centres() -> None:
    # Gonzalez' bound, by trying all choices of three centres of eight points.
    from itertools import combinations

    points = FEATURES[:8]
    scores = np.linspace(1, 0, 8)
    rows = np.arange(8)

    def radius(centres: tuple[int, ...]) -> float:
        return max(min(float(np.linalg.norm(one - points[centre])) for centre in centres)
                   for one in points)  # fmt: skip

    found = diverse(scores, points, rows, np.zeros(0, np.int64), count=3, threshold=-1)
    best = min(radius(centres) for centres in combinations(range(8), 3))
    assert radius(tuple(found.tolist())) <= 2 * best + 1e-6


def test_nothing_left_gives_nothing() -> None:
    none = np.zeros(0, np.int64)
    assert not len(likely(SCORES, none))
    assert not len(uncertain(SCORES, none, threshold=0.5))
    assert not len(at_random(60, none, seed=0))
    assert not len(diverse(SCORES, FEATURES, none, none, count=3, threshold=0.5))


@given(
    some.lists(some.permutations(range(8)), min_size=1, max_size=3),
    some.lists(some.integers(1, 5), min_size=3, max_size=3),
    some.integers(0, 12),
)
def test_a_mix_shows_every_item_once_and_as_many_as_there_are(
    orders: list[list[int]], weights: list[int], count: int
) -> None:
    named = {f"s{place}": order for place, order in enumerate(orders)}
    found = interleave(named, dict(zip(named, weights, strict=False)), count)
    rows = [row for row, _ in found]
    assert len(rows) == len(set(rows)) == min(count, 8)


def test_a_mix_gives_each_strategy_its_share_at_every_length() -> None:
    orders = {name: list(range(1000 * place, 1000 * place + 1000))
              for place, name in enumerate(MIXED)}  # fmt: skip
    whole = [name for _, name in interleave(orders, MIXED, 100)]
    total = sum(MIXED.values())
    for length in range(1, 101):
        for name, weight in MIXED.items():
            assert abs(whole[:length].count(name) - length * weight / total) <= 1


def test_items_that_look_alike_are_the_nearest() -> None:
    slow = sorted(
        (row for row in range(60) if row != 5),
        key=lambda row: float(np.linalg.norm(FEATURES[row] - FEATURES[5])),
    )[:6]
    assert similar(FEATURES, 5, count=6).tolist() == slow
    assert len(similar(FEATURES[:3], 1, count=6)) == 2


def test_strategies_are_parsed() -> None:
    assert parse_strategy("mixed") == MIXED
    assert parse_strategy("likely:3, random") == {"likely": 3, "random": 1}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("likelyy", "There is no strategy 'likelyy'.*likely"),
        ("", "There is no strategy ''"),
        ("likely:0", "weight of the strategy likely is '0'"),
        ("likely:x", "weight of the strategy likely is 'x'"),
    ],
)
def test_other_words_are_refused_in_one_sentence(words: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_strategy(words)
