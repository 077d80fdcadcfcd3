"""Two Gaussian clouds, as vectors and as tiny images: data for tests, without files.

Positives are N((+2, 0), 1), negatives N((-2, 0), 1). With 40 % positives no classifier
is right more often than 97.78 %, and the boundary is at x1 = ln(1.5) / 4 = 0.1014.
"""

from pathlib import Path

import numpy as np

from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.data.problem.samples import ImageKind, Samples, Source

CLASS_NAMES = ("negative", "positive")
POSITIVE_CLASSES = (POSITIVE,)
_SIDE = 8
_SEED = 20


def load_toy_vectors(root: Path | None = None) -> Source:
    """Return the clouds as points of the plane: 3200 to train, 10000 to test."""
    random = np.random.default_rng(_SEED)

    def part(name: str, positives: int, negatives: int) -> Samples:
        points, classes = _clouds(random, positives, negatives)
        return _samples(name, points.astype(np.float32), classes, "vector")

    return Source(train=part("train", 1500, 1700), test=part("test", 4000, 6000))


def load_toy_images(root: Path | None = None) -> Source:
    """Return the clouds as 3x8x8 images: 500 to train, 250 to test."""
    random = np.random.default_rng(_SEED)

    def part(name: str, positives: int, negatives: int) -> Samples:
        points, classes = _clouds(random, positives, negatives)
        return _samples(name, _draw(points, random), classes, "photograph")

    return Source(train=part("train", 220, 280), test=part("test", 100, 150))


def _clouds(
    random: np.random.Generator, positives: int, negatives: int
) -> tuple[np.ndarray, np.ndarray]:
    classes = np.repeat(np.array([POSITIVE, NEGATIVE], dtype=np.int64), [positives, negatives])
    random.shuffle(classes)
    points = random.standard_normal((len(classes), 2))
    points[:, 0] += np.where(classes == POSITIVE, 2.0, -2.0)
    return points, classes


def _draw(points: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Draw a point: its first number as light from above, its second as warmth of colour.

    Neither is undone by a horizontal flip, and both survive a moderate crop, so weak
    and strong views keep their class.
    """
    from_above = np.broadcast_to(np.linspace(1, -1, _SIDE)[:, None], (3, _SIDE, _SIDE))
    warmth = np.broadcast_to(np.array([1.0, 0.0, -1.0])[:, None, None], (3, _SIDE, _SIDE))
    light = np.einsum("nk,kchw->nchw", points, np.stack([from_above, warmth]))
    noise = random.standard_normal(light.shape)
    grey: np.ndarray = np.clip(np.rint(128 + 20 * light + 8 * noise), 0, 255)
    return grey.astype(np.uint8)


def _samples(part: str, values: np.ndarray, classes: np.ndarray, kind: ImageKind) -> Samples:
    names = tuple(f"{part}/{row:05d}" for row in range(len(values)))
    return Samples(values=values, classes=classes, names=names, class_names=CLASS_NAMES, kind=kind)
