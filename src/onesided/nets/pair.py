"""Two images of one place, before and after, as features of both and of how much they differ.

A network that was pretrained on single images knows nothing of pairs. So it sees each image alone,
and the difference of the two answers says what changed. With both images in one input, its first
layer would only average them.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from onesided.core.errors import ConfigError
from onesided.nets.standardise import Backbone, Inference, Standardise


class PairBackbone(Backbone):
    """One backbone for both halves of the channels: features before, after, and |after - before|.

    Args:
        single: The backbone for one image.
        channels: Channels of both images together.
    """

    def __init__(self, single: Backbone, channels: int) -> None:
        # Each half is standardised by the single backbone itself.
        neutral = Standardise([0.0] * channels, [1.0] * channels)
        super().__init__(neutral, width=3 * single.width, normalisation=single.normalisation)
        self.single, self.bands = single, channels // 2

    def forward(self, samples: Float[Tensor, "b c h w"]) -> Float[Tensor, "b width"]:
        """Return one feature vector per pair of images in [0, 1]."""
        return self.features(self.standardise(samples))

    def features(self, samples: Float[Tensor, "b c h w"]) -> Float[Tensor, "b width"]:
        """Return the features of both images, and their absolute difference."""
        return _joined(self.single(samples[:, : self.bands]), self.single(samples[:, self.bands :]))

    def inference(self) -> Inference:
        """Return the same by the fastest way of the single backbone."""
        fast, bands = self.single.inference(), self.bands

        def features(samples: Tensor) -> Tensor:
            return _joined(fast.features(samples[:, :bands]), fast.features(samples[:, bands:]))

        return Inference(features, batch=fast.batch, in_threads=fast.in_threads)

    def identity(self) -> str:
        """Return that of the single backbone, marked as a pair."""
        return f"pair-{self.single.identity()}"

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.single.reset_parameters()


def _joined(
    before: Float[Tensor, "b single"], after: Float[Tensor, "b single"]
) -> Float[Tensor, "b width"]:
    return torch.cat([before, after, (after - before).abs()], dim=1)


def check_pair(channels: int) -> None:
    """Refuse channels that are not those of two equal images."""
    if channels % 2:
        raise ConfigError(
            f"backbone.pair takes two images of equally many bands, and there are {channels} "
            "together. Give the same bands before and after, or leave it out."
        )
