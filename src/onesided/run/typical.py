"""Whether P is typical of all positives, after a search: the test on the run's own scores."""

from dataclasses import replace

import numpy as np

from onesided.engine.predict import Predictor
from onesided.metrics.reference import FEWEST, MOST_FITTED, Reference, fit_reference
from onesided.metrics.typical import DIRECTIONS, Sample, Typical, is_typical
from onesided.run.calibrated import Calibrated
from onesided.run.familiar import numbers_at, pool_numbers
from onesided.run.prior import PriorUsed
from onesided.run.problem import Problem
from onesided.run.scored import Scored


def examine(
    problem: Problem,
    predictor: Predictor,
    scored: Scored,
    calibrated: Calibrated,
    prior: PriorUsed | None,
) -> Typical | None:
    """Return the test of P against U; None where it cannot be made.

    It needs what probabilities need: out-of-fold scores, and a prior that says something. The
    prior counts at the low end of its interval, because a prior that is too high looks like P
    that is not typical.
    """
    if calibrated.curve is None or prior is None:
        return None
    least = prior.value if prior.low is None else prior.low
    data, counted = problem.split.train, scored.train_counted
    rows, numbers = pool_numbers(problem, predictor)
    plane = fit_reference(numbers, seed=problem.config.seed)
    if plane is None or least <= 0:
        return None
    labelled = np.flatnonzero(data.labelled if counted is None else data.labelled & counted)
    labelled = labelled[:MOST_FITTED]
    if counted is not None:
        rows, numbers = rows[counted[rows]], numbers[counted[rows]]
    if min(len(labelled), len(rows)) < FEWEST // 2:
        return None
    unlabelled = _sample(plane, scored.train[rows], numbers)
    positive = _sample(plane, scored.train[labelled], numbers_at(problem, predictor, labelled))
    probabilities = calibrated.curve.of(unlabelled.scores)
    return is_typical(positive, unlabelled, probabilities, prior=least, seed=problem.config.seed)


def _sample(plane: Reference, scores: np.ndarray, numbers: np.ndarray) -> Sample:
    """Return the items along the first directions, which no label has chosen."""
    return Sample(scores, plane.positions(numbers)[:, :DIRECTIONS])


def without_probabilities(calibrated: Calibrated, found: Typical | None) -> Calibrated:
    """Return the calibration, or none where P is not typical: it rests on that."""
    if found is None or not found.rejected:
        return calibrated
    reason = f"There are no probabilities, because they rest on a typical P. {found.sentence}"
    return replace(calibrated, curve=None, explained=reason, reliability=None)
