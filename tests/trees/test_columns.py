from itertools import islice

import numpy as np
import pytest

from onesided.trees.columns import (
    AT_ONCE,
    count_left,
    cut_range,
    divide,
    draw,
    gather,
    last_on_the_left,
    random_number,
)
from tests.trees.plain_tree import between, split_mix


def test_random_numbers_are_those_of_split_mix() -> None:
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert list(islice(split_mix(1234567), 3)) == published
    state = np.array([1234567], dtype=np.uint64)
    assert [draw(state) for _ in range(3)] == [(word >> 11) / 2**53 for word in published]


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_cuts_keep_away_from_the_outermost_values(kind: type) -> None:
    values: np.ndarray = np.array([100, 250, 0, 200, 100, 250, 0, 120]).astype(kind)
    assert cut_range(values) == pytest.approx((40, 230))  # 0 + .4 x 100, 200 + .6 x 50


def test_two_values_are_cut_in_the_middle_fifth() -> None:
    assert cut_range(np.array([3, 8, 8, 3], dtype=np.uint8)) == pytest.approx((5, 6))


def test_a_constant_feature_leaves_no_room_for_a_cut() -> None:
    low, high = cut_range(np.full(9, 200, dtype=np.uint8))
    assert low == high


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_the_range_is_that_of_the_two_outer_distinct_values_on_each_side(kind: type) -> None:
    random = np.random.default_rng(0)
    for size in (2, 3, 5, 40):
        outer = np.append(random.integers(0, 9, size=size), [0, 255])
        values: np.ndarray = outer.astype(kind)
        assert cut_range(values) == between(values)


def test_neighbouring_floats_can_still_be_told_apart() -> None:
    low, infinity = np.float32(1e30), np.float32(np.inf)
    values = np.array([low, np.nextafter(low, infinity)], dtype=np.float32)
    start, end = cut_range(values)
    assert start < end
    assert (count_left(values, start), count_left(values, end)) == (1, 1)


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_a_value_on_the_cut_goes_left(kind: type) -> None:
    column: np.ndarray = np.array([4, 2, 3, 2]).astype(kind)
    assert count_left(column, 2.0) == 2
    rows = np.arange(4, dtype=np.uint32)
    divide(column, rows, 3.0, np.empty_like(rows))
    assert rows.tolist() == [1, 2, 3, 0]


def test_rows_are_divided_in_place_and_keep_their_order() -> None:
    column = np.array([5, 1, 9, 2, 8, 3], dtype=np.uint8)
    rows = np.array([5, 4, 1, 2, 3], dtype=np.uint32)
    divide(column, rows, 4.0, np.empty_like(rows))
    assert rows.tolist() == [5, 1, 3, 4, 2]


def test_random_numbers_can_be_foreseen_without_drawing_them() -> None:
    state = np.array([1234567], dtype=np.uint64)
    foreseen = [random_number(state, ahead) for ahead in range(5)]
    assert state.tolist() == [1234567]
    assert [draw(state) for _ in range(5)] == foreseen


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
@pytest.mark.parametrize("features", range(1, AT_ONCE + 1))
def test_columns_are_fetched_together_as_one_by_one(features: int, kind: type) -> None:
    random = np.random.default_rng(0)
    columns: np.ndarray = random.integers(0, 256, size=(9, 50)).astype(kind)
    rows = np.sort(random.permutation(50)[:31]).astype(np.uint32)
    chosen = random.permutation(9)[:features]
    values: np.ndarray = np.zeros((AT_ONCE, 50), kind)
    gather(columns, chosen, rows, values)
    assert np.array_equal(values[:features, :31], columns[chosen][:, rows])
    assert not values[features:].any()
    assert not values[:, 31:].any()


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
@pytest.mark.parametrize("size", [1, 127, 128, 129, 256, 1000])
def test_values_are_counted_whatever_their_number(size: int, kind: type) -> None:
    values: np.ndarray = np.random.default_rng(size).integers(0, 256, size=size).astype(kind)
    for cut in (0.0, 99.5, 100.0, 254.9, 255.0):
        assert count_left(values, cut) == int((values <= np.float64(cut)).sum())
    assert count_left(np.zeros(size, kind), 0.0) == size


def test_a_cut_just_below_a_float_is_not_rounded_onto_it() -> None:
    value = np.float32(0.1)
    below = np.nextafter(float(value), 0.0)
    assert np.float32(below) == value
    values = np.array([value, 0.05], dtype=np.float32)
    assert last_on_the_left(values, below) == np.nextafter(value, np.float32(0))
    assert count_left(values, below) == 1
    assert count_left(values, float(value)) == 2
