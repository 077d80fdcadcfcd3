"""Figures of a pool from a random sample of answers: nothing is assumed of the model or of P.

    y_i             class of item i, 1 or 0: fixed, unknown until it is answered
    w_i, c          weights and constant of a figure
    q_t(i)          chance that draw t takes item i, of those not yet drawn
    p_t(i)          prediction of y_i from scores and earlier answers

**Every figure is a root.** The figure has the value v just if sum_i w_i(v) y_i = c(v). With A
positives above the threshold, B below it and C items called positive:

    precision v     A = v C                    recall v    (1 - v) A - v B = 0
    F1 v            (2 - v) A - v B = v C      positives   A + B = v          left   B = v

**Each draw gives an unbiased number.** Given all before draw t, the number

    X_t = (sum of w y over items drawn before) + (sum of w p_t over the others)
          + w_I (y_I - p_t(I)) / q_t(I)

for the drawn item I has the mean sum_i w_i y_i, which is c if v is the truth. Bad predictions
make it vary more, and never biased. The first draws, a few of every stratum, only predict.

**A gambler who bets against v cannot win if v is true.** His money, the product of
1 + b_t (X_t - c) with stakes b_t fixed before draw t that keep it from falling below 0, is a
non-negative martingale that starts at 1. So is an average over gamblers. By Ville's inequality it
ever reaches 1 / alpha with probability at most alpha. The interval is every v for which it never
did. It therefore holds at every look at once, for every number of answers however small, also
where none is positive. This is betting for sampling without replacement (Waudby-Smith and Ramdas,
NeurIPS 2020 and JRSS B 2024) with unequal chances and predictions from scores (Shekhar et al.,
ICML 2023). Sampling without replacement is used in full: when all items are answered, only the
true value is left.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int64

from onesided.core.errors import ConfigError, DataError
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.metrics.audit_design import AuditDesign, check_pool

UNANSWERED = -2
"""Beside POSITIVE, NEGATIVE and UNKNOWN (unsure): nobody has answered yet."""
STAKES = np.array([1.0, 0.5, 0.25, 0.12])
"""Gamblers, by the share of the largest allowed stake that they bet, on either side."""
TRUST = 4.0
"""Answers that the mean score of a cell is worth as a prediction of its share of positives."""
GRID = 64
"""Values tried at once; then as many again between the last rejected and the first accepted."""
FIGURES = ("precision", "recall", "f1", "positives", "left")

Values = Float[np.ndarray, "values"]


@dataclass(frozen=True)
class Estimate:
    """A figure estimated by an audit.

    Attributes:
        value: As if every stratum were like its answers (Horvitz-Thompson); unsure ones are left
            out. None where it is undefined.
        low: Lower end of the interval, if unsure answers are what makes the figure least.
        high: Upper end, if they are what makes it largest.
        worst: The value if unsure answers are what makes it least.
        best: The same for largest.
    """

    value: float | None
    low: float | None
    high: float | None
    worst: float | None
    best: float | None

    def to_json(self) -> dict[str, float | None]:
        """Return plain values."""
        return dict(vars(self))


@dataclass(frozen=True)
class AuditFigures:
    """Figures of the pool at one threshold.

    Attributes:
        threshold: A score above it is called positive.
        called: Items of the pool above it.
        found_below: Positives among the answers that are not above it.
        figures: precision, recall, f1, positives (in the pool), left (of these, not above it).
    """

    threshold: float
    called: int
    found_below: int
    figures: Mapping[str, Estimate]

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            **vars(self),
            "figures": {name: each.to_json() for name, each in self.figures.items()},
        }


def audit_estimate(
    scores: Float[np.ndarray, "n"],
    design: AuditDesign,
    answers: Int64[np.ndarray, "n"],
    *,
    thresholds: Sequence[float] = (0.5,),
    coverage: float = 0.95,
) -> list[AuditFigures]:
    """Return the figures of the pool at these thresholds.

    Answers count up to the last one in the drawn order, and an item that was passed over counts
    as unsure: whoever leaves the hard ones out must not gain by it. Each interval holds the truth
    with the given coverage at all looks together, for its figure and its threshold.

    Args:
        scores: Of the pool, as given to `audit_sample`.
        design: The draw.
        answers: POSITIVE, NEGATIVE, UNKNOWN (unsure) or UNANSWERED, per item of the pool.
        thresholds: Chosen without looking at the answers.
        coverage: How often an interval holds the truth.
    """
    check_pool(scores)
    if not 0 < coverage < 1:
        raise ConfigError(f"coverage must lie between 0 and 1, both excluded; got {coverage}.")
    if not len(scores) == len(design.stratum) == len(answers):
        raise DataError("Scores, draw and answers must be about the same items.")
    rows, given = counted_answers(design, answers)
    found = []
    for threshold in thresholds:
        above = scores > threshold
        sample = _sample(scores, design, above, rows, given)
        found.append(
            AuditFigures(
                threshold=float(threshold),
                called=int(above.sum()),
                found_below=int(((given == POSITIVE) & ~above[rows]).sum()),
                figures={name: _estimate(sample, name, coverage) for name in FIGURES},
            )
        )
    return found


def counted_answers(
    design: AuditDesign, answers: Int64[np.ndarray, "n"]
) -> tuple[Int64[np.ndarray, "asked"], Int64[np.ndarray, "asked"]]:
    """Return the rows up to the last answered one, and their answers; passed over is unsure."""
    drawn = answers[design.order]
    if not np.isin(drawn, (POSITIVE, NEGATIVE, UNKNOWN, UNANSWERED)).all():
        raise DataError("Answers must be POSITIVE, NEGATIVE, UNKNOWN or UNANSWERED.")
    answered = np.flatnonzero(drawn != UNANSWERED)
    asked = int(answered[-1]) + 1 if len(answered) else 0
    given = np.where(drawn[:asked] == UNANSWERED, UNKNOWN, drawn[:asked])
    return design.order[:asked], given.astype(np.int64)


@dataclass(frozen=True)
class Decided:
    """Drawn items that people call positive or negative.

    Attributes:
        rows: Of the pool.
        positive: What people say.
        weights: Items of the pool that each stands for: those of its stratum, by those of them
            that were decided (Horvitz and Thompson, after stratification).
    """

    rows: Int64[np.ndarray, "m"]
    positive: Bool[np.ndarray, "m"]
    weights: Float[np.ndarray, "m"]


def decided_answers(design: AuditDesign, answers: Int64[np.ndarray, "n"]) -> Decided:
    """Return the decided answers with their weights; unsure ones are taken to be like them."""
    rows, given = counted_answers(design, answers)
    sure = given != UNKNOWN
    rows, given = rows[sure], given[sure]
    asked = np.bincount(design.stratum[rows], minlength=len(design.chance))
    weights = (design.sizes / np.maximum(asked, 1))[design.stratum[rows]]
    return Decided(rows, given == POSITIVE, weights)


def answers_to_halve(
    scores: Float[np.ndarray, "n"],
    longer: AuditDesign,
    answers: Int64[np.ndarray, "n"],
    *,
    threshold: float,
    coverage: float = 0.95,
) -> int | None:
    """Return about how many more answers halve the most that may be left below a threshold.

    A forecast: as if each stratum went on as it did so far. Positives that the audit found are
    not left any more. None where the drawn items of `longer` are not enough.
    """
    rows, given = counted_answers(longer, answers)
    sure = given != UNKNOWN
    strata = len(longer.chance)
    asked = np.bincount(longer.stratum[rows[sure]], minlength=strata)
    positive = np.bincount(longer.stratum[rows[given == POSITIVE]], minlength=strata)
    share = positive / np.maximum(asked, 1)
    later = longer.order[len(rows) :]
    of_later = longer.stratum[later]
    turn = np.zeros(len(later), dtype=np.int64)
    for number in range(strata):
        turn[of_later == number] = np.arange(int((of_later == number).sum()))
    # A stratum with a share of 1/4 gives a positive at every fourth turn.
    rate = share[of_later]
    forecast = np.floor((turn + 1) * rate + 0.5) > np.floor(turn * rate + 0.5)
    now, more = _most_left(scores, longer, answers, threshold, coverage), 25
    while now is not None and more <= len(later):
        guessed = answers.copy()
        guessed[later[:more]] = np.where(forecast[:more], POSITIVE, NEGATIVE)
        then = _most_left(scores, longer, guessed, threshold, coverage)
        if then is not None and then <= now / 2:
            return more
        more *= 2
    return None


def _most_left(
    scores: Float[np.ndarray, "n"],
    design: AuditDesign,
    answers: Int64[np.ndarray, "n"],
    threshold: float,
    coverage: float,
) -> float | None:
    """Return the upper end of `left`, less the positives that the audit found there."""
    above = scores > threshold
    rows, given = counted_answers(design, answers)
    high = _estimate(_sample(scores, design, above, rows, given), "left", coverage).high
    return None if high is None else high - float(((given == POSITIVE) & ~above[rows]).sum())


@dataclass(frozen=True)
class _Sample:
    """Answers in their order, by cell: a stratum's part above or below the threshold.

    Attributes:
        size: Items of each cell.
        guess: Mean score of each cell.
        above: Whether a cell lies above the threshold.
        stratum: Of each cell.
        chance: Of the stratum of each cell, while it has items left.
        cell: Of each answer.
        given: The answers.
        first: How many were drawn before chance chose the stratum.
    """

    size: Float[np.ndarray, "cells"]
    guess: Float[np.ndarray, "cells"]
    above: Bool[np.ndarray, "cells"]
    stratum: Int64[np.ndarray, "cells"]
    chance: Float[np.ndarray, "cells"]
    cell: Int64[np.ndarray, "asked"]
    given: Int64[np.ndarray, "asked"]
    first: int

    @property
    def called(self) -> float:
        return float(self.size[self.above].sum())

    def count(self, of: Bool[np.ndarray, "asked"]) -> Float[np.ndarray, "cells"]:
        return np.bincount(self.cell[of], minlength=len(self.size)).astype(np.float64)

    def decided(self, *, above: int, below: int) -> "_Sample":
        """Return the sample with unsure answers replaced, by side of the threshold."""
        meant = np.where(self.above[self.cell], above, below)
        return replace(self, given=np.where(self.given == UNKNOWN, meant, self.given))


def _sample(
    scores: Float[np.ndarray, "n"],
    design: AuditDesign,
    above: Bool[np.ndarray, "n"],
    rows: Int64[np.ndarray, "asked"],
    given: Int64[np.ndarray, "asked"],
) -> _Sample:
    key = 2 * design.stratum + ~above
    keys, cell = np.unique(key, return_inverse=True)
    size = np.bincount(cell).astype(np.float64)
    return _Sample(
        size=size,
        guess=np.bincount(cell, weights=scores) / size,
        above=keys % 2 == 0,
        stratum=keys // 2,
        chance=design.chance[keys // 2],
        cell=cell[rows],
        given=given,
        first=design.first,
    )


@dataclass(frozen=True)
class _Game:
    """What each bet depends on besides the value that is bet against.

    Attributes:
        above: Whether a cell lies above the threshold.
        total: Positives of each cell: those known before the turn, and those predicted.
        if_one: (1 - p) / q of each cell, 0 where none of its items is left.
        if_none: - p / q of each cell, likewise.
        cell: The drawn item's.
        outcome: (y - p) / q of the drawn item.
    """

    above: Bool[np.ndarray, "cells"]
    total: Float[np.ndarray, "turns cells"]
    if_one: Float[np.ndarray, "turns cells"]
    if_none: Float[np.ndarray, "turns cells"]
    cell: Int64[np.ndarray, "turns"]
    outcome: Float[np.ndarray, "turns"]


def _game(sample: _Sample) -> _Game:
    """Return the bets of a sample whose answers are all positive or negative."""
    turns = np.arange(len(sample.cell))
    drawn = np.zeros((len(turns), len(sample.size)))
    drawn[turns, sample.cell] = 1.0
    positive = drawn * (sample.given == POSITIVE)[:, None]
    asked = np.cumsum(drawn, axis=0) - drawn  # before the turn
    known = np.cumsum(positive, axis=0) - positive
    share = (known + TRUST * sample.guess) / (asked + TRUST)
    left = sample.size - asked
    item = _item_chances(sample, left)
    with np.errstate(divide="ignore"):
        each = np.where(left > 0, 1 / item, 0.0)
    jump = np.where(positive.any(axis=1, keepdims=True), 1 - share, -share) * each
    late = slice(sample.first, None)
    return _Game(
        above=sample.above,
        total=(known + left * share)[late],
        if_one=((1 - share) * each)[late],
        if_none=(-share * each)[late],
        cell=sample.cell[late],
        outcome=jump[turns, sample.cell][late],
    )


def _item_chances(
    sample: _Sample, left: Float[np.ndarray, "turns cells"]
) -> Float[np.ndarray, "turns cells"]:
    """Return q_t of an item of each cell; 0 where none is left."""
    same = (sample.stratum[:, None] == sample.stratum).astype(np.float64)
    in_stratum = left @ same
    # Cells of a stratum share its chance by their items.
    total = (sample.chance * left / np.maximum(in_stratum, 1)).sum(axis=1, keepdims=True)
    return np.where(left > 0, sample.chance / np.maximum(total * in_stratum, 1e-300), 0.0)


def _estimate(sample: _Sample, name: str, coverage: float) -> Estimate:
    """Return a figure with its interval, in the worst and in the best case of unsure answers."""
    # No figure falls with positives above the threshold. Those below make recall and F1 smaller.
    rises_below = name in ("positives", "left")
    worst = sample.decided(above=NEGATIVE, below=NEGATIVE if rises_below else POSITIVE)
    best = sample.decided(above=POSITIVE, below=POSITIVE if rises_below else NEGATIVE)
    low, high = _interval(worst, name, coverage)
    if (sample.given == UNKNOWN).any():
        # Two intervals, of which each may miss: half of the error is left to either.
        each = (1 + coverage) / 2
        low, high = _interval(worst, name, each)[0], _interval(best, name, each)[1]
    value = _value(sample, name)
    if value is not None and low is not None and high is not None:
        value = min(max(value, low), high)
    return Estimate(value, low, high, _value(worst, name), _value(best, name))


def _value(sample: _Sample, name: str) -> float | None:
    """Return the figure if every stratum were like its answers; None where one has none.

    The chances of the strata do not depend on answers. So given how many answers fall in a
    stratum, they are a simple random sample of it, and the numbers of positives are unbiased.
    """
    sure = sample.given != UNKNOWN
    strata = int(sample.stratum.max()) + 1

    def by_stratum(of_cells: Float[np.ndarray, "cells"]) -> Float[np.ndarray, "strata"]:
        return np.bincount(sample.stratum, weights=of_cells, minlength=strata)

    asked, size = by_stratum(sample.count(sure)), by_stratum(sample.size)
    if ((asked == 0) & (size > 0)).any():
        return None
    weight = (size / np.maximum(asked, 1))[sample.stratum]
    positives = sample.count(sample.given == POSITIVE) * weight
    return _figure(name, positives[sample.above].sum(), positives[~sample.above].sum(), sample)


def _figure(name: str, above: float, below: float, sample: _Sample) -> float | None:
    """Return the figure for numbers of positives above and below the threshold."""
    both = float(above + below)
    match name:
        case "precision":
            part, whole = float(above), sample.called
        case "recall":
            part, whole = float(above), both
        case "f1":
            part, whole = 2 * float(above), sample.called + both
        case "positives":
            part, whole = both, 1.0
        case _:
            part, whole = float(below), 1.0
    return part / whole if whole > 0 else None


def _equation(name: str, value: Values, called: float) -> tuple[Values, Values, Values]:
    """Return w above the threshold, w below it, and c, for each value of the figure."""
    one, zero = np.ones_like(value), np.zeros_like(value)
    match name:
        case "precision":
            return one, zero, value * called
        case "recall":
            return 1 - value, -value, zero
        case "f1":
            return 2 - value, -value, value * called
        case "positives":
            return one, one, value
        case _:
            return zero, one, value


def _interval(
    sample: _Sample, name: str, coverage: float
) -> tuple[float, float] | tuple[None, None]:
    """Return the interval of a figure whose answers are all positive or negative."""
    least, most = _certain(sample, name)
    if least is None or most is None:
        return None, None
    if least == most:
        return least, most
    limit, game = math.log(1 / (1 - coverage)), _game(sample)

    def accepted(values: Values) -> Bool[np.ndarray, "values"]:
        return _most_money(game, *_equation(name, values, sample.called)) < limit

    coarse = np.linspace(least, most, GRID + 1)
    value = _value(sample, name)
    if value is not None:  # a set that is narrower than the grid is found here
        coarse = np.unique(np.append(coarse, min(max(value, least), most)))
    inside = np.flatnonzero(accepted(coarse))
    if len(inside) == 0:  # all values are rejected: an event of probability 1 - coverage at most
        return least, most
    low = _end(accepted, coarse, int(inside[0]), -1)
    high = _end(accepted, coarse, int(inside[-1]), 1)
    if name in ("positives", "left"):  # whole numbers
        low, high = math.ceil(low - 1e-6), math.floor(high + 1e-6)
    return float(low), float(high)


def _end(
    accepted: Callable[[Values], Bool[np.ndarray, "values"]], coarse: Values, at: int, step: int
) -> float:
    """Return an end of the interval: the last rejected value outside of it that was tried."""
    if not 0 <= at + step < len(coarse):
        return float(coarse[at])
    fine = np.linspace(coarse[at + step], coarse[at], GRID + 1)
    first = int(np.flatnonzero(accepted(fine))[0])
    return float(fine[max(first - 1, 0)])


def _certain(sample: _Sample, name: str) -> tuple[float | None, float | None]:
    """Return what the figure is at least and at most, whatever the items not asked are."""
    positive = sample.count(sample.given == POSITIVE)
    rest = sample.size - sample.count(sample.given == sample.given)
    up = sample.above
    a, b = float(positive[up].sum()), float(positive[~up].sum())
    more_a, more_b = float(rest[up].sum()), float(rest[~up].sum())
    corners = [
        _figure(name, above, below, sample)
        for above in (a, a + more_a)
        for below in (b, b + more_b)
    ]
    if name == "recall" and a + b == 0 and more_b > 0 and more_a > 0:
        corners += [0.0, 1.0]
    known = [corner for corner in corners if corner is not None]
    return (min(known), max(known)) if known else (None, None)


def _most_money(game: _Game, w_above: Values, w_below: Values, c: Values) -> Values:
    """Return for each value the log of the most that the average gambler ever had."""
    if len(game.outcome) == 0:
        return np.zeros(len(c))
    weight = np.where(game.above[:, None], w_above, w_below)  # cells, values
    known = game.total @ weight - c  # turns, values
    lowest, highest = known.copy(), known.copy()
    for cell, of_cell in enumerate(weight):
        for jump in (game.if_one, game.if_none):
            possible = known + jump[:, [cell]] * of_cell
            np.minimum(lowest, possible, out=lowest)
            np.maximum(highest, possible, out=highest)
    drawn = known + game.outcome[:, None] * weight[game.cell]
    # A value for which X cannot be on both sides of c is impossible; 1e-9 keeps it finite.
    scale = 1e-9 * np.maximum(highest - lowest, 1e-9)
    up, down = drawn / np.maximum(-lowest, scale), -drawn / np.maximum(highest, scale)
    with np.errstate(divide="ignore"):
        money = [
            np.cumsum(np.log(np.maximum(1 + stake * side, 0.0)), axis=0)
            for stake in STAKES
            for side in (up, down)
        ]
    mean = np.logaddexp.reduce(money, axis=0) - math.log(len(money))
    return np.asarray(np.maximum(mean.max(axis=0), 0.0))
