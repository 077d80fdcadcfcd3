"""Weights: how much each item counts in training. Figures count every item once."""

import numpy as np
from jaxtyping import Bool, Float64

from onesided.core.errors import DataError


def checked_weights(
    given: Float64[np.ndarray, "n"],
    labelled: Bool[np.ndarray, "n"],
    unlabelled: Bool[np.ndarray, "n"],
    *,
    what: str,
) -> Float64[np.ndarray, "n"] | None:
    """Return the weights, or None where all are equal and say nothing; refuse those that are wrong.

    `what` is where they come from, for errors.
    """
    wrong = np.flatnonzero(~(np.isfinite(given) & (given >= 0)))
    if len(wrong):
        raise DataError(
            f"{what} holds {given[wrong[0]]:g} in row {wrong[0]}; a weight is a finite number from "
            "0 on."
        )
    if not given.any():
        raise DataError(f"All of {what} is zero, so there is nothing to learn from.")
    for kind, mask in (("positive", labelled), ("unlabelled", unlabelled)):
        if not given[mask].any():
            raise DataError(
                f"In {what} every {kind} sample is zero. Both are needed: give some of them a "
                "weight above zero."
            )
    return None if np.ptp(given) == 0 else given
