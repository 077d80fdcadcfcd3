"""The y of scikit-learn users: numbers, words, gaps, and which of them mean what."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import column_or_1d

from onesided.core.errors import DataError
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN, LabelScheme
from onesided.data.columns.cells import WrongCell, plain
from onesided.estimator.inputs import checked_labels, classes_of
from onesided.storage.labels import NAMES, WORDS

Label = str | int | float | bool | None
_CODES = {POSITIVE: 1, UNKNOWN: 0, NEGATIVE: -1}  # as labels_mean="pnu" has them


@dataclass(frozen=True)
class GivenLabels:
    """PU labels, and what predictions call the two classes.

    Attributes:
        values: One number for each sample.
        scheme: What the numbers mean; see `normalise_pu_labels`.
        classes: What `predict` returns for negative and for positive.
    """

    values: np.ndarray
    scheme: LabelScheme
    classes: np.ndarray


def read_labels(
    labels: ArrayLike, labels_mean: LabelScheme, *, positive: Label, unlabelled: Label
) -> GivenLabels:
    """Return y as PU labels; raise where it does not say which samples are unlabelled.

    Gaps (None, NaN) are unlabelled. `positive` and `unlabelled` name values; where there are
    both and a further value, that one is known to be negative.
    """
    column = _column(labels)
    said = positive is not None or unlabelled is not None
    if column.dtype.kind in "biu" and not said:
        return _plain_labels(column, labels_mean)
    cells = _cells(column)
    words = cells and any(isinstance(cell, str | None) for cell in cells)
    if not cells or not (said or words):
        return _plain_labels(column, labels_mean)
    if not said and set(map(_word, cells)) <= {*WORDS, ""}:
        known = [WORDS.get(_word(cell), UNKNOWN) for cell in cells]
        return _coded(known, (NAMES[NEGATIVE], NAMES[POSITIVE]))
    return _named(cells, positive, unlabelled)


def _plain_labels(column: np.ndarray, labels_mean: LabelScheme) -> GivenLabels:
    values = checked_labels(column, labels_mean)
    return GivenLabels(values, labels_mean, classes_of(values, labels_mean))


def _column(labels: ArrayLike) -> np.ndarray:
    """Return y as one axis; a list of words and None has no other type than object."""
    if labels is None:
        raise DataError(
            "PUClassifier requires y to be passed, but the target y is None: give a label for each "
            "sample, 1 positive and 0 unlabelled."
        )
    if isinstance(labels, list | tuple) and any(
        isinstance(label, str) or label is None for label in labels
    ):
        labels = np.array(labels, object)
    column: np.ndarray = column_or_1d(labels, warn=True)
    return column


def _cells(column: np.ndarray) -> list[Any] | None:
    """Return y with None for its gaps and Python's own values; None where it is no column."""
    try:
        return [None if plain(cell) is None else _own(cell) for cell in column.tolist()]
    except WrongCell:
        return None


def _own(cell: object) -> object:
    return cell.item() if isinstance(cell, np.generic) else cell


def _word(cell: object) -> str:
    return cell.strip().lower() if isinstance(cell, str) else "" if cell is None else "\0"


def _named(cells: list[Any], positive: Label, unlabelled: Label) -> GivenLabels:
    """Return labels by the values that mean positive and unlabelled."""
    values = list(dict.fromkeys(cell for cell in cells if cell is not None))
    gaps = None in cells
    if gaps and unlabelled is not None and plain(unlabelled) is None:
        unlabelled = None  # a word such as "?", which stands for a gap everywhere
    seen = ", ".join([*map(str, sorted(values, key=str)[:6]), *(["NaN or None"] if gaps else [])])
    for name, value in (("positive", positive), ("unlabelled", unlabelled)):
        if value is not None and value not in values:
            raise DataError(f"{name} is {value!r}, but no label is: y holds {seen}.")
    rest = [value for value in values if value not in (positive, unlabelled)]
    if positive is None and len(rest) == 1 and (gaps or unlabelled is not None):
        positive, rest = rest[0], []
    if positive is None or len(rest) > 1:
        raise DataError(
            f"Only binary classification is supported, and y holds more than it says: got {seen}. "
            "Say which value is positive=, which is unlabelled= (NaN and None are), and leave one "
            "other value at most, for known negatives."
        )
    if unlabelled is None and not gaps and rest:
        unlabelled, rest = rest[0], []
    meanings = {positive: POSITIVE, None: UNKNOWN, unlabelled: UNKNOWN}
    known = [meanings.get(cell, NEGATIVE) for cell in cells]
    if POSITIVE not in known or UNKNOWN not in known:
        raise DataError(
            f"y holds one class only, {seen}. Both are needed: positive and unlabelled samples."
        )
    negative = rest[0] if rest else unlabelled
    return _coded(known, (_opposite(positive) if negative is None else negative, positive))


def _opposite(positive: Label) -> Label:
    """Return what a prediction calls negative where no label has a name for it."""
    if isinstance(positive, str):
        return f"not {positive}"
    if not positive:
        raise DataError(
            f"The label {positive!r} cannot be the only one, beside gaps: predictions need another "
            "value for negative. Use 1 for positive."
        )
    return type(positive)(0)


def _coded(known: list[int], classes: tuple[Any, Any]) -> GivenLabels:
    values = np.array([_CODES[label] for label in known])
    if POSITIVE not in known or UNKNOWN not in known:
        missing = NAMES[UNKNOWN if POSITIVE in known else POSITIVE]
        raise DataError(f"y holds one class only: no sample is {missing}. Both are needed.")
    return GivenLabels(values, "pnu", np.array(classes))
