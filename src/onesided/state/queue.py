"""A queue of keys: embeddings of past batches, to contrast with more than one batch holds."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from onesided.core.labels import UNKNOWN


class KeyQueue(nn.Module):
    """The last `length` keys with the class that was believed of each.

    MoCo's queue (He et al., CVPR 2020) as PiCO uses it. It starts with random directions of
    no class: they match nobody, and as strangers they are as good as any.
    """

    keys: Tensor
    labels: Tensor
    place: Tensor

    def __init__(self, length: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        strangers = F.normalize(torch.randn(length, width, generator=generator), dim=1)
        self.register_buffer("keys", strangers)
        self.register_buffer("labels", torch.full((length,), UNKNOWN))
        self.register_buffer("place", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def push(self, keys: Float[Tensor, "batch width"], labels: Int64[Tensor, "batch"]) -> None:
        """Write the newest keys over the oldest, going round at the end."""
        length = len(self.keys)
        keys, labels = keys[-length:], labels[-length:]
        spot = (self.place + torch.arange(len(keys), device=self.place.device)) % length
        self.keys[spot] = keys.to(self.keys)
        self.labels[spot] = labels
        self.place.add_(len(keys)).remainder_(length)

    def read(self) -> tuple[Float[Tensor, "length width"], Int64[Tensor, "length"]]:
        """Return copies of keys and labels, which a later `push` leaves alone."""
        return self.keys.clone(), self.labels.clone()
