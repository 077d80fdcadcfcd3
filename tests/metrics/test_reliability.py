import numpy as np
import pytest

from onesided.core.errors import DataError
from onesided.metrics.reliability import reliability

TWICE = 0.5  # of what they say are probabilities that are twice too high


def drawn(seed: int, items: int, *, right: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities and classes; wrong ones are twice as high as they should be."""
    random = np.random.default_rng(seed)
    probabilities = random.random(items)
    true = probabilities if right else TWICE * probabilities
    return probabilities, random.random(items) < true


def slow_error(probabilities: np.ndarray, positive: np.ndarray, size: int) -> float:
    order = np.argsort(probabilities)
    total = 0.0
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        total += len(rows) * abs(probabilities[rows].mean() - positive[rows].mean())
    return total / len(order)


def test_the_error_is_the_mean_gap_of_ten_equal_bins() -> None:
    probabilities, positive = drawn(0, 400, right=False)
    found = reliability(probabilities, positive)
    assert found.error == pytest.approx(slow_error(probabilities, positive, 40))
    assert [each.items for each in found.bins] == [40] * 10
    assert sum(each.share * each.items for each in found.bins) == pytest.approx(positive.sum())


def test_intervals_hold_the_true_error_of_wrong_probabilities() -> None:
    # Twice too high, uniform: the true gap of every item is half of its probability.
    held = 0
    for seed in range(60):
        found = reliability(*drawn(seed, 500, right=False))
        held += found.low <= 0.25 <= found.high
    assert held >= 60 * (0.95 - 2 * np.sqrt(0.95 * 0.05 / 60))


def test_right_probabilities_show_no_more_than_chance() -> None:
    found = [reliability(*drawn(seed, 500, right=True)) for seed in range(30)]
    errors = [each.error for each in found]
    assert np.mean(errors) == pytest.approx(np.mean([each.by_chance for each in found]), rel=0.2)
    assert np.mean([each.low for each in found]) < 0.01


def test_weights_count_an_item_as_often_as_it_stands_for() -> None:
    probabilities, positive = drawn(3, 200, right=False)
    weights = np.where(probabilities > 0.5, 3.0, 1.0)
    rows = np.repeat(np.arange(200), weights.astype(int))
    weighed = reliability(probabilities, positive, weights)
    mean = sum(each.items for each in weighed.bins)
    assert mean == 200
    gap = np.average(probabilities - positive, weights=weights)
    assert gap == pytest.approx((probabilities - positive)[rows].mean())
    assert weighed.error >= abs(gap) - 1e-12


def test_equal_probabilities_are_one_bin() -> None:
    found = reliability(np.full(100, 0.3), np.arange(100) < 30)
    assert len(found.bins) == 1
    assert found.error == pytest.approx(0, abs=1e-12)


def test_a_handful_of_items_gives_no_error() -> None:
    with pytest.raises(DataError, match="needs 50 items of known class; got 49"):
        reliability(np.full(49, 0.3), np.zeros(49, bool))


def test_an_item_that_weighs_more_than_all_others_is_resampled_like_them() -> None:
    weights = np.ones(60)
    weights[0] = 1e6
    found = reliability(np.full(60, 0.5), np.arange(60) % 2 == 0, weights)
    assert found.error == pytest.approx(0.5, abs=1e-3)
    # Most resamples hold it and have its error; without it they would have nearly none.
    assert found.low == pytest.approx(0.5, abs=1e-3)
