"""Probabilities of a finished run: the curve, what it rests on, or why there is none."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onesided.core.errors import DataError
from onesided.core.labels import POSITIVE, UNKNOWN
from onesided.data.problem.dataset import PUSplit
from onesided.metrics.calibration import Calibration, PUCalibrator
from onesided.metrics.figure import VAGUE, PUEvaluation
from onesided.metrics.reliability import FEWEST, Reliability, reliability
from onesided.run.prior import PriorUsed
from onesided.run.scored import Scored

FEWEST_SCORES = 20
"""Scores of P, and of U, below which a curve through them would be chance."""


@dataclass(frozen=True)
class Calibrated:
    """The curve from scores to probabilities, or why there is none, in a sentence.

    Attributes:
        curve: None where there is none.
        explained: What the probabilities rest on, or the reason why there are none.
        reliability: How far they are from the truth, where it is known.
    """

    curve: Calibration | None
    explained: str
    reliability: Reliability | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the entry `calibration` of `result.json`."""
        found = self.reliability
        return {
            "basis": self.curve.basis if self.curve else None,
            "explained": self.explained,
            "reliability": found.to_json() if found else None,
        }


def calibrate(
    scored: Scored, prior: PriorUsed | None, evaluation: PUEvaluation | None
) -> Calibrated:
    """Return the curve from out-of-fold scores of P and U and the prior of the run."""
    if reason := _obstacle(scored, prior, evaluation):
        return Calibrated(None, f"There are no probabilities: {reason}")
    pair = scored.held_out_pair()
    assert pair is not None
    assert prior is not None
    labels = np.repeat([1, 0], [len(part) for part in pair])
    try:
        calibrator = PUCalibrator(prior.value).fit(np.concatenate(pair), labels)
    except DataError as error:
        return Calibrated(None, f"There are no probabilities. {error}")
    return Calibrated(calibrator.calibration("prior"), _basis(prior))


def _obstacle(
    scored: Scored, prior: PriorUsed | None, evaluation: PUEvaluation | None
) -> str | None:
    """Return why these scores give no probabilities; None where they do."""
    pair = scored.held_out_pair()
    if scored.fold is None:
        return (
            "a method by name scores items that it was trained on as unlabelled. Leave --method "
            "out: auto scores every item by a model that was not trained on it."
        )
    if pair is None or min(map(len, pair)) < FEWEST_SCORES:
        counts = (0, 0) if pair is None else tuple(map(len, pair))
        return (
            f"they take out-of-fold scores of {FEWEST_SCORES} different positives and as many "
            f"unlabelled items, and there are {counts[0]} and {counts[1]}."
        )
    if evaluation is not None and evaluation.degenerate:
        return "the model does not separate positives from the rest."
    if prior is None:
        return (
            "the share of positives among the unlabelled items (the prior) was not given and "
            "cannot be estimated from these scores. Give it with --prior, or audit the pool."
        )
    if prior.interval and prior.interval[1] - prior.interval[0] > VAGUE:
        low, high = prior.interval
        return (
            f"the prior cannot be told; all from {low:.3f} to {high:.3f} fits. Give it with "
            "--prior, or audit the pool."
        )
    return None


def _basis(prior: PriorUsed) -> str:
    """Return what probabilities rest on."""
    if prior.interval is None:
        known = f"the prior {prior.value:.3f}, taken as exact"
    else:
        low, high = prior.interval
        known = f"the prior {prior.value:.3f} (95 % interval {low:.3f} to {high:.3f})"
    return (
        f"A probability is about items like those of the pool. It rests on {known}, in proportion: "
        "half the prior means half of each; and on P being typical of all positives (SCAR)."
    )


def with_truth(found: Calibrated, scored: Scored, split: PUSplit) -> Calibrated:
    """Return it with its error, where true classes of the pool are known; they choose nothing."""
    if found.curve is None:
        return found
    scores, truth = _known_classes(scored, split)
    if len(truth) < FEWEST:
        return found
    probabilities = found.curve.of(scores)
    return replace(found, reliability=reliability(probabilities, truth == POSITIVE))


def _known_classes(scored: Scored, split: PUSplit) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and true classes of unlabelled items, each content once; none if unknown."""
    parts = [(scored.train, scored.train_counted, split.train)]
    if split.held_out is not None and scored.held_out is not None:
        parts.append((scored.held_out, scored.held_out_counted, split.held_out))
    scores, truth = [np.empty(0)], [np.empty(0, np.int64)]
    for values, counted, data in parts:
        rows = data.unlabelled & (data.truth != UNKNOWN)
        rows = rows if counted is None else rows & counted
        scores.append(values[rows])
        truth.append(data.truth[rows])
    return np.concatenate(scores), np.concatenate(truth)
