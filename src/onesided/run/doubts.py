"""Why the figures of a run may mean nothing, although no formula notices."""

import numpy as np

from onesided.data.problem.clumps import clumps_told
from onesided.run.problem import Problem


def doubts_of(problem: Problem) -> tuple[str, ...]:
    """Return sentences about the data that a model was trained on, none where all seems well."""
    return (*problem.data.doubts, *_clumped(problem))


def _clumped(problem: Problem) -> tuple[str, ...]:
    """Return a sentence where positives lie in clumps, and nobody said what belongs together.

    Rows of a table are compared by what they were before they were encoded, images by their
    features; the pixels of images are compared by `data.problem.looks`.
    """
    data = problem.data if problem.data.embedder is not None else problem.data.source
    parts = [part for part in (data.split.train, data.split.held_out) if part is not None]
    if len(parts[0].values.sample_shape) != 1 or parts[0].groups is not None:
        return ()
    rows = [part.values.take(np.flatnonzero(part.labelled)) for part in parts]
    return clumps_told(np.concatenate(rows))
