"""What a training step passes on: batch, outputs, losses.

`PUBatch` is all that a method may know about the data in one step. It holds the truth only
if the method declared that it needs it, so no method uses it by accident.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor


class Augment(StrEnum):
    """How strongly a view is augmented; what that means depends on the kind of image.

    Methods use weak and strong, as published. Gentle and patched replace them in runs that are
    too short to learn from small windows of an image.
    """

    PLAIN = "plain"
    GENTLE = "gentle"
    PATCHED = "patched"
    WEAK = "weak"
    STRONG = "strong"


@dataclass(frozen=True)
class Mixed:
    """One shuffled pass over P and U together, as the paper trains."""


@dataclass(frozen=True)
class Stratified:
    """The same number of labelled positives in every batch.

    An epoch is still one pass over U; the positives are cycled. `positives=0` takes
    the data's own share, but at least one.
    """

    positives: int = 0


Batching = Mixed | Stratified


@dataclass(frozen=True)
class CleanBatch:
    """Samples of known class, for methods that declared that they need them."""

    views: Mapping[str, Tensor]
    truth: Int64[Tensor, "n"]


@dataclass(frozen=True)
class PUBatch:
    """The samples of one step.

    Attributes:
        row: Row of each sample in `split.train`: its identity for the whole run.
        labelled: Whether the positive label was observed.
        views: Role name to images in [0, 1], for example "classify", "query", "key".
        truth: True classes, only for a method that declared `needs.truth`.
        clean: Samples of known class, only for a method that declared `needs.clean`.
        negative: Rows known to be negative, none of them labelled; None where there are
            none, and for every method that did not declare `uses_negatives`.
    """

    row: Int64[Tensor, "batch"]
    labelled: Bool[Tensor, "batch"]
    views: Mapping[str, Tensor] = field(default_factory=dict)
    truth: Int64[Tensor, "batch"] | None = None
    clean: CleanBatch | None = None
    negative: Bool[Tensor, "batch"] | None = None

    @property
    def surely_negative(self) -> Bool[Tensor, "batch"]:
        """Rows known to be negative, as a mask also where there are none."""
        return torch.zeros_like(self.labelled) if self.negative is None else self.negative

    @property
    def unlabelled(self) -> Bool[Tensor, "batch"]:
        """Rows of unknown class."""
        return ~(self.labelled | self.surely_negative)


@dataclass(frozen=True)
class Outputs:
    """Outputs of the networks for this batch: named tensors, one row per sample."""

    tensors: Mapping[str, Tensor]

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    def __contains__(self, name: str) -> bool:
        return name in self.tensors

    def in_full_precision(self) -> "Outputs":
        """Return the same tensors in float32 (float64 stays): loss mathematics needs it."""
        return Outputs(
            {
                name: value.float() if value.is_floating_point() and value.itemsize < 4 else value
                for name, value in self.tensors.items()
            }
        )


@dataclass(frozen=True)
class Losses:
    """The loss, the terms it consists of, and other numbers for the log.

    Attributes:
        total: The loss that is differentiated.
        terms: Each term as it is reported; if one is not finite, training stops and names it.
        watched: Scalars for the log only (threshold, share of positive votes, ...).
    """

    total: Float[Tensor, ""]
    terms: Mapping[str, Tensor]
    watched: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class DataFacts:
    """All that a method knows about the data before training.

    Attributes:
        rows: Number of training rows, labelled and unlabelled.
        labelled: How many of them are labelled positive.
        sample_shape: (channels, height, width) of an image or (features,) of a vector.
        prior: Share of positives among the unlabelled, for methods that declared it.
        batch_size: Rows in a batch.
        seed: Seed of the run, for what the method draws by `core.rng`.
    """

    rows: int
    labelled: int
    sample_shape: tuple[int, ...]
    prior: float | None = None
    batch_size: int = 256
    seed: int = 0
