"""Figures from true labels: for reporting only, they never choose anything."""

from dataclasses import asdict, dataclass

import numpy as np
from jaxtyping import Float, Int

from onesided.core.errors import DataError
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.metrics.pu import proxy_auc


@dataclass(frozen=True)
class TruthMetrics:
    """The five figures of the paper's tables, as fractions in [0, 1].

    Attributes:
        oa: Overall accuracy, the share of right decisions.
        f1: Harmonic mean of precision and recall; 0 where both are 0.
        precision: Share of true positives among the called; 0 if nothing was called.
        recall: Share of the true positives that were called; 0 if there are none.
        auc: Probability that a positive outscores a negative, ties counting half; None
            where the truth has only one class, because there is no pair to compare.
    """

    oa: float
    f1: float
    precision: float
    recall: float
    auc: float | None

    def to_json(self) -> dict[str, float | None]:
        """Return the mapping that stands under "test" in `result.json`."""
        return asdict(self)


def truth_metrics(
    truth: Int[np.ndarray, "n"], scores: Float[np.ndarray, "n"], threshold: float = 0.5
) -> TruthMetrics:
    """Compare decisions and scores with the true classes.

    A score above the threshold means positive and a tie means negative, like the
    argmax of two equal logits. Items of unknown class are refused, not left out: which
    items have a known class is seldom random, so the figures would be about other items.
    """
    _check(truth, scores)
    positive = truth == POSITIVE
    called = scores > threshold
    hits = int(np.count_nonzero(positive & called))
    n_called, n_positive = int(np.count_nonzero(called)), int(np.count_nonzero(positive))
    one_class = n_positive in (0, len(truth))
    return TruthMetrics(
        oa=float(np.mean(positive == called)),
        f1=_ratio(2 * hits, n_called + n_positive),
        precision=_ratio(hits, n_called),
        recall=_ratio(hits, n_positive),
        auc=None if one_class else proxy_auc(scores[positive], scores[~positive]),
    )


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _check(truth: Int[np.ndarray, "n"], scores: Float[np.ndarray, "n"]) -> None:
    if truth.ndim != 1 or truth.shape != scores.shape or truth.size == 0:
        raise DataError(
            "Truth and scores must be two lists of the same length, one number per item; "
            f"got shapes {truth.shape} and {scores.shape}."
        )
    unknown = int(np.count_nonzero(truth == UNKNOWN))
    if unknown:
        raise DataError(
            f"The class of {unknown} of {len(truth)} items is unknown, so there is no truth to "
            "compare with. Pass only items whose class is known, or use evaluate_pu."
        )
    strange = sorted(set(np.unique(truth).tolist()) - {NEGATIVE, POSITIVE})
    if strange:
        raise DataError(f"Truth must be 1 (positive) or 0 (negative); got {strange[:6]}.")
    if not np.isfinite(scores).all():
        raise DataError("Scores hold NaN or infinity; they must be finite numbers.")
