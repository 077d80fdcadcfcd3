"""Pseudo targets of U that move by votes, behind a gate: what NcPU and Teacher share.

The functions take the state that a method holds (prototypes, gate, targets) and its settings.
Symbols are those of `onesided.methods.ncpu`.
"""

from typing import Literal, Self

import torch
from pydantic import Field
from torch import Tensor

from onesided.core.batch import PUBatch
from onesided.core.clock import Clock
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.losses.classification import mean_or_zero
from onesided.methods.alignment import AlignmentConfig, as_known, self_pairs
from onesided.methods.base import VariantConfig
from onesided.methods.logged import logs
from onesided.methods.shapes import Embeddings, PairMask, RowIntegers, RowMask, TwoColumns
from onesided.state.prototypes import Normalisation, Prototypes
from onesided.state.pseudo_targets import PseudoTargets
from onesided.state.threshold import SelfAdaptiveThreshold

PAPER_EPOCHS = 1300

LOGS = logs(
    "classification alignment entropy prototype_cosine positive_votes called_positive",
    own={
        "threshold": "How sure the model must be before a sample's target is negative.",
        "confidence": "How sure the model is on average.",
        "gated": "Share of the pool whose target the threshold holds at negative.",
    },
    titles={"threshold": "Threshold τ", "gated": "Held negative"},
)


class DisambiguationConfig(AlignmentConfig, VariantConfig):
    """Settings of votes, gate and targets; the defaults are NcPU's."""

    disambiguation: Literal["none", "prototype", "prototype+threshold", "phantom"] = "phantom"
    """How targets of U move: never; by votes; by votes that the gate erases; by votes that the
    gate hides and does not erase (NcPU)."""
    entropy_weight: float = Field(default=5.0, ge=0)
    """Weight of the entropy of f, w_ent; ramps up over the warm-up. 0.5 on CIFAR-100."""
    warmup_epochs: int = Field(default=30, ge=0)
    """Epochs in which targets do not move, the gate is off and only self pairs are aligned."""
    prototype_momentum: float = Field(default=0.99, ge=0, lt=1)
    """Momentum of the prototypes per sample, alpha."""
    target_momentum: float = Field(default=0.99, ge=0, lt=1)
    """Momentum of the phantom targets per epoch, beta: a row votes once per epoch."""
    threshold_momentum: float = Field(default=0.99, ge=0, lt=1)
    """Momentum of the self-adaptive threshold per step, gamma."""
    prototype_class: Literal["predicted", "labelled"] = "predicted"
    """Which prototype a row moves: that of its predicted class, labelled positives too (paper); or
    for labelled positives and known negatives always that of their label (released code)."""
    prototype_normalisation: Normalisation = "sample"
    """When prototypes are scaled to unit length: after each sample (paper) or each batch."""
    vote: Literal["after", "before"] = "after"
    """Whether a row votes with the prototypes after (paper) or before this batch moved them."""
    threshold_rows: Literal["all", "unlabelled"] = "all"
    """Which rows of the batch the threshold's statistics are taken over."""
    confidence_cap: float = Field(default=1.0, gt=0, le=1)
    """Upper limit of the threshold's confidence; 1 means none (paper), 0.8 in released code."""

    def for_budget(self, epochs: int) -> Self:
        """Return settings whose targets move as far in fewer epochs as in the paper's 1300.

        A row votes once per epoch, so beta must forget as much over the whole run as the
        paper's does over 1300 epochs. The warm-up takes a larger share of the run, because
        features must form before votes mean anything.
        """
        if epochs >= PAPER_EPOCHS:
            return self
        warmup = max(1, round(self.short_warmup(epochs)))
        return self.model_copy(
            update={
                "target_momentum": self.target_momentum ** (PAPER_EPOCHS / epochs),
                "warmup_epochs": min(self.warmup_epochs, warmup),
            }
        )

    def short_warmup(self, epochs: int) -> float:
        """Return how many epochs of a short run pass before votes begin."""
        return 0.3 * epochs

    def settled(self, clock: Clock) -> bool:
        """Return whether the warm-up is over."""
        return clock.epoch >= self.warmup_epochs

    def entropy_at(self, clock: Clock) -> float:
        """Return w_ent, rising from 0 over the warm-up: an untrained f must stay undecided."""
        warmup = self.warmup_epochs
        ramp = 1.0 if warmup == 0 else min(clock.epoch / warmup, 1.0)
        return ramp * self.entropy_weight


def move_prototypes_and_vote(
    prototypes: Prototypes,
    query: Embeddings,
    probability: TwoColumns,
    batch: PUBatch,
    config: DisambiguationConfig,
) -> RowIntegers:
    """Move mu_c towards the queries predicted as c (Eq. 9); return the votes r (Eq. 10)."""
    moved = probability.argmax(dim=1)
    if config.prototype_class == "labelled":
        moved = as_known(moved, batch)
    vote = prototypes.nearest(query)
    prototypes.follow(
        query,
        moved,
        momentum=config.prototype_momentum,
        normalise=config.prototype_normalisation,
    )
    if config.vote == "after":
        vote = prototypes.nearest(query)
    return as_known(vote, batch)


def move_threshold(
    gate: SelfAdaptiveThreshold,
    probability: TwoColumns,
    unlabelled: RowMask,
    config: DisambiguationConfig,
) -> None:
    """Update the gate's threshold tau by the classifier's confidence (Eq. 12 and 13)."""
    counted = probability if config.threshold_rows == "all" else probability[unlabelled]
    gate.follow(counted, momentum=config.threshold_momentum, cap=config.confidence_cap)


def gated_rows(
    gate: SelfAdaptiveThreshold,
    probability: TwoColumns,
    batch: PUBatch,
    config: DisambiguationConfig,
    clock: Clock,
) -> RowMask:
    """Return which rows of U are held at negative (Eq. 11); none during the warm-up."""
    if not config.settled(clock) or config.disambiguation in ("none", "prototype"):
        return torch.zeros_like(batch.labelled)
    return ~batch.labelled & (probability[:, NEGATIVE] >= gate.threshold)


def move_targets(
    targets: PseudoTargets,
    vote: RowIntegers,
    gated: RowMask,
    batch: PUBatch,
    config: DisambiguationConfig,
    clock: Clock,
) -> TwoColumns:
    """Move the phantom targets s' towards the votes (Eq. 10); return the targets s (Eq. 11)."""
    rule = config.disambiguation
    if config.settled(clock) and rule != "none":
        targets.vote(batch.row, batch.labelled, vote, momentum=config.target_momentum)
    target = targets.read(batch.row, batch.labelled, gated | batch.surely_negative)
    if rule == "prototype+threshold":
        targets.forget(batch.row[gated])
    return target


def pairs_of_one_class(
    probability: TwoColumns, batch: PUBatch, config: DisambiguationConfig, clock: Clock
) -> PairMask:
    """Return the pairs Q; during the warm-up only self pairs."""
    return config.class_pairs(probability, batch) if config.settled(clock) else self_pairs(batch)


def watched(
    gate: SelfAdaptiveThreshold,
    prototypes: Prototypes,
    vote: RowIntegers,
    gated: RowMask,
    probability: TwoColumns,
    unlabelled: RowMask,
) -> dict[str, Tensor]:
    """Return numbers that show early if votes are too positive or prototypes collapse."""
    return {
        "threshold": gate.threshold,
        "confidence": gate.confidence.clone(),
        "prototype_cosine": prototypes.similarity(),
        "positive_votes": mean_or_zero((vote == POSITIVE).float(), unlabelled),
        "gated": mean_or_zero(gated.float(), unlabelled),
        "called_positive": mean_or_zero((probability[:, POSITIVE] > 0.5).float(), unlabelled),
    }
