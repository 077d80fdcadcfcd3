"""A queue of keys: embeddings of past batches, for a contrast with more than one batch."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from onesided.core.labels import UNKNOWN


class KeyQueue(nn.Module):
    """The last `length` keys with the predicted class of each.

    MoCo's queue (He et al., CVPR 2020) as PiCO uses it. It starts with random directions of
    no class, which only serve as negatives.
    """

    keys: Tensor
    labels: Tensor
    place: Tensor

    def __init__(self, length: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        random = F.normalize(torch.randn(length, width, generator=generator), dim=1)
        self.register_buffer("keys", random)
        self.register_buffer("labels", torch.full((length,), UNKNOWN))
        self.register_buffer("place", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def push(self, keys: Float[Tensor, "batch width"], labels: Int64[Tensor, "batch"]) -> None:
        """Replace the oldest keys by the newest."""
        keys, labels = keys[-len(self.keys) :], labels[-len(self.keys) :]
        spot = self._oldest(len(keys))
        self.keys[spot] = keys.to(self.keys)
        self.labels[spot] = labels
        self.place.add_(len(keys)).remainder_(len(self.keys))

    def read(self) -> tuple[Float[Tensor, "length width"], Int64[Tensor, "length"]]:
        """Return copies of keys and labels, which a later `push` does not change."""
        return self.keys.clone(), self.labels.clone()

    def _oldest(self, count: int) -> Int64[Tensor, "count"]:
        return (self.place + torch.arange(count, device=self.place.device)) % len(self.keys)


class TrustedKeyQueue(KeyQueue):
    """A queue that also stores whether the class of each key is reliable; at first none (PiCO+)."""

    trusted: Tensor

    def __init__(self, length: int, width: int, generator: torch.Generator) -> None:
        super().__init__(length, width, generator)
        self.register_buffer("trusted", torch.zeros(length, dtype=torch.bool))

    @torch.no_grad()
    def push(
        self,
        keys: Float[Tensor, "batch width"],
        labels: Int64[Tensor, "batch"],
        trusted: Bool[Tensor, "batch"] | None = None,
    ) -> None:
        """Replace the oldest keys by the newest; without `trusted` none of them is reliable."""
        mark = torch.zeros_like(labels, dtype=torch.bool) if trusted is None else trusted
        mark = mark[-len(self.keys) :]
        self.trusted[self._oldest(len(mark))] = mark
        super().push(keys, labels)

    def read_trust(self) -> Bool[Tensor, "length"]:
        """Return a copy of the marks, in the order of the keys."""
        return self.trusted.clone()
