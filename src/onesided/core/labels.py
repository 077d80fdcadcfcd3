"""What labels mean.

The paper and its formulas number the classes 0 = positive, 1 = negative. Public functions
follow scikit-learn, so here **POSITIVE = 1 and NEGATIVE = 0**, and a
column of logits or probabilities is found by these names, never by a bare number.
Where a formula of the paper says f_1 (probability of negative), the code says
`p_negative`.

In a PU label, 1 means "observed positive" and 0 means "unlabelled": not negative.
"""

from enum import IntEnum
from typing import Literal

import numpy as np
from jaxtyping import Bool, Int8
from numpy.typing import ArrayLike

from onesided.core.errors import DataError


class Label(IntEnum):
    """True class of a sample; also the column of two-class logits."""

    NEGATIVE = 0
    POSITIVE = 1
    UNKNOWN = -1


POSITIVE, NEGATIVE, UNKNOWN = int(Label.POSITIVE), int(Label.NEGATIVE), int(Label.UNKNOWN)

LabelScheme = Literal["pu", "pnu"]


def normalise_pu_labels(
    labels: ArrayLike, *, labels_mean: LabelScheme = "pu"
) -> tuple[Bool[np.ndarray, "n"], Int8[np.ndarray, "n"]]:
    """Turn the labels that people use into `labelled` and the known classes.

    Accepts 1/0, 1/-1 and booleans as positive/unlabelled. Three-valued labels are
    ambiguous (is 0 or -1 the unlabelled one?), so they are refused unless the caller
    says `labels_mean="pnu"`: 1 positive, 0 unlabelled, -1 known negative.

    Returns:
        `labelled` (observed positive) and `known` (POSITIVE, NEGATIVE or UNKNOWN).
    """
    try:
        values = np.asarray(labels)
    except ValueError:
        raise DataError(
            "Labels must be one number per sample; got a list of lists of unequal length."
        ) from None
    if values.ndim != 1:
        raise DataError(
            f"Labels must be one number per sample; got an array of shape {values.shape}."
        )
    if values.dtype.kind not in "biuf":
        raise DataError(
            f"Labels must be numbers or booleans (1 positive, 0 unlabelled); got {values.dtype}."
        )
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise DataError("Labels hold NaN or infinity; use 1 for positive and 0 for unlabelled.")
    seen = set(np.unique(values).tolist())
    if labels_mean == "pu":
        if seen - {0, 1} and seen - {-1, 1}:
            shown = ", ".join(str(value) for value in sorted(seen)[:6])
            raise DataError(
                f"Labels must have two values, 1 positive and 0 (or -1) unlabelled; got {shown}. "
                'If -1 marks known negatives and 0 unlabelled, say labels_mean="pnu".'
            )
    elif seen - {-1, 0, 1}:
        raise DataError(
            'labels_mean="pnu" means 1 positive, 0 unlabelled, -1 negative; got '
            f"{sorted(seen)[:6]}."
        )
    labelled = values == 1
    if not labelled.any():
        raise DataError("No label is 1: at least a few positives are needed to learn from.")
    unlabelled = values == 0 if labels_mean == "pnu" else ~labelled
    if not unlabelled.any():
        raise DataError("No sample is unlabelled; unlabelled samples (0) are needed too.")
    known = np.full(len(values), UNKNOWN, dtype=np.int8)
    known[labelled] = POSITIVE
    if labels_mean == "pnu":
        known[values == -1] = NEGATIVE
    return labelled, known
