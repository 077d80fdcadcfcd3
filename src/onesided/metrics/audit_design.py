"""Which items an audit asks about, and in which order.

The pool is ranked by score and cut into strata; one cut is the threshold. First a few items of
every stratum are drawn. Then each draw chooses a stratum by chance, with probabilities that
minimise the variance of the figure asked for, and an item of it that was not drawn yet, each
with the same chance. So every beginning of the order is a random sample whose probabilities are
known at every draw, and a larger audit continues a smaller one.

    N_h   items of stratum h                      pi_h  chance that a draw is from stratum h
    S_h   standard deviation of the class in it   w_h   derivative of the figure by its positives
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, Float, Int64

from onesided.core.errors import ConfigError, DataError
from onesided.core.rng import numpy_generator

Target = Literal["left", "positives", "precision", "recall", "f1"]
"""The figure whose variance is made small; `left` is the positives below the threshold."""
STRATA = 6
FEW = 2
"""Items drawn from every stratum before chance chooses the stratum."""
BY_SIZE = 0.2
"""Share of the draws that is spread over the strata by their sizes alone."""
LEAST_SHARE = 0.03
"""A guessed share of positives is at least this and at most one minus it: a model that is sure
of a stratum must not keep the audit out of it."""


@dataclass(frozen=True)
class AuditDesign:
    """Strata of a pool, and the items that are asked, in their order.

    Attributes:
        stratum: Of each item; 0 holds the highest scores.
        chance: Chance that a draw is from a stratum, while it has items left.
        order: Rows of the drawn items, the first to be asked first.
        first: How many of them were drawn before chance chose the stratum.
    """

    stratum: Int64[np.ndarray, "n"]
    chance: Float[np.ndarray, "strata"]
    order: Int64[np.ndarray, "size"]
    first: int

    @property
    def sizes(self) -> Int64[np.ndarray, "strata"]:
        """Items of each stratum."""
        return np.bincount(self.stratum, minlength=len(self.chance))


def audit_sample(
    scores: Float[np.ndarray, "n"],
    *,
    size: int,
    threshold: float = 0.5,
    target: str = "f1",
    seed: int = 0,
) -> AuditDesign:
    """Return which items to look at, and in which order they are to be answered.

    It is a function of its arguments. With a larger size the order continues.

    Examples:
        >>> import numpy as np
        >>> from onesided.metrics.audit_design import audit_sample
        >>> audit_sample(np.linspace(0, 1, 1000), size=200).order.shape
        (200,)

    Args:
        scores: Of the pool, from 0 to 1.
        size: How many items; all of them where the pool is smaller.
        threshold: A score above it is called positive.
        target: The figure whose variance is made small, one of `Target`.
        seed: Other seeds draw other items.
    """
    check_pool(scores)
    if target not in get_args(Target):
        known = ", ".join(get_args(Target))
        raise ConfigError(f"An audit can be drawn for {known}; got {target!r}.")
    if size < 1:
        raise ConfigError(f"An audit needs at least one item; got a size of {size}.")
    ranked = ranking(scores)
    called = int((scores > threshold).sum())
    guess = np.clip(scores[ranked], LEAST_SHARE, 1 - LEAST_SHARE)
    ends = _ends(np.sqrt(guess * (1 - guess)), called)
    stratum = np.empty(len(scores), dtype=np.int64)
    stratum[ranked] = np.repeat(np.arange(len(ends)), np.diff([0, *ends]))
    chance = _chances(stratum, scores, np.asarray(ends) <= called, target)
    order, first = _order(stratum, chance, min(size, len(scores)), seed)
    return AuditDesign(stratum, chance, order, first)


def ranking(scores: Float[np.ndarray, "n"]) -> Int64[np.ndarray, "n"]:
    """Return the rows by falling score; equal scores stay in their order."""
    return np.argsort(-scores, kind="stable")


def check_pool(scores: Float[np.ndarray, "n"]) -> None:
    """Refuse scores that are no pool."""
    if scores.ndim != 1 or scores.size == 0 or not ((scores >= 0) & (scores <= 1)).all():
        raise DataError("An audit needs the scores of a pool: one number from 0 to 1 per item.")


def _ends(deviation: Float[np.ndarray, "n"], called: int) -> list[int]:
    """Return where strata end in the ranking: equal sums of the deviation on either side.

    Equal sums make Neyman's allocation nearly equal, which is close to the best cuts (Dalenius
    and Hodges, 1959).
    """
    total = deviation.sum()
    ends: set[int] = set()
    for begin, end in ((0, called), (called, len(deviation))):
        if begin == end:
            continue
        inside = np.cumsum(deviation[begin:end])
        parts = min(max(round(STRATA * inside[-1] / total), 1), STRATA - 1)
        cuts = np.searchsorted(inside, inside[-1] * np.arange(1, parts) / parts)
        ends |= {begin + int(cut) for cut in cuts if cut > 0} | {end}
    return sorted(ends)


def _chances(
    stratum: Int64[np.ndarray, "n"],
    scores: Float[np.ndarray, "n"],
    above: Bool[np.ndarray, "strata"],
    target: str,
) -> Float[np.ndarray, "strata"]:
    """Return the chances of the strata: Neyman's |w_h| N_h S_h, mixed with shares of the pool.

    The mixture bounds what one surprising answer can weigh.
    """
    sizes = np.bincount(stratum)
    share = np.bincount(stratum, weights=scores) / sizes
    share = np.clip(share, LEAST_SHARE, 1 - LEAST_SHARE)
    called = int(sizes[above].sum())
    slope = np.abs(_slopes(target, share * sizes, above, called))
    best = slope * sizes * np.sqrt(share * (1 - share))
    best = best / best.sum() if best.any() else sizes / sizes.sum()
    return np.asarray((1 - BY_SIZE) * best + BY_SIZE * sizes / sizes.sum())


def _slopes(
    target: str,
    expected: Float[np.ndarray, "strata"],
    above: Bool[np.ndarray, "strata"],
    called: int,
) -> Float[np.ndarray, "strata"]:
    """Return w_h, at the numbers of positives that the scores let expect."""
    found, missed = float(expected[above].sum()), float(expected[~above].sum())
    both = found + missed
    match target:
        case "left":
            return np.where(above, 0.0, 1.0)
        case "positives":
            return np.ones(len(above))
        case "precision":
            return np.where(above, 1.0, 0.0)
        case "recall":
            return np.where(above, missed, -found) / both**2
        case _:  # F1
            return np.where(above, called + missed, -found) / (called + both) ** 2


def _order(
    stratum: Int64[np.ndarray, "n"], chance: Float[np.ndarray, "strata"], size: int, seed: int
) -> tuple[Int64[np.ndarray, "size"], int]:
    """Return the drawn rows, and how many of them come from the rounds before chance chooses."""
    waiting = [
        numpy_generator(seed, "audit", number).permutation(np.flatnonzero(stratum == number))
        for number in range(len(chance))
    ]
    turns = [(turn, number) for turn in range(FEW) for number in range(len(chance))]
    chosen = [number for turn, number in turns if turn < len(waiting[number])][:size]
    first = len(chosen)
    left = np.array([len(rows) for rows in waiting]) - np.bincount(chosen, minlength=len(chance))
    for point in numpy_generator(seed, "audit").random(size - first):
        open_chance = np.cumsum(np.where(left > 0, chance, 0.0))
        number = int(np.searchsorted(open_chance, point * open_chance[-1], side="right"))
        chosen.append(number)
        left[number] -= 1
    taken = [iter(rows.tolist()) for rows in waiting]
    return np.array([next(taken[number]) for number in chosen], dtype=np.int64), first
