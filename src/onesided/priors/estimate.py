"""What every prior estimator returns, its checks of input, and when two estimates disagree.

The class prior is the share of positives among the unlabelled. P and U alone do not determine
it: every estimator needs an assumption (here: some region holds positives only), so a second
estimate by another method is useful.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from onesided.core.errors import ConfigError, DataError

NOTABLE_DIFFERENCE = 0.1
"""Two estimates further apart than this lead to visibly different classifiers."""


@dataclass(frozen=True)
class PriorEstimate:
    """A class prior with an interval for its sampling noise.

    The interval shows how much the value would change with other samples of the same size. It
    does not show the bias of the method: where positives and negatives overlap, every estimator
    here is biased high, and its interval too. Where nearly all of U is positive, kernel means may
    be far too low; `is_distinct` is then False.

    Attributes:
        value: Estimated share of positives among the unlabelled, between `low` and `high`.
        method: Name of the estimator for people.
        n_positive: Labelled positives used.
        n_unlabelled: Unlabelled samples used.
        notes: What a reader should know before using the number, in plain sentences.
        reachable: Smallest and largest value that this estimator can return.
        is_distinct: False where U hardly differs from P, so that only the interval counts.
    """

    value: float
    low: float
    high: float
    method: str
    n_positive: int
    n_unlabelled: int
    notes: tuple[str, ...] = ()
    reachable: tuple[float, float] = (0.0, 1.0)
    is_distinct: bool = True

    def __post_init__(self) -> None:
        assert 0 <= self.low <= self.value <= self.high <= 1

    def __str__(self) -> str:
        return f"{self.method} says {self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def agreement(estimates: Iterable[PriorEstimate]) -> list[str]:
    """Return one warning per pair that disagrees and per value at the end of its range.

    Two estimates disagree when their intervals do not overlap or their values differ by
    more than 0.1. No warning means that nothing contradicts the estimates, not that they are
    right: KM and BBE are both biased high when classes overlap.
    """
    listed = list(estimates)
    warnings = [text for estimate in listed if (text := range_warning(estimate))]
    for one, other in combinations(listed, 2):
        if one.high < other.low or other.high < one.low:
            reason = "the intervals do not overlap"
        elif not (one.is_distinct and other.is_distinct):
            continue  # a meaningless value contradicts nothing
        elif abs(one.value - other.value) > NOTABLE_DIFFERENCE:
            reason = f"the values differ by more than {NOTABLE_DIFFERENCE}"
        else:
            continue
        warnings.append(
            f"{one}, {other}: {reason}. Try methods that need no prior, or count the "
            "positives in a small random part of the unlabelled samples."
        )
    return warnings


def range_warning(estimate: PriorEstimate) -> str:
    """Return a sentence if the value is the smallest or largest that its method can return."""
    smallest, largest = estimate.reachable
    if largest < 1 and estimate.value >= largest - 1e-9:
        return (
            f"{estimate.method} cannot return more than {largest:.4f} and has returned that: "
            "the true prior may be anything from there to 1."
        )
    if smallest > 0 and estimate.value <= smallest + 1e-9:
        return (
            f"{estimate.method} cannot return less than {smallest:.4f} and has returned that: "
            "the true prior may be 0."
        )
    return ""


def as_numbers(values: ArrayLike, name: str) -> np.ndarray:
    """Return an array of finite numbers, one row per sample, or refuse the values."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise DataError(f"The {name} must be one array; got rows of different length.") from None
    if array.dtype.kind not in "biuf":
        raise DataError(f"The {name} must be numbers; got an array of {array.dtype}.")
    if array.ndim == 0 or array.size == 0:
        raise DataError(
            f"The {name} must be an array with at least one sample; got shape {array.shape}."
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        bad = int((~np.isfinite(array.reshape(len(array), -1))).any(axis=1).sum())
        raise DataError(
            f"{bad} of {len(array)} {name} hold NaN or infinity; remove or repair them first."
        )
    return array.astype(np.uint8) if array.dtype.kind == "b" else array


def check_options(*, coverage: float, at_least: Sequence[tuple[str, int, int]]) -> None:
    """Refuse a coverage outside (0, 1) and counts below their (name, value, minimum)."""
    if not 0 < coverage < 1:
        raise ConfigError(f"coverage must lie between 0 and 1, for example 0.95; got {coverage}.")
    for name, value, minimum in at_least:
        if value < minimum:
            raise ConfigError(f"{name} must be at least {minimum}; got {value}.")
