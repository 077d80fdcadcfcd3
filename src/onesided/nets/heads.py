"""Heads of a backbone: classifier, projector, predictor.

NcPU (Sec. 4 and App. F) uses the projector and predictor of BYOL: one hidden layer each.
All linear layers start with torch's default weights; draw them inside `build.seeded`.
"""

from torch import nn

from onesided.nets.standardise import Normalisation, normalise_vectors


def classifier(width: int) -> nn.Linear:
    """Return the layer from features to two logits, found by `Label.POSITIVE`."""
    return nn.Linear(width, 2)


def projector(
    width: int, hidden: int = 2048, out: int = 128, *, normalisation: Normalisation = "batch"
) -> nn.Sequential:
    """Return the network from features to the space where views are compared."""
    return _one_hidden_layer(width, hidden, out, normalisation)


def predictor(
    dim: int = 128, hidden: int = 512, *, normalisation: Normalisation = "batch"
) -> nn.Sequential:
    """Return the network that predicts the target's projection from the online one.

    Only the online side has it; this asymmetry keeps BYOL from collapse.
    """
    return _one_hidden_layer(dim, hidden, dim, normalisation)


def _one_hidden_layer(
    inputs: int, hidden: int, outputs: int, normalisation: Normalisation
) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, hidden),
        normalise_vectors(normalisation, hidden),
        nn.ReLU(inplace=True),
        nn.Linear(hidden, outputs),
    )
