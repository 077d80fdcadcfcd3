"""Tables of numbers that come with scikit-learn: no download, no files, a few hundred rows.

Features are standardised by their training part. So a table needs no list of means, though
its columns have different units.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from onesided.data.problem.samples import Samples, Source
from onesided.data.sources.digits import load_digits, rows_by_thirds

BREAST_CANCER, DIGIT_VECTORS = "breast-cancer", "digit-vectors"
BREAST_CANCER_FEATURES, DIGIT_FEATURES = 30, 64
MALIGNANT = 0


def load_breast_cancer(root: Path | None = None) -> Source:
    """Return 569 tumours by 30 measurements of their cell nuclei, a third of them to test."""
    from sklearn.datasets import load_breast_cancer as load_published  # 1 s to import

    published = load_published()
    classes = published.target.astype(np.int64)

    def part(rows: np.ndarray) -> Samples:
        return Samples(
            values=published.data[rows].astype(np.float32),
            classes=classes[rows],
            names=tuple(f"{BREAST_CANCER}/{row:03d}" for row in rows),
            class_names=tuple(published.target_names.tolist()),
            kind="vector",
        )

    train, test = rows_by_thirds(classes)
    return _standardised(part(train), part(test))


def load_digit_vectors(root: Path | None = None) -> Source:
    """Return the handwritten digits as 64 numbers, as if it were unknown that they are pixels."""
    published = load_digits()
    assert published.test is not None

    def flat(part: Samples) -> Samples:
        vectors = part.values.reshape(len(part), -1).astype(np.float32) / 255
        return replace(part, values=vectors, kind="vector")

    return _standardised(flat(published.train), flat(published.test))


def _standardised(train: Samples, test: Samples) -> Source:
    mean, std = train.values.mean(axis=0), train.values.std(axis=0)
    scale = np.where(std > 0, std, 1)  # the corners of digits are always empty
    shifted = [replace(part, values=(part.values - mean) / scale) for part in (train, test)]
    return Source(train=shifted[0], test=shifted[1])
