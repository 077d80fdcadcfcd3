"""A prior that nobody named, read off the very scores that it is to judge.

BBE on a model's own held-out scores is right as far as the top of that ranking is pure, and
too high otherwise, and precision with it. Here it is estimated, or refused with a reason, and
the figures that rest on it say to which side they lean.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from onesided.core.leaning import OPTIMISTIC, OWN_SCORES, PESSIMISTIC, as_leaning
from onesided.metrics.figure import INDEPENDENT, NOT_GIVEN, PUEvaluation
from onesided.priors import bbe
from onesided.run.prior import PriorUsed

FEWEST_TO_JUDGE_BY = 10  # of held-out P and U: below, BBE's interval is all there is
READ_OFF = (
    "read off the highest held-out scores of this very model as if only positives had them: "
    "where negatives have them too, it is too high"
)


@dataclass(frozen=True)
class Untold:
    """Why scores do not tell the share of positives among the unlabelled items."""

    reason: str

    @property
    def words(self) -> str:
        """What follows "the share": the same words wherever a person meets it."""
        return f"was not given and cannot be told from this model's held-out scores: {self.reason}."


def own_prior(
    positive: Float[np.ndarray, "p"], unlabelled: Float[np.ndarray, "u"]
) -> PriorUsed | Untold:
    """Return the prior that BBE reads off held-out scores, or why they do not tell it.

    Scores that separate nothing would give a prior near 1, and with it a precision near 1.
    So an interval that reaches 1 is no estimate.

    Args:
        positive: Scores of labelled items that were not trained on.
        unlabelled: Scores of unlabelled items that were not trained on.
    """
    if min(len(positive), len(unlabelled)) < FEWEST_TO_JUDGE_BY:
        return Untold(
            f"of {len(positive)} positives and {len(unlabelled)} unlabelled items, and it takes "
            f"{FEWEST_TO_JUDGE_BY} of each"
        )
    found = bbe(positive, unlabelled)
    if found.high >= 1:
        return Untold("they separate so little that every unlabelled item could be positive")
    if found.value <= 0:
        return Untold("no unlabelled item scores as high as the positives do")
    return PriorUsed(found.value, found.low, found.high, OWN_SCORES, tuple(found.notes))


def told_by(evaluation: PUEvaluation, prior: PriorUsed | Untold) -> PUEvaluation:
    """Return the figures with words that fit where their prior comes from."""
    if isinstance(prior, Untold):
        figures = {
            name: replace(figure, assumes=figure.assumes.replace(NOT_GIVEN, f"which {prior.words}"))
            for name, figure in evaluation.figures.items()
        }
        return replace(evaluation, figures=figures)
    return _as_leanings(evaluation) if prior.origin == OWN_SCORES else evaluation


def _as_leanings(evaluation: PUEvaluation) -> PUEvaluation:
    """Return figures whose prior may be too high with the side to which they lean."""
    figures = dict(evaluation.figures)
    for name, leaning in _leanings(evaluation).items():
        follows, beyond = (
            ("so is this figure", "below")
            if leaning == OPTIMISTIC
            else ("this figure is too low", "above")
        )
        words = (
            f", {READ_OFF}, and {follows}. Chance is in the interval; for this reason "
            f"the truth may also lie {beyond} it."
        )
        figure = figures[name]
        figures[name] = replace(
            figure,
            label=as_leaning(figure.label, leaning),
            assumes=figure.assumes.replace(INDEPENDENT, words),
        )
    return replace(evaluation, figures=figures)


def _leanings(evaluation: PUEvaluation) -> dict[str, str]:
    """Return which way a prior that is too high moves each figure (docs/evaluation.md).

    Precision and F1 rise with the prior. Accuracy rises by 2 r - 1 and AUC by as much as
    A - 1/2, so a model that misses most positives, or ranks them low, is better than told.
    """

    def above_half(name: str) -> str:
        return OPTIMISTIC if (evaluation.figures[name].value or 0) >= 0.5 else PESSIMISTIC

    return {
        "precision": OPTIMISTIC,
        "f1": OPTIMISTIC,
        "proxy_accuracy": above_half("recall"),
        "auc": above_half("proxy_auc"),
    }
