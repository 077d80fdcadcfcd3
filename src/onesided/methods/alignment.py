"""The alignment branch: learns representations beside any classification risk.

BYOL's two networks (section 3.1 of the NcPU paper): the online network turns a view into
a `query`. The target network, a moving average of it, turns another view into a `key`. An
alignment loss pulls queries towards the keys of their own class. NcPU is this branch
with its pseudo targets; with uPU, nnPU or cross entropy it is the plug-in of Table 3.
"""

from typing import Literal, Self

import torch
import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field, model_validator
from torch import Tensor, nn

from onesided.core.batch import Augment, PUBatch
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.losses.alignment import (
    Bound,
    SelfPair,
    class_alignment_loss,
    predicted_pairs,
    robust_alignment_loss,
    same_class_pairs,
    self_alignment_loss,
)
from onesided.methods.base import EMBEDDING, MethodConfig
from onesided.methods.shapes import Embeddings, PairMask, RowIntegers, Scalar, TwoColumns
from onesided.nets.heads import predictor, projector
from onesided.nets.momentum import TargetNetwork
from onesided.nets.standardise import Backbone

Alignment = Literal["none", "self", "class", "robust"]
Pairs = Literal["predicted", "probabilities", "labelled"]

ALIGNED_VIEWS = {"query": Augment.STRONG, "key": Augment.STRONG}


class AlignmentConfig(MethodConfig):
    """Settings of the alignment branch."""

    alignment: Alignment = "robust"
    """Which pairs are pulled together: none; self, a sample with itself (Eq. 4); class, all of
    one class (Eq. 5); robust, all of one class, close pairs with larger gradients (Eq. 7)."""
    alignment_weight: float = Field(default=50.0, ge=0)
    """Weight of the alignment loss, w_r in Eq. 14."""
    pairs: Pairs = "predicted"
    """Which samples count as one class, in Q. predicted: those of one predicted class, labelled
    positives too (paper). probabilities: f_i . f_j >= pair_threshold (released code, App. H).
    labelled: as probabilities, but labelled positives and known negatives are sure of theirs."""
    pair_threshold: float = Field(default=0.5, ge=0, le=1)
    """Agreement f_i . f_j from which two samples count as one class, where `pairs` goes by
    probabilities. 0.5 means the same predicted class; the appendix study uses 0.2."""
    encoder_momentum: float = Field(default=0.99, ge=0, lt=1)
    """Momentum of the target network per step, eta."""
    bound: Bound = "similarity"
    """What is kept inside [1e-4, 1 - 1e-4] before the square root: the similarity, which the paper
    suggests for stability (it is no part of Eq. 7); each coordinate of query and key (released
    code); or nothing (Eq. 7 as written)."""
    self_pair: SelfPair = "root"
    """A sample's pair with itself: under the root like every pair (paper), or plain (released)."""
    projector_width: int = Field(default=2048, ge=1, le=65536)
    """Hidden units of the projector."""

    @model_validator(mode="after")
    def _use_the_threshold(self) -> Self:
        if self.pairs == "predicted" and self.pair_threshold != 0.5:
            raise ValueError(
                f"pair_threshold = {self.pair_threshold:g} has no effect on pairs of one "
                "predicted class. Give pairs = 'probabilities' too, or leave it out"
            )
        return self

    def class_pairs(self, probability: TwoColumns, batch: PUBatch) -> PairMask:
        """Return the pairs Q of this batch by the rule of `pairs`."""
        if self.pairs == "predicted":
            return predicted_pairs(probability)
        if self.pairs == "labelled":
            known = as_known(torch.zeros_like(batch.row), batch)
            certain = F.one_hot(known, 2).to(probability)
            probability = torch.where(batch.unlabelled[:, None], probability, certain)
        return same_class_pairs(probability, threshold=self.pair_threshold)

    def budget_learning_rate(self) -> float:
        """Return a small rate with alignment, because w_r multiplies the gradients."""
        return super().budget_learning_rate() if self.alignment == "none" else 0.002


def self_pairs(batch: PUBatch) -> PairMask:
    """Return the pairs of every sample with itself: all there is during a warm-up."""
    return torch.eye(len(batch.row), dtype=torch.bool, device=batch.row.device)


def as_known(label: RowIntegers, batch: PUBatch) -> RowIntegers:
    """Return the labels, corrected for labelled positives and known negatives."""
    corrected = label.masked_fill(batch.labelled, POSITIVE)
    return corrected if batch.negative is None else corrected.masked_fill(batch.negative, NEGATIVE)


class AlignmentBranch(nn.Module):
    """Projector and predictor of the online network, and the target network beside it."""

    def __init__(self, backbone: Backbone, config: AlignmentConfig) -> None:
        super().__init__()
        self.config = config
        width, norm = config.projector_width, backbone.normalisation
        self.projector = projector(backbone.width, hidden=width, out=EMBEDDING, normalisation=norm)
        self.predictor = predictor(EMBEDDING, normalisation=norm)
        self.target = TargetNetwork(backbone, self.projector)

    def forward(self, backbone: Backbone, batch: PUBatch) -> tuple[Embeddings, Embeddings]:
        """Return the normalised queries q~ and keys k~ of this shard."""
        query = self.queries(backbone(batch.views["query"]))
        momentum = self.config.encoder_momentum
        _, key = self.keys(backbone, batch.views["key"], momentum=momentum)
        return query, key

    def queries(self, features: Float[Tensor, "batch width"]) -> Embeddings:
        """Return the normalised queries q~ of features of the online network."""
        return F.normalize(self.predictor(self.projector(features)).float(), dim=1)

    def keys(
        self, backbone: Backbone, samples: Float[Tensor, "batch *sample"], *, momentum: float
    ) -> tuple[Float[Tensor, "batch width"], Embeddings]:
        """Update the target network; return its features and the normalised keys k~."""
        self.target.follow(backbone, self.projector, momentum=momentum)
        features, key = self.target.layers(samples)
        return features, F.normalize(key.float(), dim=1)

    def weighted_loss(self, query: Embeddings, key: Embeddings, same_class: PairMask) -> Scalar:
        """Return w_r times the alignment loss; 0 without alignment, whose queries still vote."""
        w_r = 0.0 if self.config.alignment == "none" else self.config.alignment_weight
        return w_r * self.loss(query, key, same_class)

    def loss(self, query: Embeddings, key: Embeddings, same_class: PairMask) -> Scalar:
        """Return the alignment loss of the settings (Eq. 4, 5 or 7), without its weight."""
        match self.config.alignment:
            case "robust":
                bound, self_pair = self.config.bound, self.config.self_pair
                return robust_alignment_loss(
                    query, key, same_class, bound=bound, self_pair=self_pair
                )
            case "class":
                return class_alignment_loss(query, key, same_class)
            case _:
                return self_alignment_loss(query, key)
