"""Images or vectors with their classes and names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Float64, Int64

from onesided.core.errors import DataError
from onesided.data.columns.cells import Column

ImageKind = Literal["photograph", "remote", "digit", "vector"]
"""What augmentation may do: a flipped 6 is no digit, and radar has no colour."""
NEARLY_BLACK, FOUR_BITS = 2, 16
"""Images whose highest value of 255 is no higher hold 0 and 1, or were divided by 255 twice; many
of which none is above 16 hold 4 bits."""
MANY = 10
"""So many images are not all of a night."""
CHUNK_ITEMS = 1024
"""Most items in memory at a time; a kill loses no more."""
CHUNK_BYTES = 2**24
"""Most bytes of samples in memory at a time; a larger sample is alone."""


@dataclass(frozen=True)
class Samples:
    """Items with their class and name; nothing about P or U yet.

    Attributes:
        values: uint8 images (N, C, H, W), in memory or memory-mapped, or float32
            vectors (N, D), or raw rows (N, columns) of a table.
        classes: Class index of each item, -1 where it is unknown.
        names: What files for people call the item, for example its path.
        class_names: In the order of their index.
        kind: Which augmentation suits these items.
        skipped: Files that could not be read, with the reason.
        groups: Kind of group (tile, event) to the group of each item; may be empty.
        feature_names: Of the numbers of a vector, in their order; may be empty.
        columns: Of raw rows, in their order; empty where the values are images or vectors.
        weights: How much each item counts in training; None where all count the same.
    """

    values: np.ndarray
    classes: Int64[np.ndarray, "n"]
    names: tuple[str, ...]
    class_names: tuple[str, ...] = ()
    kind: ImageKind = "photograph"
    skipped: tuple[tuple[str, str], ...] = ()
    groups: Mapping[str, np.ndarray] = field(default_factory=dict)
    feature_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    weights: Float64[np.ndarray, "n"] | None = None

    def __post_init__(self) -> None:
        if self.values.ndim == 4 and self.values.dtype != np.uint8:
            raise DataError(f"Images must be uint8 (N, C, H, W); got {self.values.dtype}.")
        if self.values.ndim not in (2, 4):
            raise DataError(
                "Samples must be images (N, C, H, W) or vectors (N, D); "
                f"got an array of shape {self.values.shape}."
            )
        if not len(self.values) == len(self.classes) == len(self.names):
            raise DataError(
                f"{len(self.values)} samples, {len(self.classes)} classes and "
                f"{len(self.names)} names: these three must be equal."
            )
        if self.feature_names and (len(self.feature_names),) != self.sample_shape:
            raise DataError(
                f"{len(self.feature_names)} names of features for samples of the shape "
                f"{self.sample_shape}: there must be one for each number of a vector."
            )

    def __len__(self) -> int:
        return len(self.values)

    @property
    def own_groups(self) -> np.ndarray | None:
        """The group of each of people's own items, which have at most one kind of groups."""
        return next(iter(self.groups.values()), None)

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """(C, H, W) of an image or (D,) of a vector."""
        return tuple(self.values.shape[1:])


@dataclass(frozen=True)
class Source:
    """A data set as its publisher ships it: training part, test part, or both.

    `unlabelled` is set where the publisher provides a part without classes (STL-10), and
    `train_share` where there is no test part: a split then trains on that share of the
    samples and tests on the rest. `side` is set where the publisher divides samples that are
    all in `train`: "train", "test", or "apart" for a part that is kept for a last check.
    """

    train: Samples
    test: Samples | None = None
    unlabelled: Samples | None = None
    files: tuple[Path, ...] = field(default=())
    train_share: float | None = None
    side: np.ndarray | None = None


def are_nearly_black(highest: int, count: int) -> bool:
    """Return whether so many images with this highest value of 255 were meant to be brighter."""
    return 0 < highest <= (FOUR_BITS if count >= MANY else NEARLY_BLACK)


def chunk_length(sample_shape: tuple[int, ...]) -> int:
    """Return how many items of this shape are in memory at a time.

    A thousand small ones, up to 73 by 73 pixels of colour; fewer of larger ones, so that all
    samples of a chunk have `CHUNK_BYTES` at most.
    """
    # The network gets no more than a chunk at once, so this bounds its layers too: as floats a
    # chunk is 64 MiB, and 1.4 GiB behind a first layer of 64 channels at full resolution.
    # Images are single bytes, the numbers of vectors have four.
    size = prod(sample_shape) * (1 if len(sample_shape) == 3 else 4)
    return max(1, min(CHUNK_ITEMS, CHUNK_BYTES // size))
