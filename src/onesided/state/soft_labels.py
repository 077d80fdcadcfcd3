"""Soft labels that votes move, without a gate: what PiCO and LaGAM teach each row to be."""

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.state.pseudo_targets import PseudoTargets


class SoftLabels(PseudoTargets):
    """Pseudo targets whose start can be chosen and which nothing overrules.

    Args:
        rows: Training rows.
        positive: Belief in positive that unlabelled rows start with.
    """

    def __init__(self, rows: int, *, positive: float = 0.0) -> None:
        super().__init__(rows)
        self.phantom[:, POSITIVE] = positive
        self.phantom[:, NEGATIVE] = 1 - positive

    def current(
        self, row: Int64[Tensor, "batch"], labelled: Bool[Tensor, "batch"]
    ) -> Float[Tensor, "batch 2"]:
        """Return the labels of these rows; the labelled ones are positive, whatever the votes."""
        return self.read(row, labelled, torch.zeros_like(labelled))
