"""Probabilities from scores: calibration without negatives, or from answers.

    pi        share of positives in U (the prior)
    f_P, f_U  densities of the scores of positives and of U

By Bayes' rule the probability that an item of U with score s is positive is pi f_P(s) / f_U(s).
The ratio is estimated as a rising step function, by isotonic regression of "is labelled" on the
scores of P and U together: a step with p of n_P positives and u of n_U unlabelled items has the
ratio (p / n_P) / (u / n_U). Half an item of P counts beside the lowest score and half an item of U
beside the highest, so that no finite number of items says never or always. So it is with answers:
half an answer counts against an end where all of them are alike.
"""

from typing import Literal

import numpy as np
from jaxtyping import Float, Int64
from pydantic import Field, model_validator
from sklearn.base import BaseEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.utils.validation import check_is_fitted

from onesided.core.config import Config
from onesided.core.errors import ConfigError, DataError
from onesided.core.labels import NEGATIVE, POSITIVE

MOST_LOST = 0.2
"""Largest share of the prior that may be lost where probabilities would exceed 1."""

AT_ENDS = 0.5
"""Weight of the item of P at the lowest score and of that of U at the highest."""
ORDER = 0.001
"""Weight of the score in a probability: items on one step of the curve keep their order."""


class Calibration(Config):
    """A rising curve from scores to probabilities, as `model.json` holds it."""

    scores: tuple[float, ...] = Field(min_length=1, max_length=100_000)
    """Scores of its corners, rising."""
    probabilities: tuple[float, ...]
    """Probabilities there, not falling; straight lines lie between them."""
    basis: Literal["prior", "answers"]
    """What it was fitted to: P, U and the prior, or answers of people."""

    @model_validator(mode="after")
    def _check(self) -> "Calibration":
        if len(self.scores) != len(self.probabilities):
            raise ValueError("a calibration has one probability for each of its scores")
        ends = (*self.scores, *self.probabilities)
        if min(ends) < 0 or max(ends) > 1:
            raise ValueError("scores and probabilities of a calibration lie from 0 to 1")
        if (np.diff(self.scores) <= 0).any() or (np.diff(self.probabilities) < 0).any():
            raise ValueError("scores of a calibration rise, and its probabilities do not fall")
        return self

    @property
    def slopes(self) -> Float[np.ndarray, "corners"]:
        """Slope of the line behind each corner; 0 behind the last, where the curve is level."""
        rises = np.diff(self.probabilities) / np.diff(self.scores)
        return np.append(rises, 0.0)

    def of(self, scores: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
        """Return probabilities in the strict order of the scores."""
        steps = np.interp(scores, self.scores, self.probabilities)
        return np.asarray((1 - ORDER) * steps + ORDER * scores)


class PUCalibrator(BaseEstimator):  # type: ignore[misc]
    """Turns scores into probabilities of being positive, in the order of the scores.

    Scores must be of items that the model was not trained on (held out, or out of fold), and P
    must be typical of all positives (SCAR). Where the two and the prior contradict each other,
    `fit` raises instead of giving probabilities that mean nothing.

    Examples:
        >>> import numpy as np
        >>> from onesided.metrics.calibration import PUCalibrator
        >>> random = np.random.default_rng(0)
        >>> positive, negative = random.beta(4, 2, 1500), random.beta(2, 4, 1000)
        >>> scores, labels = np.append(positive, negative), np.arange(2500) < 500
        >>> calibrator = PUCalibrator(prior=0.5).fit(scores, labels.astype(int))
        >>> bool(calibrator.predict(np.array([0.9]))[0] > 0.8)
        True

    Args:
        prior: Share of positives among the unlabelled items; not needed by `fit_answers`.
    """

    def __init__(self, prior: float | None = None) -> None:
        self.prior = prior

    def fit(self, scores: Float[np.ndarray, "n"], labels: Int64[np.ndarray, "n"]) -> "PUCalibrator":
        """Learn from scores of P (1) and U (0)."""
        if self.prior is None or not 0 < self.prior < 1:
            raise ConfigError(
                f"PUCalibrator needs a prior between 0 and 1, both excluded; got {self.prior}."
            )
        labelled = labels == 1
        _check(scores, labelled.any() and not labelled.all(), "both P (1) and U (0)")
        ends = np.array([scores.min(), scores.max()])
        every, is_p = np.append(scores, ends), np.append(labelled, [True, False])
        weights = np.append(np.ones(len(scores)), [AT_ENDS, AT_ENDS])
        there = _rising(every, is_p.astype(np.float64), weights).predict(every)
        odds = self.prior * weights[~is_p].sum() / weights[is_p].sum()
        with np.errstate(divide="ignore"):
            probability = np.minimum(odds * there / (1 - there), 1.0)
        lost = 1 - float(np.average(probability[~is_p], weights=weights[~is_p])) / self.prior
        if lost > MOST_LOST:
            raise DataError(
                f"Too few unlabelled items score like P for a prior of {self.prior:.3g}: "
                f"probabilities would exceed 1, and {lost:.0%} of the prior be lost. The prior is "
                "too high, or P is not typical of all positives; calibrate by answers instead."
            )
        self.curve_ = _rising(every, probability, weights)
        return self

    def fit_answers(
        self,
        scores: Float[np.ndarray, "n"],
        classes: Int64[np.ndarray, "n"],
        weights: Float[np.ndarray, "n"] | None = None,
    ) -> "PUCalibrator":
        """Learn from known classes, which needs neither SCAR nor a prior.

        Args:
            scores: Of answered items.
            classes: POSITIVE or NEGATIVE.
            weights: Items of the pool that each stands for, if the draw was not uniform.
        """
        known = np.isin(classes, (POSITIVE, NEGATIVE)).all() and len(np.unique(classes)) == 2
        _check(scores, bool(known), "positive and negative answers, and no others")
        weight = np.ones(len(scores)) if weights is None else weights
        values = (classes == POSITIVE).astype(np.float64)
        sure = _rising(scores, values, weight).predict([scores.min(), scores.max()])
        # A step of positives, or of negatives, alone gets half an answer against it.
        ends = np.flatnonzero(sure == [0, 1])
        rows = np.array([scores.argmin(), scores.argmax()])[ends]
        self.curve_ = _rising(
            np.append(scores, scores[rows]),
            np.append(values, 1.0 - ends),
            np.append(weight, AT_ENDS * weight[rows]),
        )
        return self

    def predict(self, scores: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
        """Return the probability of being positive for each score."""
        check_is_fitted(self, "curve_")
        return np.asarray(self.curve_.predict(scores), dtype=np.float64)

    def calibration(self, basis: Literal["prior", "answers"]) -> Calibration:
        """Return the curve as plain numbers."""
        check_is_fitted(self, "curve_")
        return Calibration(
            scores=tuple(self.curve_.X_thresholds_.tolist()),
            probabilities=tuple(self.curve_.y_thresholds_.tolist()),
            basis=basis,
        )


def _rising(
    scores: Float[np.ndarray, "n"],
    values: Float[np.ndarray, "n"],
    weights: Float[np.ndarray, "n"] | None,
) -> IsotonicRegression:
    """Return the rising function of the scores that is nearest to the values."""
    curve = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    return curve.fit(scores, values, sample_weight=weights)


def _check(scores: Float[np.ndarray, "n"], enough: bool, what: str) -> None:
    if not enough:
        raise DataError(f"Calibration needs {what}.")
    if not np.isfinite(scores).all():
        raise DataError("Scores hold NaN or infinity; they must be finite numbers.")
