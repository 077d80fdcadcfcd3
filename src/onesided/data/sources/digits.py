"""Handwritten digits that come with scikit-learn: no download, no files, 1797 images.

Even against odd is the default task: each side mixes five digits that look nothing like
each other, as the vehicles and animals of CIFAR-10 do, so that one direction in pixel
space does not solve it.
"""

from pathlib import Path

import numpy as np

from onesided.data.problem.samples import Samples, Source

CLASS_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_INK_LEVELS = 16  # grey values are counts of dark pixels in 4 x 4 cells
_EVERY_TEST = 3


def load_digits(root: Path | None = None) -> Source:
    """Return the digits as 1x8x8 images, 1201 to train and 596 to test.

    Every third image of each digit, in the order of publication, is a test image. That
    needs no random numbers, and neighbours, which tend to be by the same hand, fall on
    both sides.
    """
    from sklearn.datasets import load_digits as load_published  # 1 s to import: only on demand

    published = load_published()
    classes = published.target.astype(np.int64)
    images = np.rint(published.images * (255 / _INK_LEVELS)).astype(np.uint8)[:, None]
    occurrence = np.zeros(len(classes), dtype=np.int64)
    for digit in range(10):
        rows = np.flatnonzero(classes == digit)
        occurrence[rows] = np.arange(len(rows))
    is_test = occurrence % _EVERY_TEST == _EVERY_TEST - 1

    def part(rows: np.ndarray) -> Samples:
        return Samples(
            values=images[rows],
            classes=classes[rows],
            names=tuple(f"digits/{row:04d}" for row in rows),
            class_names=CLASS_NAMES,
            kind="digit",
        )

    return Source(train=part(np.flatnonzero(~is_test)), test=part(np.flatnonzero(is_test)))
