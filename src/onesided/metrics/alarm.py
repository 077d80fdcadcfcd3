"""Alarms: plain sentences for the cases in which a good figure means nothing.

    pi              share of positives in U
    S_P(t), S_U(t)  shares of the positives and of the unlabelled that score above t

An alarm that noise sets off is soon ignored. So two samples are always compared with exact
binomial bounds, of as many items as those of groups are worth.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from onesided.core.errors import DataError
from onesided.core.folds import Groups, GroupsOfBoth
from onesided.metrics.figure import Raw
from onesided.metrics.intervals import clopper_pearson, lower_bounds, upper_bounds, worth

EVERYTHING = 0.99
"""Above this share of U called positive, the model calls everything positive."""
NOTHING = 0.001
"""Below this share of U called positive, the model calls nothing positive."""
TOLD_APART = 0.985
"""Above this proxy AUC at most 3 % of U look like P: a perfect model has 1 - prior / 2."""
FALL = 0.03
"""A smaller fall of the proxy AUC is not worth a sentence."""
FEW = 20
"""With fewer positives a proxy AUC of 0.7 cannot be told from chance."""
ADVISED = 0.8
"""The recall that is advised where a threshold decides nothing."""
DIFFERS = (
    "Positives and unlabelled items are told apart almost without error, so hardly any unlabelled "
    "item looks like a positive. Likeliest, the two differ in something else, such as size, "
    "format, camera or source, or one of them is the wrong folder or file: compare a few items of "
    "each. Otherwise there are hardly any positives to find."
)


@dataclass(frozen=True)
class Evidence:
    """What is known of a model's decisions on items that it was not trained on.

    Attributes:
        share_positive: Share of U called positive.
        recall: Share of P called positive; None where no positive is held out.
        proxy_auc: Value, low and high end; None where no positive is held out.
        positives: Number of these P.
        unlabelled: Number of these U.
    """

    share_positive: float
    recall: float | None = None
    proxy_auc: tuple[float, float, float] | None = None
    positives: int | None = None
    unlabelled: int | None = None

    def __post_init__(self) -> None:
        shares = {"share of U called positive": self.share_positive, "recall": self.recall}
        for name, value in shares.items():
            if value is not None and not 0 <= value <= 1:
                raise DataError(f"The {name} must lie between 0 and 1; got {value}.")

    @property
    def perhaps_swapped(self) -> bool:
        """Whether there is more P than U beyond chance, which people seldom have.

        Of a small map 3 marked and 2 other buildings may be held out, though most are not marked.
        """
        if self.positives is None or self.unlabelled is None:
            return False
        both = self.positives + self.unlabelled
        return both > 0 and clopper_pearson(self.positives, both)[0] > 0.5

    @property
    def was_advised(self) -> bool:
        """Whether the threshold lies where it is advised to be, as nearly as so many P allow."""
        if self.recall is None:
            return False
        return abs(self.recall - ADVISED) <= max(0.05, 1 / (self.positives or 1))

    @property
    def ranks(self) -> bool:
        """Whether P scores higher than U beyond chance."""
        return self.proxy_auc is not None and self.proxy_auc[1] > 0.5

    @property
    def ranks_backwards(self) -> bool:
        """Whether P scores lower than U beyond chance."""
        return self.proxy_auc is not None and self.proxy_auc[2] < 0.5

    @property
    def told_apart(self) -> bool:
        """Whether hardly any U looked like P: (2) in docs/evaluation.md.

        By the value, not by the low end of its interval: few items prove little, but a leak in
        few items looks like this, and nothing else that says so would be told.
        """
        return self.proxy_auc is not None and self.proxy_auc[0] > TOLD_APART


def degenerate(evidence: Evidence) -> str | None:
    """Return what is wrong if the decisions are worthless, the likeliest cause and what to do.

    A model that calls everything positive has perfect recall and a good F1. One that calls
    nothing positive is often right. Neither decides anything. A model that finds positives
    no more often than it calls items of U positive does not separate them from U. One sentence
    of each kind, and one cause: two pieces of advice may contradict each other.
    """
    found = _symptom(evidence)
    return f"{found} {_cause(evidence)}" if found else None


def _symptom(evidence: Evidence) -> str | None:
    share, recall = evidence.share_positive, evidence.recall
    called = f"The model calls {share:.1%} of the unlabelled items positive"
    if evidence.unlabelled is not None:
        count = round(share * evidence.unlabelled)
        called = (
            f"Of the {evidence.unlabelled} unlabelled items that it was not trained on, the model "
            f"calls {count} positive"
        )
    if share > EVERYTHING:
        return f"{called}, which is everything: its recall and F1 look good and mean nothing."
    if share < NOTHING:
        return f"{called}, which is nothing."
    if recall is not None and (recall <= share or evidence.ranks_backwards):
        return (
            f"The model finds {recall:.1%} of the held-out positives and calls {share:.1%} of the "
            "unlabelled items positive: it does not separate the two."
        )
    return None


def _cause(evidence: Evidence) -> str:
    """Return the likeliest cause and what to do, the first that the evidence allows."""
    share, positives = evidence.share_positive, evidence.positives
    if evidence.perhaps_swapped:
        return (
            f"There are more positives ({positives}) than unlabelled items "
            f"({evidence.unlabelled}): P and U are probably swapped. Swap the two and train again."
        )
    if evidence.ranks_backwards:
        return (
            "Positives score lower than the unlabelled items: P and U are probably swapped, or the "
            "positives are of another kind. Compare a few items of each."
        )
    if evidence.told_apart:
        return DIFFERS
    if evidence.ranks and evidence.was_advised:
        return (
            f"The threshold is already where about {ADVISED:.0%} of the positives are found, so "
            "moving it hardly helps: positives score higher than others, but not enough for a "
            "decision. Use the ranking from the top (onesided rank), or mark more positives."
        )
    if evidence.ranks or evidence.proxy_auc is None:
        way = "low" if share > EVERYTHING else "high"
        return (
            f"Likeliest, the threshold is too {way} for these scores. Move it with --threshold, "
            f"for example to recall={ADVISED}; onesided evaluate does that without training again."
        )
    if positives is not None and positives < FEW:
        return (
            f"{positives} held-out positives are too few to tell whether anything was learned. "
            "Mark more of them, at least fifty."
        )
    return (
        "The scores hardly differ between the two, so nothing was learned that tells them apart. "
        "Look at the positives with the lowest scores: are they what you meant, and can one see "
        "it at the size at which the model sees them?"
    )


def suspicions(evidence: Evidence) -> tuple[str, ...]:
    """Return a sentence where something looks wrong although the decisions look useful.

    That there is more P than U is asked about before training already.
    """
    return (DIFFERS,) if evidence.told_apart else ()


def prior_consistency(
    positive_scores: Float[np.ndarray, "positives"],
    unlabelled_scores: Float[np.ndarray, "unlabelled"],
    *,
    prior: float,
    threshold: float = 0.5,
    coverage: float = 0.95,
    groups: GroupsOfBoth | None = None,
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
        most = _largest_prior(
            positive, unlabelled, thresholds=sign * thresholds, error=error, groups=groups
        )
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
        "nothing could show the same. Mark more positives."
    )


def fallen(curve: Sequence[float], positives: int) -> tuple[int, float, float] | None:
    """Return (epoch, best, last) where the proxy AUC of held-out items clearly fell, else None.

    Single epochs are noise, and the best of many is partly luck. So means over a tenth of the
    epochs are compared, and the fall must exceed `FALL` and the standard error of an AUC with so
    many positives, which is at most sqrt(A (1 - A) / positives).
    """
    width = max(1, len(curve) // 10)
    if len(curve) < 2 or positives < 1:
        return None
    means = np.convolve(curve, np.full(width, 1 / width), mode="valid")
    best, last = int(means.argmax()), float(means[-1])
    high = float(means[best])
    if high - last <= max(FALL, (high * (1 - high) / positives) ** 0.5):
        return None
    return best + (width + 1) // 2, high, last


def falling_curve(curve: Sequence[float], positives: int) -> str | None:
    """Return the sentence for a model that was better before its training ended."""
    found = fallen(curve, positives)
    if found is None:
        return None
    epoch, best, last = found
    return (
        f"The model was better before the end: the proxy AUC of held-out items was {best:.3f} "
        f"about epoch {epoch} of {len(curve)} and is {last:.3f} at the last one, which is "
        "delivered. --set train.keep=best keeps the epoch that held-out items prefer."
    )


def _largest_prior(
    positive_scores: Float[np.ndarray, "positives"],
    unlabelled_scores: Float[np.ndarray, "unlabelled"],
    *,
    thresholds: Float[np.ndarray, "thresholds"],
    error: float,
    groups: GroupsOfBoth | None,
) -> float:
    """Return the largest pi with pi S_P(t) <= S_U(t) at every threshold t, allowing for noise."""
    of_p, of_u = (
        _above(scores, thresholds, groups and groups[side])
        for side, scores in enumerate((positive_scores, unlabelled_scores))
    )
    least, room = lower_bounds(*of_p, error), upper_bounds(*of_u, error)
    return float(np.min(room / np.maximum(least, np.finfo(float).tiny)))


def _above(
    scores: Float[np.ndarray, "n"],
    thresholds: Float[np.ndarray, "thresholds"],
    groups: Groups | None,
) -> tuple[Float[np.ndarray, "thresholds"], Float[np.ndarray, "thresholds"]]:
    """Return how many scores are above each threshold, and of how many, as items of their own."""
    above = len(scores) - np.searchsorted(np.sort(scores), thresholds, side="right")
    trials = np.array([worth(scores > one, groups) for one in thresholds])
    return np.minimum(above * trials / len(scores), trials), trials  # rounding may exceed them


def _contradiction(prior: float, most: float, kind: str) -> str:
    ease = "easier" if kind == "high" else "harder"
    return (
        f"Too few unlabelled items score as {kind} as the labelled positives for a prior of "
        f"{prior:.3g}; it could be at most {most:.3g}. Either the prior is too high, or the "
        f"labelled positives are {ease} than typical ones (SCAR is broken). All figures that "
        "rest on that prior or on SCAR are then wrong."
    )
