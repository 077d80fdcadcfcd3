"""The result of training: a predictor that scores samples."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float64, UInt8
from torch import Tensor, nn

from onesided.core.errors import CheckpointError
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.data.columns.encoder import Encoder
from onesided.data.problem.dataset import Selection
from onesided.engine.sweep import evaluating, features_of, run_over
from onesided.methods.base import GradientMethod, Method
from onesided.metrics.calibration import Calibration
from onesided.metrics.reference import Reference
from onesided.nets.standardise import Backbone

BLOCKS = 8
"""Rows and columns of blocks that an image is compared by."""
COMPARED_ROWS = 512
DIRECT_ROWS = 8192  # rows that a direct method gets at once: 25 MB of CIFAR pixels


@dataclass(frozen=True)
class Predictor:
    """A trained method that scores samples.

    Attributes:
        threshold: A score above it means positive; a score equal to it means negative.
        embedder: Frozen backbone whose features the method takes instead of images, if any.
        encoder: What turns raw rows of a table into the vectors that the method takes, if any.
        calibration: From scores to probabilities, if they are known.
        reference: What it was trained on, in a few numbers, if they are known.
    """

    method: Method
    device: torch.device
    threshold: float = 0.5
    embedder: Backbone | None = None
    encoder: Encoder | None = None
    calibration: Calibration | None = None
    reference: Reference | None = None

    def scores(self, values: Selection | np.ndarray) -> Float64[np.ndarray, "n"]:
        """Return how likely positive every sample is, from 0 to 1: an order, no probability.

        In double precision: single precision rounds everything above 17 logits to 1, and
        the top of a ranking, where people look first, would be one large tie.
        """
        return self.scores_of(self.inputs(values))

    def scores_of(self, rows: Selection) -> Float64[np.ndarray, "n"]:
        """Return the scores of what `inputs` gave."""
        if isinstance(self.method, GradientMethod):
            logits = _run(self.method, self.method.classify, rows, self.device).double()
            scores = torch.sigmoid(logits[:, POSITIVE] - logits[:, NEGATIVE]).numpy()
        else:
            starts = range(0, len(rows), DIRECT_ROWS)
            chunks = (rows.take(slice(start, start + DIRECT_ROWS)) for start in starts)
            found = [self.method.scores(chunk.reshape(len(chunk), -1)) for chunk in chunks]
            scores = np.concatenate(found).astype(np.float64)
        # NaN compares as false, so without this it would mean negative.
        if not np.isfinite(scores).all():
            raise CheckpointError(
                f"The model gives scores that are no numbers for {(~np.isfinite(scores)).sum()} "
                f"of {len(scores)} items: its weights are damaged, or these items lie far from "
                "all that it was trained on. Restore the model from a copy, or train again."
            )
        return scores

    def decisions(self, scores: Float64[np.ndarray, "n"]) -> np.ndarray:
        """Return True where the score means positive."""
        return scores > self.threshold

    def embeddings(self, values: Selection | np.ndarray) -> Float[np.ndarray, "n d"] | None:
        """Return features for every sample, or None where the method has none."""
        if not isinstance(self.method, GradientMethod):
            return None
        return (
            _run(self.method, self.method.embed, self.inputs(values), self.device).float().numpy()
        )

    def inputs(self, values: Selection | np.ndarray) -> Selection:
        """Return what the method takes: samples, encoded rows, or features of images."""
        rows = _selection(values)
        if self.encoder is not None:
            return _selection(self.encoder.transform(rows.take(slice(None))))
        if self.embedder is None or len(rows.sample_shape) == 1 or not len(rows):
            return rows
        return _selection(np.concatenate(list(features_of(self.embedder, rows, self.device))))


def compared_numbers(rows: Selection | np.ndarray) -> Float64[np.ndarray, "n d"]:
    """Return the numbers by which samples are compared with those of training.

    Vectors are their own. Of an image: how bright 8 by 8 blocks of each channel are, and how much
    each channel varies; other light, another camera and another place show there.
    """
    chosen = _selection(rows) if isinstance(rows, np.ndarray) else rows
    if len(chosen.sample_shape) == 1:
        return chosen.take(slice(None)).astype(np.float64)
    # A few at a time: as doubles, images take eight times their memory.
    starts = range(0, len(chosen), COMPARED_ROWS)
    return np.concatenate(
        [_blocks(chosen.take(slice(start, start + COMPARED_ROWS))) for start in starts]
    )


def _blocks(images: UInt8[np.ndarray, "n c h w"]) -> Float64[np.ndarray, "n d"]:
    """Return the mean of each block of each channel, and the spread of each channel."""
    sums, sizes = images.astype(np.float64), [np.ones(1), np.ones(1)]
    for place, axis in enumerate((2, 3)):
        length = images.shape[axis]
        edges = np.unique(np.linspace(0, length, BLOCKS + 1).astype(np.int64))
        sums = np.add.reduceat(sums, edges[:-1], axis=axis)
        sizes[place] = np.diff(edges)
    means = sums / np.outer(*sizes)
    spread = images.std(axis=(2, 3), dtype=np.float64)
    return np.concatenate([means.reshape(len(images), -1), spread], axis=1)


def arrange(method: nn.Module, sample_shape: Sequence[int], device: torch.device) -> None:
    """Store the kernels of a network for images with channels last, which is faster on a CPU.

    A convolution then reads all channels of a pixel side by side (`benchmarks/step.py` measures
    the gain). Torch passes the memory format on from kernels to outputs, so views and states may
    have any. All values stay. The sums inside a convolution run in another order, so the last
    bits of its outputs differ.
    """
    if device.type == "cpu" and len(sample_shape) == 3:
        # Parameters stay the same objects, so an existing optimizer still works.
        method.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def _run(
    method: GradientMethod,
    function: Callable[[Tensor], Tensor],
    rows: Selection,
    device: torch.device,
) -> Tensor:
    arrange(method, rows.sample_shape, device)
    with evaluating(method):
        return run_over(function, rows, device)


def _selection(values: Selection | np.ndarray) -> Selection:
    if isinstance(values, Selection):
        return values
    return Selection(values, np.arange(len(values)))
