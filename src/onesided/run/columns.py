"""The columns of a ranking. Imports no torch: an exported model is ranked without it."""

import numpy as np

from onesided.metrics.calibration import Calibration


def columns_of(curve: Calibration | None) -> tuple[str, ...]:
    """Return the columns of a ranking: a probability only where there is a curve."""
    return ("item", "score", *(("probability",) if curve else ()), "rank", "decision")


def numbers_of(score: float, curve: Calibration | None) -> tuple[str, ...]:
    """Return score and probability as a ranking writes them."""
    if curve is None:
        return (f"{score:.9g}",)
    return f"{score:.9g}", f"{curve.of(np.array([score]))[0]:.6g}"
