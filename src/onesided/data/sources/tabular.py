"""Tables of numbers that come with scikit-learn: no download, no files, a few hundred rows.

Features are standardised by their training part, so that tables whose columns have the
most different units need no list of means beside their name.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Int64

from onesided.data.problem.samples import Samples, Source
from onesided.data.sources.digits import load_digits

BREAST_CANCER, DIGIT_VECTORS = "breast-cancer", "digit-vectors"
BREAST_CANCER_FEATURES, DIGIT_FEATURES = 30, 64
MALIGNANT = 0
_EVERY_TEST = 3


def load_breast_cancer(root: Path | None = None) -> Source:
    """Return 569 tumours by 30 measurements of their cell nuclei, a third of them to test.

    Every third row of each class, in the order of publication, is a test row: that needs
    no random numbers.
    """
    from sklearn.datasets import load_breast_cancer as load_published  # 1 s to import

    published = load_published()
    classes = published.target.astype(np.int64)
    is_test = _occurrence(classes) % _EVERY_TEST == _EVERY_TEST - 1

    def part(rows: np.ndarray) -> Samples:
        return Samples(
            values=published.data[rows].astype(np.float32),
            classes=classes[rows],
            names=tuple(f"{BREAST_CANCER}/{row:03d}" for row in rows),
            class_names=tuple(published.target_names.tolist()),
            kind="vector",
        )

    return _standardised(part(np.flatnonzero(~is_test)), part(np.flatnonzero(is_test)))


def load_digit_vectors(root: Path | None = None) -> Source:
    """Return the handwritten digits as 64 numbers, as if nobody knew that they are pixels."""
    published = load_digits()
    assert published.test is not None

    def flat(part: Samples) -> Samples:
        return replace(part, values=_flat(part.values), kind="vector")

    return _standardised(flat(published.train), flat(published.test))


def _occurrence(classes: Int64[np.ndarray, "n"]) -> Int64[np.ndarray, "n"]:
    """Return of each row how many of its class came before."""
    before = np.zeros(len(classes), dtype=np.int64)
    for label in np.unique(classes):
        rows = np.flatnonzero(classes == label)
        before[rows] = np.arange(len(rows))
    return before


def _flat(images: np.ndarray) -> Float32[np.ndarray, "n d"]:
    return images.reshape(len(images), -1).astype(np.float32) / 255


def _standardised(train: Samples, test: Samples) -> Source:
    mean, std = train.values.mean(axis=0), train.values.std(axis=0)
    scale = np.where(std > 0, std, 1)  # the corners of digits are always empty
    shifted = [replace(part, values=(part.values - mean) / scale) for part in (train, test)]
    return Source(train=shifted[0], test=shifted[1])
