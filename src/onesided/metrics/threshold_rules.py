"""Thresholds from scores of P and U, without a single negative.

    t    threshold: a score above it means positive, a tie means negative
    r    recall, P(score > t | positive)              on held-out P
    s    share of U called positive, P_U(score > t)   on held-out U

A threshold lies half-way between the lowest score that is called positive and the next one
below it, so that an error in the last digit of a score changes no decision.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from onesided.core.errors import ConfigError, DataError

EXPECTED = "a number from 0 to 1, or prior, prior=0.3, max-f1, recall=0.9, top-k=500"

Scores = Float[np.ndarray, "n"]
Positive = Float[np.ndarray, "positives"]
Unlabelled = Float[np.ndarray, "unlabelled"]


class NoThreshold(DataError):
    """These scores give no threshold by this rule; other scores or another rule may."""


@dataclass(frozen=True)
class ThresholdRule:
    """How the threshold is found.

    Attributes:
        name: "fixed", a number; "prior", as many called as the prior says; "max-f1", the
            criterion of Lee and Liu; "recall", a recall to reach; "top-k", how many to call.
        value: The number of the rule; None where it needs none.
    """

    name: Literal["fixed", "prior", "max-f1", "recall", "top-k"]
    value: float | None = None

    def __str__(self) -> str:
        if self.value is None:
            return self.name
        number = f"{self.value:.12g}"
        return number if self.name == "fixed" else f"{self.name}={number}"

    @property
    def needs_held_out(self) -> bool:
        """Whether the rule reads scores of held-out positives."""
        return self.name in ("max-f1", "recall") or (self.name == "prior" and self.value is None)


HALF = ThresholdRule("fixed", 0.5)
BY_PRIOR = ThresholdRule("prior")


def parse_rule(given: object) -> ThresholdRule:
    """Return the rule that a flag or a configuration file names."""
    text = str(given).strip().lower()
    name, _, number = text.partition("=")
    if name in ("max-f1", "prior") and not number and "=" not in text:
        return ThresholdRule(name)  # type: ignore[arg-type]
    value = _number(number or name)
    if value is not None and not isinstance(given, bool):
        if not number and 0 <= value <= 1:
            return ThresholdRule("fixed", value)
        if name == "prior" and 0 < value < 1:
            return ThresholdRule("prior", value)
        if name == "recall" and 0 < value <= 1:
            return ThresholdRule("recall", value)
        if name == "top-k" and value >= 1 and value == int(value):
            return ThresholdRule("top-k", value)
    raise ConfigError(f"The threshold is {str(given)!r}; expected {EXPECTED}.")


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def top_k_threshold(scores: Scores, count: int) -> float:
    """Return a threshold above which `count` of the scores lie.

    Where equal scores would lie on both sides, all of them stay below: a person who can check
    500 items cannot check 512. Scores of zero are never called positive.
    """
    descending = np.sort(scores)[::-1]
    lower = float(np.append(descending, 0.0)[min(count, len(scores))])
    above = descending[descending > lower]
    return _between(lower, float(above[-1]) if len(above) else 1.0)


def prior_threshold(unlabelled_scores: Unlabelled, prior: float) -> float:
    """Return a threshold above which a share `prior` of the unlabelled lies.

    The number of items called positive is then right, if the prior is. Which ones are called
    is as good as the ranking.
    """
    return top_k_threshold(unlabelled_scores, round(prior * len(unlabelled_scores)))


def recall_threshold(
    positive_scores: Positive, unlabelled_scores: Unlabelled, recall: float
) -> float:
    """Return the highest threshold above which a share `recall` of the positives lies.

    It is an order statistic of the positives, so the true recall is Beta distributed and the
    interval of Clopper and Pearson holds although the threshold was chosen on these scores.
    """
    wanted = math.ceil(recall * len(positive_scores) - 1e-9)
    lowest = float(np.sort(positive_scores)[::-1][wanted - 1])
    if lowest <= 0:
        raise NoThreshold(
            f"No threshold gives a recall of {recall:g}: the model gives a score of zero to "
            f"{int((positive_scores <= 0).sum())} of {len(positive_scores)} held-out positives."
        )
    return _just_below(lowest, np.concatenate([positive_scores, unlabelled_scores]))


def lee_liu_threshold(positive_scores: Positive, unlabelled_scores: Unlabelled) -> float:
    """Return the threshold that maximises r^2 / s; of equals the one with the highest recall.

    Lee and Liu (ICML 2003): r^2 / s is precision times recall up to the unknown prior, so it is
    large where F1 is large, and needs no prior. One more unlabelled item counts as called:
    above all of U the quotient would divide by zero and be the largest.
    """
    candidates = np.unique(np.concatenate([positive_scores, unlabelled_scores]))
    candidates = candidates[candidates > 0]
    if not len(candidates):
        raise NoThreshold("All scores are zero, so there is no threshold to choose.")
    criterion = lee_liu(positive_scores, unlabelled_scores, candidates)
    best = int(np.argmax(criterion))
    return _just_below(float(candidates[best]), np.append(candidates, 0.0))


def lee_liu(positive_scores: Positive, unlabelled_scores: Unlabelled, candidates: Scores) -> Scores:
    """Return r^2 / s where scores from each candidate upwards are called, and one more of U."""
    found = len(positive_scores) - np.searchsorted(np.sort(positive_scores), candidates)
    called = len(unlabelled_scores) - np.searchsorted(np.sort(unlabelled_scores), candidates)
    share = (called + 1) / (len(unlabelled_scores) + 1)
    return np.asarray((found / len(positive_scores)) ** 2 / share)


def _just_below(score: float, others: Scores) -> float:
    lower = others[others < score]
    return _between(float(lower.max()) if len(lower) else 0.0, score)


def _between(lower: float, upper: float) -> float:
    """Return the middle; `lower` where nothing lies between, as a tie means negative."""
    middle = (lower + upper) / 2
    return middle if middle < upper else lower
