"""The result of training: a predictor that scores samples."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.data.columns.encoder import Encoder
from onesided.data.problem.dataset import Selection
from onesided.engine.sweep import evaluating, features_of, run_over
from onesided.methods.base import GradientMethod, Method
from onesided.nets.standardise import Backbone

DIRECT_ROWS = 8192  # rows that a direct method gets at once: 25 MB of CIFAR pixels


@dataclass(frozen=True)
class Predictor:
    """A trained method that scores samples.

    Attributes:
        threshold: A score above it means positive; a score equal to it means negative.
        embedder: Frozen backbone whose features the method takes instead of images, if any.
        encoder: What turns raw rows of a table into the vectors that the method takes, if any.
    """

    method: Method
    device: torch.device
    threshold: float = 0.5
    embedder: Backbone | None = None
    encoder: Encoder | None = None

    def scores(self, values: Selection | np.ndarray) -> Float64[np.ndarray, "n"]:
        """Return the probability of positive for every sample.

        In double precision: single precision rounds everything above 17 logits to 1, and
        the top of a ranking, where people look first, would be one large tie.
        """
        rows = self._inputs(values)
        if isinstance(self.method, GradientMethod):
            logits = _run(self.method, self.method.classify, rows, self.device).double()
            return torch.sigmoid(logits[:, POSITIVE] - logits[:, NEGATIVE]).numpy()
        starts = range(0, len(rows), DIRECT_ROWS)
        chunks = (rows.take(slice(start, start + DIRECT_ROWS)) for start in starts)
        scores = [self.method.scores(chunk.reshape(len(chunk), -1)) for chunk in chunks]
        return np.concatenate(scores).astype(np.float64)

    def decisions(self, scores: Float64[np.ndarray, "n"]) -> np.ndarray:
        """Return True where the score means positive."""
        return scores > self.threshold

    def embeddings(self, values: Selection | np.ndarray) -> Float[np.ndarray, "n d"] | None:
        """Return features for every sample, or None where the method has none."""
        if not isinstance(self.method, GradientMethod):
            return None
        return (
            _run(self.method, self.method.embed, self._inputs(values), self.device).float().numpy()
        )

    def _inputs(self, values: Selection | np.ndarray) -> Selection:
        """Return what the method takes: samples, encoded rows, or features of images."""
        rows = _selection(values)
        if self.encoder is not None:
            return _selection(self.encoder.transform(rows.take(slice(None))))
        if self.embedder is None or len(rows.sample_shape) == 1 or not len(rows):
            return rows
        return _selection(np.concatenate(list(features_of(self.embedder, rows, self.device))))


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
