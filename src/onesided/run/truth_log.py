"""True accuracy during training, for curves of a benchmark: logged outside the method."""

from collections.abc import Callable, Mapping

import numpy as np

from onesided.core.clock import Clock
from onesided.core.labels import POSITIVE, UNKNOWN
from onesided.data.problem.dataset import PUSplit, Selection
from onesided.engine.predict import Predictor

MOST_ROWS = 5000
"""Unlabelled rows that are scored: enough for a curve."""


def true_accuracy(split: PUSplit, every: int) -> Callable[[Clock, Predictor], Mapping[str, float]]:
    """Return what measures accuracy on test data and on U, after every so many epochs.

    Only for logging: nothing that trains, stops or chooses may see the truth.
    """
    pool = np.flatnonzero(split.train.unlabelled & (split.train.truth != UNKNOWN))
    some = pool[np.unique(np.linspace(0, len(pool) - 1, MOST_ROWS).astype(np.int64))[: len(pool)]]
    unlabelled = Selection(split.train.values.pool, split.train.values.index[some])

    def measure(clock: Clock, predictor: Predictor) -> Mapping[str, float]:
        done = clock.epoch + 1
        if done % every and done != clock.epochs:
            return {}
        found = {}
        if split.test is not None:
            found["test_oa"] = _accuracy(predictor, split.test.values, split.test.truth)
        if len(some):
            found["unlabelled_oa"] = _accuracy(predictor, unlabelled, split.train.truth[some])
        return found

    return measure


def _accuracy(predictor: Predictor, values: Selection, truth: np.ndarray) -> float:
    called = predictor.scores(values) > predictor.threshold
    return float(np.mean(called == (truth == POSITIVE)))
