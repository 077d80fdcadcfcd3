"""Is P typical of all positives? A test of SCAR on items that the model was not trained on.

    pi         share of positives in U, or a number below it
    C          a cell: items of high score, or one half of them along a direction of their features
    p_C, u_C   share of P, and of U, that lies in C

If P is a random sample of all positives, every cell holds pi p_C <= u_C: its part of U holds at
least its positives. The test looks for a cell where that is impossible. For each of m cells exact
bounds of p_C and u_C (Clopper and Pearson) each fail with a chance of at most level / 2m, so all of
them hold with a chance of 1 - level, and the test rejects a typical P no more often than `level`.

That is all that P and U can show. A bias that the model took for the class leaves no cell in which
P is too frequent, so the test says what it would have found: artificial labels are drawn among
items of U by their probabilities, once at random and then more often in one half of a direction,
and tested in the same way. Generating labels that way is the idea of Teisseyre, Furmanczyk and
Mielniczuk (arXiv 2404.00145). Differs: they compare P with a set of items that are taken for
positive, and take the distribution of the statistic from artificial labels, which is right as far
as that set is; here the level holds without it, and artificial labels serve the power alone.

An audit shows more. The share of the pool's positives above a score (its recall) has an interval
from the answers, whatever the model took for the class. Where P is typical, P and the positives of
the pool are two random parts of the same items. Given how many of both together score higher, the
number of P then has a hypergeometric distribution: Fisher's exact test. Of all numbers of positives
that the audit allows, `compare_with_audit` takes those nearest to P, and the fewest. It looks at m
scores: the tests fail with a chance of at most level / 2m each, the intervals of recall and of the
number of positives with level / 4m each, at all looks together.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int64

from onesided.core.labels import POSITIVE
from onesided.core.rng import numpy_generator
from onesided.metrics.audit import audit_estimate
from onesided.metrics.audit_design import AuditDesign
from onesided.metrics.intervals import clopper_pearson, lower_bounds, upper_bounds

LEVEL = 0.05
DIRECTIONS = 6
"""More directions would make more cells, and each of them harder to decide."""
PARTS = (1.0, 0.5)
"""Cells begin where as many items of U score higher as there are positives, and half as many."""
RATIOS = (2, 4, 8)
"""How much more often one half is labelled, for the power."""
DRAWS = 60
ENOUGH = 0.5
"""A test that finds the largest bias less often has no power worth the name."""


@dataclass(frozen=True)
class Sample:
    """Items with their out-of-fold score and where they lie along some directions."""

    scores: Float[np.ndarray, "n"]
    positions: Float[np.ndarray, "n k"]

    def some(self, rows: Int64[np.ndarray, "m"]) -> "Sample":
        """Return these items."""
        return Sample(self.scores[rows], self.positions[rows])


@dataclass(frozen=True)
class Cells:
    """Parts of the pool, chosen by U alone: score levels, and the medians above each."""

    levels: Float[np.ndarray, "levels"]
    medians: Float[np.ndarray, "levels k"]

    @classmethod
    def of(cls, unlabelled: Sample, prior: float) -> "Cells":
        """Return the cells of a pool with this share of positives."""
        shares = np.minimum(prior * np.array(PARTS), 1.0)
        levels = np.quantile(unlabelled.scores, 1 - shares, method="inverted_cdf")
        medians = [
            np.median(unlabelled.positions[unlabelled.scores >= level], axis=0) for level in levels
        ]
        return cls(levels, np.stack(medians))

    def counts(self, items: Sample) -> Int64[np.ndarray, "cells"]:
        """Return how many items lie in each cell: of each level all, and both halves."""
        found = []
        for level, medians in zip(self.levels, self.medians, strict=True):
            inside = items.positions[items.scores >= level]
            above = (inside > medians).sum(axis=0)
            found.append(np.concatenate([[len(inside)], above, len(inside) - above]))
        return np.concatenate(found).astype(np.int64)


@dataclass(frozen=True)
class Typical:
    """What the test found, and what it could have found.

    Attributes:
        p: Chance of cells as full of P under SCAR, at most; 1 where nothing was seen.
        power: Ratio to the share of artificial labels of that bias that the test found.
    """

    p: float
    power: dict[int, float]

    @property
    def rejected(self) -> bool:
        """Whether P is not typical."""
        return self.p < LEVEL

    @property
    def sentence(self) -> str:
        """What was found, what could have been, and what to do."""
        strong = max(self.power)
        found = ", ".join(f"{ratio} times {share:.0%}" for ratio, share in self.power.items())
        if self.rejected:
            return (
                f"P is not typical of all positives (p = {self.p:.2g}): some kinds of positives "
                "are in P more often than there can be of them in the pool, or the prior is too "
                "high. Recall and precision may be wrong. The methods pusb and lbe allow for "
                "that; onesided audit gives figures that do not depend on P."
            )
        if self.power[strong] < ENOUGH:
            return (
                "Whether P is typical of all positives cannot be told from P and U: if one half "
                f"of them were labelled {strong} times as often as the other, the test would see "
                f"it in {self.power[strong]:.0%} of cases. Only onesided audit tells."
            )
        return (
            "Nothing shows that P is not typical of all positives. If one half of them were "
            "labelled more often than the other, the test would see it in this share of cases: "
            f"{found}. It cannot see a bias that the model takes for the class; onesided audit "
            "does."
        )

    def to_json(self) -> dict[str, Any]:
        """Return the entry `typical` of `result.json`."""
        power = {str(ratio): share for ratio, share in self.power.items()}
        return {
            "p": self.p,
            "rejected": self.rejected,
            "power": power,
            "explained": self.sentence,
        }


def is_typical(
    positive: Sample,
    unlabelled: Sample,
    probabilities: Float[np.ndarray, "u"],
    *,
    prior: float,
    seed: int = 0,
) -> Typical:
    """Return the test of P against U.

    Args:
        positive: P.
        unlabelled: U.
        probabilities: Of the items of U to be positive, if P is typical; for the power alone.
        prior: A share that the positives of U reach at least.
        seed: Of the artificial labels.
    """
    cells = Cells.of(unlabelled, prior)
    of_u = cells.counts(unlabelled)
    p = _p(cells.counts(positive), len(positive.scores), of_u, len(unlabelled.scores), prior)
    power = {}
    for ratio in RATIOS:
        found = 0
        for number in range(DRAWS):
            random = numpy_generator(seed, "typical", ratio, number)
            rows = _labelled(unlabelled, probabilities, len(positive.scores), ratio, number, random)
            drawn = cells.counts(unlabelled.some(rows))
            found += bool(_impossible(drawn, len(rows), of_u, len(unlabelled.scores), prior).any())
        power[ratio] = found / DRAWS
    return Typical(p, power)


def _labelled(
    unlabelled: Sample,
    probabilities: Float[np.ndarray, "u"],
    count: int,
    ratio: int,
    number: int,
    random: np.random.Generator,
) -> Int64[np.ndarray, "m"]:
    """Return artificial labels; of one half of a direction `ratio` times as many."""
    along = unlabelled.positions[:, number % unlabelled.positions.shape[1]]
    order = np.argsort(along, kind="stable")
    middle = along[order[np.searchsorted(np.cumsum(probabilities[order]), probabilities.sum() / 2)]]
    upper: Bool[np.ndarray, u] = along > middle
    chance = probabilities * np.where(upper == (number % 2 == 0), ratio, 1)
    drawn = random.choice(len(along), count, p=chance / chance.sum())
    return drawn.astype(np.int64)


def _impossible(
    in_p: Int64[np.ndarray, "cells"],
    of_p: int,
    in_u: Int64[np.ndarray, "cells"],
    of_u: int,
    prior: float,
    level: float = LEVEL,
) -> Bool[np.ndarray, "cells"]:
    """Return in which cells P has more positives than U can hold, at this level together."""
    error = level / (2 * len(in_p))
    low, high = lower_bounds(in_p, of_p, error), upper_bounds(in_u, of_u, error)
    return np.asarray(prior * low > high)


def _p(
    in_p: Int64[np.ndarray, "cells"],
    of_p: int,
    in_u: Int64[np.ndarray, "cells"],
    of_u: int,
    prior: float,
) -> float:
    """Return the smallest level at which a cell is impossible, 1 where there is none."""
    if not _impossible(in_p, of_p, in_u, of_u, prior, 1 - 1e-9).any():
        return 1.0
    low, high = -200.0, 0.0  # of its logarithm
    while high - low > 0.01:
        middle = (low + high) / 2
        seen = _impossible(in_p, of_p, in_u, of_u, prior, float(np.exp(middle))).any()
        low, high = (low, middle) if seen else (middle, high)
    return float(np.exp(high))


@dataclass(frozen=True)
class TypicalByAudit:
    """Whether P scores like the positives that an audit found.

    Attributes:
        at: The score at which the two shares differ most, for what chance allows.
        of_p: Share of P above it, with its ends.
        of_all: Share of all positives of the pool above it, with its ends.
        positives: Positives among the answers.
        rejected: Whether P is not typical.
    """

    at: float
    of_p: tuple[float, float, float]
    of_all: tuple[float, float, float]
    positives: int
    rejected: bool

    @property
    def sentence(self) -> str:
        """What was found, and what follows."""
        shares = (
            f"{_ends(self.of_p)} of P score above {self.at:.3g}, and {_ends(self.of_all)} of all "
            "positives of the pool do by the audit"
        )
        if self.rejected:
            return (
                f"P is not typical of all positives: {shares}. Figures and probabilities that "
                "rest on P are wrong; the audit's are not."
            )
        return (
            f"The audit does not show that P is not typical of all positives: {shares}, a "
            "difference that chance allows. More answers show smaller differences."
        )

    def to_json(self) -> dict[str, Any]:
        """Return the entry `typical` of `audit.json`."""
        return {**vars(self), "explained": self.sentence}


def compare_with_audit(
    positive: Float[np.ndarray, "p"],
    scores: Float[np.ndarray, "n"],
    design: AuditDesign,
    answers: Int64[np.ndarray, "n"],
) -> TypicalByAudit | None:
    """Return whether P scores like the positives of the pool; None where no positive was found.

    Args:
        positive: Scores of P, by models that were not trained on the item.
        scores: Of the pool, likewise.
        design: The draw.
        answers: As `audit_estimate` takes them.
    """
    strata = len(design.chance)
    highest = [float(scores[design.stratum == number].max()) for number in range(1, strata)]
    cuts = sorted(set(highest))  # an item above one is in a stratum above it
    if not cuts:
        return None
    error = LEVEL / (4 * len(cuts))
    found = []
    for figures in audit_estimate(scores, design, answers, thresholds=cuts, coverage=1 - error):
        recall, fewest = figures.figures["recall"], figures.figures["positives"].low
        if recall.value is None or recall.low is None or recall.high is None or fewest is None:
            return None
        above = int((positive > figures.threshold).sum())
        of_p = above / len(positive), *clopper_pearson(above, len(positive), coverage=1 - error)
        chance = _chance_of_gap(above, len(positive), (recall.low, recall.high), int(fewest))
        of_all = recall.value, recall.low, recall.high
        found.append((chance, -abs(of_p[0] - of_all[0]), figures.threshold, of_p, of_all))
    chance, _, at, share_of_p, share_of_all = min(found)  # if chance allows several, the widest
    positives = int((answers[design.order] == POSITIVE).sum())
    return TypicalByAudit(at, share_of_p, share_of_all, positives, chance < error)


def _chance_of_gap(above: int, of_p: int, recall: tuple[float, float], positives: int) -> float:
    """Return Fisher's one-sided p of P against positives of the pool, the nearest that may be."""
    from scipy.stats import hypergeom  # a second to import

    nearest = min(max(above / of_p, recall[0]), recall[1])
    if nearest == above / of_p:
        return 1.0
    # Rounded towards P.
    higher = math.ceil(nearest * positives) if above / of_p > nearest else int(nearest * positives)
    share = hypergeom(of_p + positives, above + higher, of_p)
    return float(share.sf(above - 1) if above / of_p > nearest else share.cdf(above))


def _ends(share: tuple[float, float, float]) -> str:
    return f"{share[0]:.0%} ({share[1]:.0%} to {share[2]:.0%})"
