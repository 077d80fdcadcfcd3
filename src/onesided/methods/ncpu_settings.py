"""The settings of NcPU: the paper's numbers, its switches, and how they follow a short run."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from onesided.core.config import Settings
from onesided.methods.alignment import AlignmentConfig
from onesided.methods.base import MOST_GENTLE_EPOCHS, short_training
from onesided.methods.variant import VariantConfig
from onesided.state.prototypes import Normalisation

PAPER_EPOCHS = 1300
# What both of our variants share; class pairs only where features have formed already.
IN_MINUTES: Mapping[str, Any] = {
    "views": "two",
    "weighing": "classes",
    "judge": "target",
    "alignment_weight": 1.0,
    "entropy_weight": 0.0,
}


class NcPUSettings(AlignmentConfig, VariantConfig):
    """What can be set; the defaults are the paper's."""

    switches: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {},
        "released": {
            "bound": "coordinate",
            "self_pair": "plain",
            "prototype_normalisation": "batch",
            "vote": "before",
            "threshold_rows": "unlabelled",
            "confidence_cap": 0.8,
        },
        "budget": {**IN_MINUTES, "alignment": "self", "voter": "judge"},
        "features": {**IN_MINUTES, "alignment": "robust"},
    }

    variant: Literal["paper", "released", "budget", "features"] = "paper"
    """A bundle of switches: the published mathematics, what the authors' code does, or ours for
    a hundredth of the paper's steps, on images or on features of a network that has learned.
    Every switch can still be set alone."""
    disambiguation: Literal["none", "prototype", "prototype+threshold", "phantom"] = "phantom"
    """How targets of U move: never; by votes; by votes that the gate erases; by votes under a
    gate that erases nothing (the method)."""
    entropy_weight: float = Field(default=5.0, ge=0)
    """Weight of the entropy of f, w_ent; ramps up over the warm-up. 0.5 on CIFAR-100."""
    warmup_epochs: int = Field(default=30, ge=0)
    """Epochs in which targets stay as they start, the gate is off and pairs are self pairs."""
    prototype_momentum: float = Field(default=0.99, ge=0, lt=1)
    """Momentum of the prototypes per sample, alpha."""
    target_momentum: float = Field(default=0.99, ge=0, lt=1)
    """Momentum of the phantom targets per epoch, beta: a row votes once per epoch."""
    threshold_momentum: float = Field(default=0.99, ge=0, lt=1)
    """Momentum of the self-adaptive threshold per step, gamma."""
    prototype_normalisation: Normalisation = "sample"
    """When prototypes are brought back to unit length: after each sample (paper) or batch."""
    vote: Literal["after", "before"] = "after"
    """Whether a row votes with the prototypes after (paper) or before this batch moved them."""
    threshold_rows: Literal["all", "unlabelled"] = "all"
    """Which rows of the batch the threshold's statistics are taken over."""
    confidence_cap: float = Field(default=1.0, gt=0, le=1)
    """Upper limit of the threshold's confidence; 1 means none (paper), 0.8 in released code."""

    views: Literal["three", "two"] = "three"
    """three: a weak view for f, two strong ones to align (paper). two: f learns from the strong
    query and the key is weak, which spares one pass forward and back."""
    weighing: Literal["sources", "classes"] = "sources"
    """What weighs alike in the classification loss: P and U (paper), or the positive and the
    negative targets. The same until targets move; then P and the positives found in U would
    outweigh the negatives, and in short runs votes overshoot to positive."""
    judge: Literal["online", "target"] = "online"
    """Whose classifier says what a row is and, in the end, what a new sample is: the network
    that learns (paper), or the target network, an average over its last hundred steps."""

    voter: Literal["prototype", "judge"] = "prototype"
    """Whose votes move the targets: the nearest prototype's (paper), or the judge's own, which stay
    as often positive as when votes began. Prototypes need longer to form."""

    budget_variant: ClassVar[str | None] = "budget"
    features_variant: ClassVar[str | None] = "features"

    def budget_training(self, batch_size: int) -> Settings:
        """Return short training where the classifier's loss weighs; a small rate under w_r 50."""
        if self.variant in ("budget", "features"):
            return short_training(batch_size)
        return super().budget_training(batch_size)

    def for_budget(self, epochs: int) -> Self:
        """Return settings with the paper's pace of targets compressed into fewer epochs.

        A row votes once per epoch, so beta must forget as much over the whole run as the
        paper's does over 1300 epochs. The warm-up keeps a longer share, because features
        have to form before votes mean anything. With the variants for short runs three epochs
        are enough, and through gentle views they must be: a wide network then begins to know
        the labelled positives by heart, and calls fewer and fewer of the others positive.
        """
        if epochs >= PAPER_EPOCHS:
            return self
        if self.variant in ("budget", "features"):
            warmup = min(0.5 * epochs, 3 if epochs <= MOST_GENTLE_EPOCHS else 0.25 * epochs)
        else:
            warmup = 0.3 * epochs
        return self.model_copy(
            update={
                "target_momentum": self.target_momentum ** (PAPER_EPOCHS / epochs),
                "warmup_epochs": min(self.warmup_epochs, max(1, round(warmup))),
            }
        )
