"""Natural breaks against trying every cut, with HolisticPU's examples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onesided.core.errors import DataError
from onesided.priors.natural_break import OUTLIER, natural_break, trend_break

SCORES = [-0.10, -0.09, -0.08, 0.0, 0.01, 0.03]


def scatter(values: np.ndarray) -> float:
    return float(((values - values.mean()) ** 2).sum()) if len(values) else 0.0


def slow_break(values: list[float]) -> tuple[float, float]:
    """Try every cut between two different numbers."""
    array = np.array(values)
    cuts = [
        (scatter(array[array <= cut]) + scatter(array[array > cut]), cut)
        for cut in sorted(set(values))[:-1]
    ]
    return min(cuts) if cuts else (0.0, values[0])


def test_two_clear_groups_fall_apart_between_them() -> None:
    found = natural_break(SCORES)
    assert found.value == -0.08
    assert found.within == pytest.approx(6.6667e-4, abs=1e-8)
    assert [score > found.value for score in SCORES] == [False, False, False, True, True, True]


def test_the_order_of_the_numbers_is_irrelevant() -> None:
    assert natural_break(SCORES[::-1]) == natural_break(SCORES)


@given(st.lists(st.integers(-50, 50).map(lambda n: n / 10), min_size=2, max_size=12))
def test_no_cut_scatters_less(values: list[float]) -> None:
    found = natural_break(values)
    least, _ = slow_break(values)
    assert found.within == pytest.approx(least, abs=1e-9)
    array = np.array(values)
    parts = array[array <= found.value], array[array > found.value]
    assert scatter(parts[0]) + scatter(parts[1]) == pytest.approx(least, abs=1e-9)


@given(
    st.lists(st.integers(-20, 20).map(float), min_size=2, max_size=12, unique=True),
    st.floats(0.5, 4),
    st.integers(-1000, 1000),
)
def test_scale_and_offset_move_the_break_along(
    values: list[float], scale: float, offset: int
) -> None:
    moved = natural_break([scale * value + offset for value in values])
    assert moved.within == pytest.approx(scale**2 * natural_break(values).within, abs=1e-6)


def test_a_large_offset_costs_no_accuracy() -> None:
    found = natural_break(np.array(SCORES) + 1e6)
    assert found.value == 1e6 - 0.08
    assert found.within == pytest.approx(6.6667e-4, rel=1e-3)


def test_equal_numbers_have_no_upper_group() -> None:
    found = natural_break([0.3] * 5)
    assert (found.value, found.within) == (0.3, 0.0)


def test_one_outlier_takes_the_upper_group_for_itself() -> None:
    assert natural_break([*SCORES, 0.30]).value == 0.03


def test_the_guard_leaves_outliers_out_but_still_labels_them() -> None:
    scores = [*SCORES, 0.30]
    cut = trend_break(scores)
    assert cut.value == -0.08
    assert [score for score in scores if score > cut.value] == [0.0, 0.01, 0.03, 0.30]


def test_a_break_at_or_below_zero_needs_no_guard() -> None:
    scores = [-0.3, -0.3, 0.0, 0.5, 0.5]
    assert natural_break(scores).value == 0.0
    assert trend_break(scores) == natural_break(scores)


def test_if_only_outliers_remain_the_first_break_stands() -> None:
    scores = [0.1, 0.2, 0.9]
    assert trend_break(scores) == natural_break(scores)
    assert pytest.approx(0.02222, abs=1e-5) == OUTLIER


@pytest.mark.parametrize("values", [[], [1.0], [1.0, float("nan")]])
def test_fewer_than_two_numbers_are_refused(values: list[float]) -> None:
    with pytest.raises(DataError, match="at least two finite numbers"):
        natural_break(values)


def test_a_single_usual_score_makes_no_break() -> None:
    scores = [1.0, 6.0, 100.0]
    assert trend_break(scores, outlier=5.0) == natural_break(scores)
