"""Fisher's natural break of numbers into two groups, exactly.

Fisher (1958), Jenks (1967): divide the sorted values so that the scatter of the two groups around
their means is smallest. With two groups every break can be tried, so the result needs no start
and no iteration. HolisticPU divides its trend scores this way; the share above the break is then
an estimate of the class prior.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from onesided.core.errors import DataError

OUTLIER = 0.2 / 9
"""Larger trend scores are left out when the first break is above 0 (released code)."""


@dataclass(frozen=True)
class NaturalBreak:
    """A break between two groups of numbers.

    Attributes:
        value: Largest number of the lower group; the upper one lies strictly above.
        within: Sum of squared distances of all numbers to the mean of their group.
    """

    value: float
    within: float


def natural_break(values: ArrayLike) -> NaturalBreak:
    """Return the break into two groups with the least scatter within them.

    The cost is that of sorting: if the values are centred and S_k is the sum of the k smallest,
    the scatter that a break after k removes is S_k^2 (1 / k + 1 / (n - k)). If all values are
    equal there is no upper group, and the break is that value.
    """
    ordered = _sorted(values)
    centred = ordered - ordered.mean()
    total = float(centred @ centred)
    cuts = np.flatnonzero(ordered[:-1] < ordered[1:]) + 1  # equal numbers stay together
    if not len(cuts):
        return NaturalBreak(float(ordered[0]), 0.0)
    lower = centred.cumsum()[cuts - 1]
    removed = lower**2 * (1 / cuts + 1 / (len(ordered) - cuts))
    best = int(removed.argmax())
    return NaturalBreak(float(ordered[cuts[best] - 1]), max(total - float(removed[best]), 0.0))


def trend_break(scores: ArrayLike, *, outlier: float = OUTLIER) -> NaturalBreak:
    """Return the natural break of trend scores, without outliers if it came out positive.

    HolisticPU's guard. Predictions on U fall, so the break belongs below zero. A break above it
    means that the upper group is a few extreme values. They are then left out, but only to find
    the break: every score is compared with it. The released code calls the rule three sigma; it
    is a fixed number.
    """
    found = natural_break(scores)
    if found.value <= 0:
        return found
    usual = _sorted(scores)
    usual = usual[usual < outlier]
    return natural_break(usual) if len(usual) > 1 else found


def _sorted(values: ArrayLike) -> Float[np.ndarray, "n"]:
    ordered = np.sort(np.asarray(values, dtype=np.float64), axis=None)
    if len(ordered) < 2 or not np.isfinite(ordered).all():
        raise DataError(
            f"A natural break needs at least two finite numbers; got {len(ordered)}, of which "
            f"{int(np.isfinite(ordered).sum())} finite."
        )
    return ordered
