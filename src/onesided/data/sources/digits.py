"""Handwritten digits that come with scikit-learn: no download, no files, 1797 images.

Even against odd is the default task: each side mixes five digits that look nothing like
each other, as the vehicles and animals of CIFAR-10 do, so that one direction in pixel
space does not solve it.
"""

from pathlib import Path

import numpy as np
from jaxtyping import Int64

from onesided.data.problem.samples import Samples, Source

CLASS_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_INK_LEVELS = 16  # grey values are counts of dark pixels in 4 x 4 cells
_EVERY_TEST = 3


def load_digits(root: Path | None = None) -> Source:
    """Return the digits as 1x8x8 images, 1201 to train and 596 to test."""
    from sklearn.datasets import load_digits as load_published  # 1 s to import: only on demand

    published = load_published()
    classes = published.target.astype(np.int64)
    images = np.rint(published.images * (255 / _INK_LEVELS)).astype(np.uint8)[:, None]

    def part(rows: np.ndarray) -> Samples:
        return Samples(
            values=images[rows],
            classes=classes[rows],
            names=tuple(f"digits/{row:04d}" for row in rows),
            class_names=CLASS_NAMES,
            kind="digit",
        )

    train, test = rows_by_thirds(classes)
    return Source(train=part(train), test=part(test))


def rows_by_thirds(classes: Int64[np.ndarray, "n"]) -> tuple[np.ndarray, np.ndarray]:
    """Return rows to train on and rows to test on: the latter every third of each class.

    That needs no random numbers. Neighbours in the order of publication, which are often by
    the same hand, fall on both sides.
    """
    is_test = np.zeros(len(classes), dtype=bool)
    for label in np.unique(classes):
        is_test[np.flatnonzero(classes == label)[_EVERY_TEST - 1 :: _EVERY_TEST]] = True
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)
