"""The prior as BBE estimates it from the scores of the model that it serves to evaluate.

It is right as far as only positives have the highest scores, and too high otherwise. Here it
is estimated, or refused with a reason.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from onesided.metrics.registry import OWN_SCORES
from onesided.priors import bbe
from onesided.run.prior import PriorUsed

FEWEST = 10  # of held-out P and U: below, BBE's interval is all there is


@dataclass(frozen=True)
class NoPrior:
    """Why scores do not tell the share of positives among the unlabelled items."""

    reason: str

    def __str__(self) -> str:
        return (
            "the share of positives among the unlabelled items (the prior) was not given and "
            f"cannot be estimated from this model's held-out scores: {self.reason}"
        )


def own_prior(
    positive: Float[np.ndarray, "p"], unlabelled: Float[np.ndarray, "u"]
) -> PriorUsed | NoPrior:
    """Return the prior that BBE estimates from held-out scores, or why they do not tell it.

    Scores that separate nothing would give a prior near 1, and with it a precision near 1.
    So an interval that reaches 1 is no estimate.

    Args:
        positive: Scores of labelled items that were not trained on.
        unlabelled: Scores of unlabelled items that were not trained on.
    """
    if min(len(positive), len(unlabelled)) < FEWEST:
        return NoPrior(
            f"they are of {len(positive)} positives and {len(unlabelled)} unlabelled items, and "
            f"it takes {FEWEST} of each"
        )
    found = bbe(positive, unlabelled)
    if found.high >= 1:
        return NoPrior("they separate so little that every unlabelled item could be positive")
    if found.value <= 0:
        return NoPrior("no unlabelled item scores as high as the positives do")
    return PriorUsed(found.value, found.low, found.high, OWN_SCORES, tuple(found.notes))
