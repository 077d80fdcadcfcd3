"""Features of a network that stands still, piece by piece."""

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float32

from onesided.data.problem.dataset import Selection
from onesided.engine.sweep import evaluating
from onesided.nets.standardise import Backbone

# Few, because the first layers hold a hundred times what an image does.
EMBED_BATCH = 64


def features_of(
    embedder: Backbone, values: Selection, device: torch.device
) -> Iterator[Float32[np.ndarray, "piece width"]]:
    """Yield the features of plain images, in row order, in single precision."""
    embedder.to(device)
    for start in range(0, len(values), EMBED_BATCH):
        chunk = torch.from_numpy(values.take(slice(start, start + EMBED_BATCH)))
        plain = chunk.to(device).float()
        with evaluating(embedder):
            features = embedder(plain / 255 if chunk.dtype == torch.uint8 else plain)
        yield features.float().cpu().numpy()
