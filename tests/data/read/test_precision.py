"""Numbers that single precision merges are told: a perfect column must not vanish in silence."""

import numpy as np

from onesided.data.read.arrays import from_arrays
from onesided.data.read.precision import merged_columns


def told(column: np.ndarray) -> tuple[str, ...]:
    exact = np.column_stack([column, np.linspace(0, 1, len(column))])
    return merged_columns(exact, exact.astype(np.float32), ["time", "other"])


def test_times_of_one_minute_are_merged_and_named() -> None:
    (sentence,) = told(1.7e9 + np.arange(60.0))
    assert sentence.startswith("Numbers of 'time' differ by less than seven digits tell")
    assert told(np.arange(60.0) * 1e-320)


def test_ordinary_numbers_are_not() -> None:
    assert told(np.arange(60.0)) == ()
    assert told(np.arange(60.0) * 1e30 + 1e31) == ()
    assert told(np.full(60, 1.7e9)) == ()
    assert told(1e6 + np.arange(60.0)) == ()


def test_arrays_are_told_when_they_are_read() -> None:
    values = np.column_stack([1.7e9 + np.arange(60.0), np.arange(60.0)])
    data = from_arrays(values, np.arange(60) < 20)
    assert any("number 0" in notice for notice in data.notices)
    assert not any(
        "digits" in notice for notice in from_arrays(values[:, 1:], np.arange(60) < 20).notices
    )
