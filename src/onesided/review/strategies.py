"""Which items to look at next: pure functions of scores, features and what was answered.

Rows are those of the pool. Every function gets the rows that are open, in ascending order, and
returns some of them, the first to be shown first. The same arguments give the same rows.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, Float64, Int64

from onesided.core.config import nearest
from onesided.core.errors import ConfigError
from onesided.core.rng import numpy_generator

Rows = Int64[np.ndarray, "_"]
LIKELY, UNCERTAIN, DIVERSE, RANDOM = "likely", "uncertain", "diverse", "random"
STRATEGIES = (LIKELY, UNCERTAIN, DIVERSE, RANDOM)
MIXED = {LIKELY: 4, UNCERTAIN: 1}
"""Four in five for finding positives, and one where an answer changes a decision. With random and
diverse items in it, as it was before, a mix finds fewer: docs/benchmarks/review.md."""
FEWEST_AMONG, MOST_AMONG = 2, 2000
"""A diverse batch is chosen among at least so many times as many, and at most so many, items."""
REMEMBERED = 2000
"""Answered items that a diverse batch keeps away from, the latest."""


def parse_strategy(words: str) -> dict[str, int]:
    """Return strategies with their weights: `mixed`, `likely`, or `likely:3,random:1`."""
    if words.strip() == "mixed":
        return dict(MIXED)
    found: dict[str, int] = {}
    for part in words.split(","):
        name, _, weight = part.strip().partition(":")
        if name not in STRATEGIES:
            known = ("mixed", *STRATEGIES)
            raise ConfigError(
                f"There is no strategy '{name}'; there are {', '.join(known)}, and mixes such as "
                f"likely:3,random:1.{nearest(name, known)}"
            )
        if not (weight or "1").isdecimal() or not 1 <= int(weight or 1) <= 1000:
            raise ConfigError(
                f"The weight of the strategy {name} is '{weight}'; expected a whole number from 1 "
                "to 1000, as in likely:3,random:1."
            )
        found[name] = int(weight or 1)
    return found


def likely(scores: Float64[np.ndarray, "n"], open_rows: Rows) -> Rows:
    """Return the open rows by their scores, the highest first."""
    return open_rows[np.argsort(-scores[open_rows], kind="stable")]


def uncertain(scores: Float64[np.ndarray, "n"], open_rows: Rows, *, threshold: float) -> Rows:
    """Return the open rows by the distance of their scores to the threshold, the nearest first."""
    return open_rows[np.argsort(np.abs(scores[open_rows] - threshold), kind="stable")]


def at_random(total: int, open_rows: Rows, *, seed: int) -> Rows:
    """Return the open rows in the random order of a pool of so many rows.

    What was answered does not change the order of what is left, so a batch that is asked for
    again is the same batch.
    """
    order = numpy_generator(seed, "review").permutation(total)
    return order[np.isin(order, open_rows)].astype(np.int64)


def diverse(
    scores: Float64[np.ndarray, "n"],
    features: Float[np.ndarray, "n d"],
    open_rows: Rows,
    answered: Rows,
    *,
    count: int,
    threshold: float,
) -> Rows:
    """Return likely rows that are far apart in feature space, and far from what was answered.

    Farthest-first traversal (Gonzalez 1985), which is at most twice as far from a best choice of
    centres as any choice can be. It runs among the open rows that are called positive (a few more
    where these are few): in the whole pool the farthest items are those that look like nothing
    else. Without answers it starts from the likeliest.
    """
    called = int((scores[open_rows] > threshold).sum())
    among = likely(scores, open_rows)[: min(max(called, FEWEST_AMONG * count), MOST_AMONG)]
    if not len(among):
        return among
    points = features[among].astype(np.float64)
    if len(answered):
        known = features[answered[-REMEMBERED:]].astype(np.float64)
        distance = _squared_distances(points, known).min(axis=1)
    else:
        distance = np.full(len(among), np.inf)
    chosen: list[int] = []
    for _ in range(min(count, len(among))):
        place = int(distance.argmax())  # of equal ones the likeliest
        chosen.append(place)
        distance = np.minimum(distance, _squared_distances(points, points[[place]])[:, 0])
        distance[chosen] = -1.0
    return among[chosen]


def _squared_distances(
    points: Float64[np.ndarray, "n d"], others: Float64[np.ndarray, "m d"]
) -> Float64[np.ndarray, "n m"]:
    squares = (points**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)
    distances: np.ndarray = np.maximum(squares - 2 * points @ others.T, 0.0)
    return distances


def interleave(
    orders: Mapping[str, Sequence[int]], weights: Mapping[str, int], count: int
) -> list[tuple[int, str]]:
    """Return rows of several orders in turn, by weights, each row once, with its strategy.

    At every place the strategy comes that is farthest behind its share (Webster's method).
    """
    waiting = {name: iter(orders[name]) for name in orders}
    given = dict.fromkeys(orders, 0)
    taken: dict[int, str] = {}
    while waiting and len(taken) < count:
        name = min(waiting, key=lambda each: (given[each] + 0.5) / weights[each])
        row = next((row for row in waiting[name] if int(row) not in taken), None)
        if row is None:
            del waiting[name]
        else:
            taken[int(row)] = name
            given[name] += 1
    return list(taken.items())


def similar(features: Float[np.ndarray, "n d"], row: int, *, count: int) -> Rows:
    """Return the rows whose features are nearest to those of one row, the nearest first."""
    distance = ((features - features[row]) ** 2).sum(axis=1)
    distance[row] = np.inf
    nearest_rows = np.argsort(distance, kind="stable")[: min(count, len(features) - 1)]
    return nearest_rows.astype(np.int64)
