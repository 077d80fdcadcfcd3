"""Passes over one feature of a node's rows, compiled, and the random numbers that choose it.

A column is shared by all trees and lies in main memory, which is where a tree spends its time: a
node of some hundred rows waits for nearly every line of the column. So columns are fetched four
at a time, which waits for four at once, and everything after that works on a compact copy.
"""

from typing import Any

import numpy as np
from jaxtyping import Int64, Shaped, UInt32, UInt64

from onesided.kernels.compiled import compiled

AT_ONCE = 4
"""Columns fetched together; with eight, more time goes into writing than is saved."""
BLOCK = 128
"""Comparisons that are counted in eight bits before they are added up."""

# SplitMix64 (Steele, Lea, Flood 2014): one word of state, the same numbers on every machine.
GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
BY_30, BY_27, BY_31, BY_11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


@compiled
def random_number(state: UInt64[np.ndarray, "1"], ahead: int) -> float:
    """Return the random number in [0, 1) after so many others, without drawing any of them."""
    word = state[0] + GAMMA * np.uint64(ahead + 1)
    word = (word ^ (word >> BY_30)) * FIRST
    word = (word ^ (word >> BY_27)) * SECOND
    word = word ^ (word >> BY_31)
    return float(word >> BY_11) * 2.0**-53


@compiled
def draw(state: UInt64[np.ndarray, "1"]) -> float:
    """Return the next random number in [0, 1)."""
    number = random_number(state, 0)
    state[0] += GAMMA
    return number


@compiled
def gather(
    columns: Shaped[np.ndarray, "features rows"],
    features: Int64[np.ndarray, "k"],
    rows: UInt32[np.ndarray, "n"],
    values: Shaped[np.ndarray, "at_least_k at_least_n"],
) -> None:
    """Put a node's values of a few features side by side, for the passes that follow."""
    if len(features) == AT_ONCE:
        first, second = columns[features[0]], columns[features[1]]
        third, fourth = columns[features[2]], columns[features[3]]
        for i in range(len(rows)):
            row = rows[i]
            values[0, i], values[1, i] = first[row], second[row]
            values[2, i], values[3, i] = third[row], fourth[row]
        return
    for k in range(len(features)):
        column = columns[features[k]]
        for i in range(len(rows)):
            values[k, i] = column[rows[i]]


@compiled
def cut_range(values: Shaped[np.ndarray, "n"]) -> tuple[float, float]:
    """Return between which values a cut may fall; equal ends mean a constant feature.

    PUET: [a + .4 (b - a), c + .6 (e - c)] for the two smallest (a < b) and the two largest
    (c < e) distinct values, so that no child is empty. In double precision: twice 200 is
    144 in the eight bits of a pixel.
    """
    # Written as choices between two values, pixels are compared 32 at a time.
    lowest = highest = values[0]
    for value in values:
        lowest = value if value < lowest else lowest
        highest = value if value > highest else highest
    second, second_last = highest, lowest
    for value in values:
        above = value if value > lowest else highest
        second = above if above < second else second
        below = value if value < highest else lowest
        second_last = below if below > second_last else second_last
    a, b, c, e = float(lowest), float(second), float(second_last), float(highest)
    return a + 0.4 * (b - a), c + 0.6 * (e - c)


@compiled
def last_on_the_left(values: Shaped[np.ndarray, "n"], cut: float) -> float:
    """Return the largest number of the values' own type that is not above a cut.

    Comparing within a type treats 32 pixels at a time; in double precision it would be 4. Cuts
    of pixels are not negative.
    """
    kind = values.dtype.type
    limit: float = kind(cut)
    if limit > cut:  # a pixel is rounded down, a float32 to the nearest
        limit = kind(np.nextafter(limit, np.float32(-np.inf)))
    return limit


@compiled
def count_left(values: Shaped[np.ndarray, "n"], cut: float) -> int:
    """Return how many values lie on the left of a cut, or on it."""
    limit = last_on_the_left(values, cut)
    count = 0
    for start in range(0, len(values), BLOCK):
        few: Any = np.uint8(0)
        for value in values[start : start + BLOCK]:
            few = np.uint8(few + (value <= limit))
        count += few
    return count


@compiled
def divide(
    column: Shaped[np.ndarray, "rows"],
    rows: UInt32[np.ndarray, "n"],
    cut: float,
    spare: UInt32[np.ndarray, "rows"],
) -> None:
    """Move the rows that go left to the front; both sides keep their order."""
    left = right = 0
    for row in rows:
        # Written to both sides, of which one advances: a branch would be guessed wrong too often.
        rows[left] = spare[right] = row
        goes_left = column[row] <= cut
        left += goes_left
        right += not goes_left
    for i in range(right):  # assigning a slice would cost ten seconds of compilation
        rows[left + i] = spare[i]
