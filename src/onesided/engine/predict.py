"""What training gives: something that scores samples."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.data.problem.dataset import Selection
from onesided.engine.embed import features_of
from onesided.engine.memory_format import arrange
from onesided.engine.sweep import evaluating, run_over
from onesided.methods.base import GradientMethod, Method
from onesided.nets.standardise import Backbone

DIRECT_ROWS = 8192  # rows a direct method gets at once: 25 MB of CIFAR pixels


@dataclass(frozen=True)
class Predictor:
    """A trained method, asked for scores.

    Attributes:
        method: The trained method.
        device: Where it runs.
        threshold: A score above it means positive; ties fall to negative.
        embedder: Frozen network through which the method sees images, if it does.
    """

    method: Method
    device: torch.device
    threshold: float = 0.5
    embedder: Backbone | None = None

    def scores(self, values: Selection | np.ndarray) -> Float64[np.ndarray, "n"]:
        """Return the probability of positive for every sample.

        In double precision: single precision rounds everything above 17 logits to 1, and
        the top of a ranking, where people look, would be one big tie.
        """
        rows = self._seen(values)
        if isinstance(self.method, GradientMethod):
            logits = _run(self.method, self.method.classify, rows, self.device).double()
            return torch.sigmoid(logits[:, POSITIVE] - logits[:, NEGATIVE]).numpy()
        pieces = range(0, len(rows), DIRECT_ROWS)
        flat = (rows.take(slice(at, at + DIRECT_ROWS)) for at in pieces)
        scores = [self.method.scores(piece.reshape(len(piece), -1)) for piece in flat]
        return np.concatenate(scores).astype(np.float64)

    def decisions(self, scores: Float64[np.ndarray, "n"]) -> np.ndarray:
        """Return True where the score calls the sample positive."""
        return scores > self.threshold

    def embeddings(self, values: Selection | np.ndarray) -> Float[np.ndarray, "n d"] | None:
        """Return features for every sample, or None where the method has none."""
        if not isinstance(self.method, GradientMethod):
            return None
        return _run(self.method, self.method.embed, self._seen(values), self.device).float().numpy()

    def _seen(self, values: Selection | np.ndarray) -> Selection:
        """Return samples as the method sees them; features of images pass as they are."""
        rows = _selection(values)
        if self.embedder is None or len(rows.sample_shape) == 1 or not len(rows):
            return rows
        return _selection(np.concatenate(list(features_of(self.embedder, rows, self.device))))


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
