"""Which rows of a table are nearly the same: numbers with a little noise, texts typed again.

Numbers are nearly the same within a ten thousandth of their column's standard deviation. That is
evidence only where several columns hold numbers that hardly repeat: two people of one age and town
are two people. Texts are nearly the same if their words are, whatever the case, spaces and stops.

Equal rows are no evidence either where a table is coarse. With x_v rows of n that hold the value v
in column j, two rows agree there by chance with q_j = sum_v x_v (x_v - 1) / (n (n - 1)), and in all
columns with the product of all q_j if columns are independent. Columns that go together agree more
often: in Titanic, LED digits, Hayes-Roth, mammographic masses, breast cancer and solar flares the
share of equal pairs is one to three times that product. Further up, copies and columns that go
together closely cannot be told apart, and equal rows stay copies.
"""

import re

import numpy as np
from jaxtyping import Float, Float64, Int64, Shaped

from onesided.data.problem.samples import CHUNK_ITEMS

TOLERANCE, ROUNDING, MOST = 1e-4, 1e-5, 1e-3
"""Largest difference: a part of the column's standard deviation, a part of its mean, and, as
a part of the deviation again, the most of both."""
FEWEST_COLUMNS = 3
"""Columns of numbers that hardly repeat, for nearly equal numbers to be evidence."""
DISTINCT = 0.25
"""A column hardly repeats if more of its values than this share differ."""
SAMPLE = 2000
"""Rows by which columns are judged."""
SEARCHED = 4
"""Columns by which the nearest rows are searched; all of them decide."""
NEIGHBOURS = 4
"""Nearest rows that are compared with a row. Many copies of one are found in a chain."""
BY_CHANCE = 3.0
"""Times as many equal pairs as independent columns would make, up to which chance explains them."""
WORDS = 3
"""Shorter strings are names and signs, such as + and -, and are compared as they are."""

Pairs = Int64[np.ndarray, "pairs 2"]


def near_rows(values: Shaped[np.ndarray, "n columns"]) -> Pairs:
    """Return pairs of rows that are nearly the same.

    Costs a tree of a few columns, and memory for the numbers in double precision.
    """
    numbers, rest = _divided(values)
    gaps = np.isnan(numbers)
    numbers = np.where(gaps, 0, numbers) if gaps.any() else numbers
    some = numbers[np.unique(np.linspace(0, len(numbers) - 1, SAMPLE).astype(np.int64))]
    distinct = np.array([len(np.unique(column)) for column in some.T], np.int64)
    searched = np.flatnonzero(distinct > DISTINCT * len(some))
    if len(searched) < FEWEST_COLUMNS:
        rest, numbers = [*rest, *numbers.T], numbers[:, :0]
    key = _numbered([*rest, *gaps.T[gaps.any(axis=0)]], len(values))
    if numbers.shape[1]:
        return _near_numbers(numbers, searched[:SEARCHED], key)
    order = np.argsort(key, kind="stable")
    pairs = np.stack([order[:-1], order[1:]], axis=1)
    same: np.ndarray = pairs[key[pairs[:, 0]] == key[pairs[:, 1]]]
    return same


def equal_by_chance(values: Shaped[np.ndarray, "n columns"], times: Int64[np.ndarray, "n"]) -> bool:
    """Return whether rows of a table are equal because few different rows are possible.

    Two passengers of one class, sex and age group are two passengers. Where a column names most of
    the different rows, as one of texts does, equal rows are copies: it does not agree by chance.

    Args:
        values: The different rows.
        times: How often the table holds each.
    """
    equal, expected = _equal_pairs(times), BY_CHANCE
    key = np.zeros(len(values), np.int64)
    for column in values.T:
        cells = column.astype(str) if column.dtype == object else column
        number = np.unique(cells, return_inverse=True)[1]
        if 2 * number.max() >= len(values):
            return False
        before, key = key.max(), _numbered([key, number], len(values))
        if key.max() == before:  # earlier columns determine it, as they do the last of one-hot ones
            continue
        expected *= _equal_pairs(np.bincount(number, weights=times))
        if expected < equal:
            return False
    return True


def _equal_pairs(counts: Shaped[np.ndarray, "values"]) -> float:
    """Return the share of pairs of rows that are equal, from how many rows hold each value."""
    total = float(counts.sum())
    return float((counts * (counts - 1.0)).sum()) / (total * (total - 1))


def measured_numbers(values: Shaped[np.ndarray, "n columns"]) -> Float64[np.ndarray, "n numbers"]:
    """Return the columns of numbers that hardly repeat and have no gaps, each of unit deviation.

    None of them where they are too few to be evidence.
    """
    numbers = _divided(values)[0].astype(np.float64)
    distinct = np.array([len(np.unique(column)) for column in numbers.T], np.int64)
    spread = numbers.std(axis=0)
    kept = (distinct > DISTINCT * len(numbers)) & np.isfinite(spread) & (spread > 0)
    if kept.sum() < FEWEST_COLUMNS:
        kept[:] = False
    measured: np.ndarray = numbers[:, kept] / spread[kept]
    return measured


def plain_words(text: str) -> str:
    """Return the words of a text in small letters; a string of few words as it is."""
    words = re.findall(r"\w+", text.casefold())
    return " ".join(words) if len(words) >= WORDS else text


def _divided(
    values: Shaped[np.ndarray, "n columns"],
) -> tuple[Float[np.ndarray, "n numbers"], list[Shaped[np.ndarray, "n"]]]:
    """Return the columns of numbers, and each other column with its texts in plain words."""
    if values.dtype != object:
        return values, []
    is_number = [all(isinstance(cell, float) for cell in column) for column in values.T]
    rest = [
        np.array(["" if cell is None else "=" + plain_words(str(cell)) for cell in column])
        for column, numeric in zip(values.T, is_number, strict=True)
        if not numeric
    ]
    return values[:, np.array(is_number, bool)].astype(np.float64), rest


def _numbered(columns: list[Shaped[np.ndarray, "n"]], count: int) -> Int64[np.ndarray, "n"]:
    """Return a number for each row; rows that agree in all these columns share it."""
    key = np.zeros(count, np.int64)
    for column in columns:
        values = np.unique(column, return_inverse=True)[1]
        key = np.unique(key * (values.max(initial=0) + 1) + values, return_inverse=True)[1]
    return key


def _tolerance(numbers: Float[np.ndarray, "n numbers"]) -> Float64[np.ndarray, "numbers"]:
    spread = numbers.std(axis=0, dtype=np.float64)
    near = np.minimum(
        TOLERANCE * spread + ROUNDING * np.abs(numbers.mean(axis=0, dtype=np.float64)),
        MOST * spread,
    )
    tolerance: np.ndarray = np.maximum(near, np.finfo(np.float64).tiny)
    return tolerance


def _near_numbers(
    numbers: Float[np.ndarray, "n numbers"],
    searched: Int64[np.ndarray, "columns"],
    key: Int64[np.ndarray, "n"],
) -> Pairs:
    """Return pairs of rows of one key whose numbers all differ by their tolerance at most."""
    from scipy.spatial import cKDTree

    tolerance = _tolerance(numbers)
    points = np.column_stack([numbers[:, searched] / tolerance[searched], 10.0 * key])
    count = min(NEIGHBOURS + 1, len(points))
    found = cKDTree(points).query(points, k=count, p=np.inf, distance_upper_bound=1.0)
    one, column = np.nonzero(np.isfinite(found[0]))
    pairs = np.stack([one, np.asarray(found[1])[one, column]], axis=1)
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    near = [
        (np.abs(numbers[part[:, 0]] - numbers[part[:, 1]]) <= tolerance).all(axis=1)
        for part in np.array_split(pairs, len(pairs) // CHUNK_ITEMS + 1)
    ]
    found_near: np.ndarray = pairs[np.concatenate(near)]
    return found_near
