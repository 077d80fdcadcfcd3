"""Small PU problems whose answer is known, and settings of trainings that take a second."""

from dataclasses import dataclass
from typing import Any

import numpy as np

TINY: dict[str, Any] = {"backbone": {"width": 0.125}, "train": {"batch_size": 16}}
"""Settings of a narrow network."""


@dataclass(frozen=True)
class Problem:
    """Samples, their PU labels, and the truth that no estimator sees."""

    X: np.ndarray
    y: np.ndarray
    truth: np.ndarray


def two_clouds(rows: int = 120, features: int = 6, seed: int = 0) -> Problem:
    """Return vectors of two distant normal clouds; half of the positives are labelled."""
    random = np.random.default_rng(seed)
    truth = np.arange(rows) % 2
    points = random.normal(size=(rows, features)) + 3 * truth[:, None]
    return Problem(points, (truth * (np.arange(rows) % 4 == 1)).astype(np.int64), truth)


def two_greys(rows: int = 60, side: int = 8, seed: int = 0) -> Problem:
    """Return bright and dark noisy images (N, 3, H, W); half of the bright are labelled."""
    random = np.random.default_rng(seed)
    truth = np.arange(rows) % 2
    noise = random.integers(0, 60, (rows, 3, side, side + 1), dtype=np.uint8)
    images = noise + (150 * truth[:, None, None, None]).astype(np.uint8)
    return Problem(images, (truth * (np.arange(rows) % 4 == 1)).astype(np.int64), truth)
