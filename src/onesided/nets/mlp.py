"""A multi-layer perceptron, for vectors and for images too small for convolutions."""

from jaxtyping import Float
from torch import Tensor, nn

from onesided.nets.standardise import Backbone, Normalisation, Standardise, normalise_vectors


class MLP(Backbone):
    """Two hidden layers of equal width: linear, BatchNorm, ReLU, twice.

    Args:
        places: Numbers per channel: 1 for vectors, height times width for images, which
            are standardised per channel and then laid out flat.
        hidden: Width of both layers and number of features.
    """

    def __init__(
        self,
        standardise: Standardise,
        *,
        places: int = 1,
        hidden: int = 256,
        normalisation: Normalisation = "batch",
    ) -> None:
        super().__init__(standardise, width=hidden, normalisation=normalisation)
        # BatchNorm brings its own bias; a second one would only be pulled about by decay.
        bias = normalisation == "none"
        self.layers = nn.Sequential(
            nn.Linear(standardise.channels * places, hidden, bias=bias),
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
        for layer in self.layers:
            if isinstance(layer, nn.Linear):
                nn.init.kaiming_normal_(layer.weight, mode="fan_in", nonlinearity="relu")
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
            elif isinstance(layer, nn.modules.batchnorm._BatchNorm):
                layer.reset_parameters()
