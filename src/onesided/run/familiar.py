"""What a model was trained on, taken when it is trained, and asked when it scores other items."""

import numpy as np

from onesided.data.problem.dataset import Selection
from onesided.engine.predict import Predictor, compared_numbers
from onesided.metrics.reference import (
    MOST_COLUMNS,
    MOST_COUNTED,
    MOST_FITTED,
    Reference,
    fit_reference,
)
from onesided.run.problem import Problem
from onesided.run.scored import Scored


def pool_numbers(problem: Problem, predictor: Predictor) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of the unlabelled training pool, not too many, and their numbers to compare."""
    data = problem.split.train
    rows = np.flatnonzero(data.unlabelled)
    most = MOST_FITTED + MOST_COUNTED
    if len(rows) > most:
        rows = rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]
    return rows, numbers_at(problem, predictor, rows)


def numbers_at(problem: Problem, predictor: Predictor, rows: np.ndarray) -> np.ndarray:
    """Return the numbers of training rows by which they are compared with others."""
    values = problem.split.train.values
    return compared_numbers(predictor.inputs(Selection(values.pool, values.index[rows])))


def reference_of(problem: Problem, predictor: Predictor, scored: Scored) -> Reference | None:
    """Return what to compare new items with; None where the pool is too small."""
    _, numbers = pool_numbers(problem, predictor)
    pair = scored.held_out_pair()
    names: tuple[str, ...] = ()
    if predictor.encoder is not None:
        encoder = predictor.encoder
        names = tuple(encoder.columns[column].name for column in encoder.column_of)
    elif numbers.shape[1] <= MOST_COLUMNS:
        names = tuple(problem.data.source.feature_names)
    scores = None if pair is None else pair[1]
    return fit_reference(numbers, scores, names=names, seed=problem.config.seed)
