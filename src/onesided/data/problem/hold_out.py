"""A test part for data sets whose publisher has none.

Samples that belong together must not be divided: a neighbour of a training building shows
the same roofs, the same light and the same flood, so a network that knows the one has half
seen the other, and the test would measure memory. `data.grouping` keeps groups whole.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from onesided.core.errors import ConfigError
from onesided.data.problem.samples import Source


@dataclass(frozen=True)
class HeldOut:
    """Rows of the samples to train on and to test on, in the order in which they were drawn."""

    train: Int64[np.ndarray, "n"]
    test: Int64[np.ndarray, "m"]


def hold_out(source: Source, grouping: str | None, random: np.random.RandomState) -> HeldOut | None:
    """Divide the samples of a source into training and test, or None if it has a test part.

    Args:
        source: The data set.
        grouping: Kind of group that stays whole, or None to shuffle sample by sample.
        random: Numpy's legacy generator, whose stream is frozen for ever.
    """
    if source.test is not None or source.train_share is None:
        if grouping is not None:
            raise ConfigError(
                f"data.grouping is {grouping!r}, but this data set comes divided by its "
                "publisher. Leave data.grouping out."
            )
        return None
    if grouping is None:
        return _divide_samples(len(source.train), source.train_share, random)
    known = source.train.groups
    if grouping not in known:
        kinds = " or ".join(repr(kind) for kind in known)
        remedy = f"Choose {kinds}, or leave" if known else "Leave"
        raise ConfigError(
            f"data.grouping is {grouping!r}, but this data set has no such groups. "
            f"{remedy} data.grouping out to divide sample by sample."
        )
    return _divide_groups(known[grouping], grouping, source.train_share, random)


def _divide_samples(count: int, share: float, random: np.random.RandomState) -> HeldOut:
    """Shuffle, and cut after the share, rounded down: the paper's authors' division."""
    order = np.arange(count)
    random.shuffle(order)
    cut = math.floor(count * share + 1e-9)  # 0.6 of 94205 is 56523, whatever floats make of it
    return HeldOut(order[:cut], order[cut:])


def _divide_groups(
    groups: np.ndarray, kind: str, share: float, random: np.random.RandomState
) -> HeldOut:
    """Shuffle the groups, and cut between the two where the share is met most nearly."""
    names, group_of = np.unique(groups, return_inverse=True)
    if len(names) < 2:
        raise ConfigError(
            f"All samples are of one {kind}, {names[0]}, so no other {kind} is left to test on. "
            "Choose another data.grouping, or leave it out."
        )
    order = np.arange(len(names))
    random.shuffle(order)
    reached = np.cumsum(np.bincount(group_of)[order])[:-1]
    cut = int(np.abs(reached - share * len(groups)).argmin()) + 1
    in_train = np.isin(group_of, order[:cut])
    return HeldOut(np.flatnonzero(in_train), np.flatnonzero(~in_train))
