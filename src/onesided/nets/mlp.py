"""A multi-layer perceptron, for vectors and for images too small for convolutions."""

from jaxtyping import Float
from torch import Tensor, nn

from onesided.nets.standardise import (
    Backbone,
    Normalisation,
    Standardise,
    normalise_vectors,
    reset_kaiming,
)


class MLP(Backbone):
    """Two hidden layers of equal width: linear, BatchNorm, ReLU, twice.

    Args:
        pixels: Numbers per channel: 1 for vectors, height times width for images, which
            are standardised per channel and then flattened.
        hidden: Width of both layers and number of features.
    """

    def __init__(
        self,
        standardise: Standardise,
        *,
        pixels: int = 1,
        hidden: int = 256,
        normalisation: Normalisation = "batch",
    ) -> None:
        super().__init__(standardise, width=hidden, normalisation=normalisation)
        # BatchNorm has a bias; a second one would only be changed by weight decay.
        bias = normalisation == "none"
        self.layers = nn.Sequential(
            nn.Linear(standardise.channels * pixels, hidden, bias=bias),
            normalise_vectors(normalisation, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, hidden, bias=bias),
            normalise_vectors(normalisation, hidden),
            nn.ReLU(inplace=True),
        )
        self.reset_parameters()

    def features(self, samples: Float[Tensor, "batch *sample"]) -> Float[Tensor, "batch hidden"]:
        """Return the rectified second layer."""
        hidden: Tensor = self.layers(samples.flatten(1))
        return hidden

    def reset_parameters(self) -> None:
        """Draw weights as Kaiming normal (fan-in), which keeps variance without BatchNorm."""
        reset_kaiming(self, "fan_in")
