"""Alarms: plain sentences for the cases in which a good figure means nothing.

    pi              share of positives in U
    S_P(t), S_U(t)  shares of the positives and of the unlabelled that score above t

An alarm that noise sets off is soon ignored. So two samples are always compared with exact
binomial bounds.
"""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Int64

from onesided.core.errors import DataError
from onesided.metrics.figure import Raw
from onesided.metrics.intervals import lower_bounds, upper_bounds

EVERYTHING = 0.99
"""Above this share of U called positive, the model calls everything positive."""
NOTHING = 0.001
"""Below this share of U called positive, the model calls nothing positive."""


def degenerate(share_positive: float, recall: float | None = None) -> str | None:
    """Return a sentence if the decisions are worthless, else None.

    A model that calls everything positive has perfect recall and a good F1. One that calls
    nothing positive is often right. Neither decides anything. A model that finds positives
    no more often than it calls items of U positive does not separate them from U. `recall`
    is None where no positive is held out.
    """
    for name, value in (("share of U called positive", share_positive), ("recall", recall)):
        if value is not None and not 0 <= value <= 1:
            raise DataError(f"The {name} must lie between 0 and 1; got {value}.")
    if share_positive > EVERYTHING:
        return (
            f"The model calls {share_positive:.1%} of the unlabelled items positive, which is "
            "everything: its recall and F1 look good and mean nothing. A class prior that is "
            "far too high or a collapsed training does this."
        )
    if share_positive < NOTHING:
        return (
            f"The model calls {share_positive:.2%} of the unlabelled items positive, which is "
            "nothing: it has probably learned that unlabelled means negative. Train for fewer "
            "epochs, or choose a method made for unlabelled data."
        )
    if recall is not None and recall <= share_positive:
        return (
            f"The model finds {recall:.1%} of the held-out positives and calls "
            f"{share_positive:.1%} of the unlabelled items positive: it does not separate the "
            "two. Check that both hold the same kind of item and that the positives are what "
            "you meant."
        )
    return None


def prior_consistency(
    positive_scores: Float[np.ndarray, "positives"],
    unlabelled_scores: Float[np.ndarray, "unlabelled"],
    *,
    prior: float,
    threshold: float = 0.5,
    coverage: float = 0.95,
) -> tuple[str, ...]:
    """Return one sentence for each way in which prior, P and U contradict each other.

    If P is typical of all positives, a share pi of U scores like P, so S_U(t) >= pi S_P(t)
    at every threshold t, and likewise for the shares below t. It is the only part of the
    assumptions that data without negatives can refute. It is tested at the deciles of P and
    at the decision threshold, with Bonferroni's correction: a false alarm has a probability
    below 1 - coverage. Where the prior has an interval, pass its lower end, which is the
    hardest to refute.
    """
    deciles = np.quantile(positive_scores, np.arange(1, 10) / 10, method="higher")
    thresholds = np.append(deciles, threshold)
    error = (1 - coverage) / (4 * len(thresholds))  # two directions, two bounds at every threshold
    sentences = []
    for kind, sign in (("high", 1.0), ("low", -1.0)):
        positive, unlabelled = sign * positive_scores, sign * unlabelled_scores
        most = _largest_prior(positive, unlabelled, thresholds=sign * thresholds, error=error)
        if prior > most:
            sentences.append(_contradiction(prior, most, kind))
    return tuple(sentences)


def outside_unit_interval(shares: Mapping[str, Raw]) -> str | None:
    """Return a sentence about estimated shares below 0 or above 1, None where there is none."""
    outside = {
        name: raw
        for name, raw in shares.items()
        if np.isfinite(raw.value) and not 0 <= raw.value <= 1
    }
    if not outside:
        return None
    shown = ", ".join(f"{name} {raw.value:.3f}" for name, raw in outside.items())
    beyond_noise = any(raw.interval[0] > 1 or raw.interval[1] < 0 for raw in outside.values())
    cause = (
        "This is more than noise: the"
        if beyond_noise
        else "A small sample can do this by chance; otherwise the"
    )
    return (
        f"Estimated shares outside 0 to 1 were set to the nearest end: {shown}. {cause} prior is "
        "too high, or the labelled positives are not typical of all positives (SCAR is broken)."
    )


def weak_separation(recall: float, share_positive: float, n_positive: int) -> str:
    """Return the sentence for a recall that is above the share called, but not clearly."""
    return (
        f"With {n_positive} held-out positives, a recall of {recall:.1%} is not clearly above "
        f"the {share_positive:.1%} of unlabelled items called positive: a score that separates "
        "nothing could show the same. Hold out more positives."
    )


def _largest_prior(
    positive_scores: Float[np.ndarray, "positives"],
    unlabelled_scores: Float[np.ndarray, "unlabelled"],
    *,
    thresholds: Float[np.ndarray, "thresholds"],
    error: float,
) -> float:
    """Return the largest pi with pi S_P(t) <= S_U(t) at every threshold t, allowing for noise."""
    least = lower_bounds(_above(positive_scores, thresholds), len(positive_scores), error)
    room = upper_bounds(_above(unlabelled_scores, thresholds), len(unlabelled_scores), error)
    return float(np.min(room / np.maximum(least, np.finfo(float).tiny)))


def _above(
    scores: Float[np.ndarray, "n"], thresholds: Float[np.ndarray, "thresholds"]
) -> Int64[np.ndarray, "thresholds"]:
    return len(scores) - np.searchsorted(np.sort(scores), thresholds, side="right")


def _contradiction(prior: float, most: float, kind: str) -> str:
    ease = "easier" if kind == "high" else "harder"
    return (
        f"Too few unlabelled items score as {kind} as the labelled positives for a prior of "
        f"{prior:.3g}; it could be at most {most:.3g}. Either the prior is too high, or the "
        f"labelled positives are {ease} than typical ones (SCAR is broken). All figures that "
        "rest on that prior or on SCAR are then wrong."
    )
