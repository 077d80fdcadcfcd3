"""NcPU: noisy-pair robust representation alignment for PU learning (Zhao et al., ICLR 2026).

Follows section 3 of the paper. Symbols:

| paper         | here                          | paper      | here                               |
|---------------|-------------------------------|------------|------------------------------------|
| f(x), f_1(x)  | `probability`, `p_negative`   | s', s      | `targets.phantom`, `target`        |
| y~            | `predicted`                   | r          | `vote`                             |
| q~, k~        | `query`, `key`                | tau~, rho~ | `gate.confidence`, `.class_share`  |
| mu_c          | `prototypes.vectors`          | tau        | `gate.threshold`                   |
| Q             | `same_class`                  | w_r, w_ent | `alignment_`, `entropy_weight`     |
| L_c, L~_r     | `classification`, `alignment` | g, g'      | `backbone`, `branch.target`        |
| alpha         | `prototype_momentum`          | gamma      | `threshold_momentum`               |
| beta          | `target_momentum`             | eta        | `encoder_momentum`                 |

The paper numbers the classes 0 = positive, 1 = negative; here POSITIVE = 1, NEGATIVE = 0.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import torch
import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from onesided.core.batch import Augment, DataFacts, Losses, Outputs, PUBatch
from onesided.core.clock import Clock
from onesided.core.config import Settings
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.losses.alignment import same_class_pairs
from onesided.losses.classification import (
    class_weighted_cross_entropy,
    mean_entropy,
    mean_or_zero,
    positive_unlabelled_cross_entropy,
)
from onesided.methods.alignment import ALIGNED_VIEWS, AlignmentBranch, AlignmentConfig
from onesided.methods.base import (
    EMBEDDING,
    MOST_GENTLE_EPOCHS,
    Card,
    GradientMethod,
    VariantConfig,
    short_training,
    summed,
)
from onesided.methods.logged import logs
from onesided.methods.shapes import Embeddings, PairMask, RowIntegers, RowMask, Scalar, TwoColumns
from onesided.nets.heads import classifier
from onesided.nets.momentum import TargetNetwork
from onesided.nets.standardise import Backbone
from onesided.state.kept_share import KeptShare
from onesided.state.prototypes import Normalisation, Prototypes
from onesided.state.pseudo_targets import PseudoTargets
from onesided.state.threshold import SelfAdaptiveThreshold

VIEWS: Mapping[str, Mapping[str, Augment]] = {
    "three": {"classify": Augment.WEAK, **ALIGNED_VIEWS},
    "two": {"query": Augment.STRONG, "key": Augment.WEAK},
}

PAPER_EPOCHS = 1300
# Our two variants share these settings.
IN_MINUTES: Mapping[str, Any] = {
    "views": "two",
    "weighing": "classes",
    "judge": "target",
    "alignment_weight": 1.0,
    "entropy_weight": 0.0,
}


class NcPUConfig(AlignmentConfig, VariantConfig):
    """Settings of NcPU; the defaults are the paper's."""

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
    """A group of switches: the published mathematics; what the authors' code does; or ours, for
    a hundredth of the paper's steps, on images or on features of a pretrained backbone. Every
    switch can still be set alone."""
    disambiguation: Literal["none", "prototype", "prototype+threshold", "phantom"] = "phantom"
    """How targets of U move: never; by votes; by votes that the gate erases; by votes that the
    gate hides and does not erase (the method)."""
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
    prototype_normalisation: Normalisation = "sample"
    """When prototypes are scaled to unit length: after each sample (paper) or each batch."""
    vote: Literal["after", "before"] = "after"
    """Whether a row votes with the prototypes after (paper) or before this batch moved them."""
    threshold_rows: Literal["all", "unlabelled"] = "all"
    """Which rows of the batch the threshold's statistics are taken over."""
    confidence_cap: float = Field(default=1.0, gt=0, le=1)
    """Upper limit of the threshold's confidence; 1 means none (paper), 0.8 in released code."""
    views: Literal["three", "two"] = "three"
    """three: a weak view for f, two strong ones to align (paper). two: f is trained on the strong
    query and the key is weak, which saves one pass forward and back."""
    weighing: Literal["sources", "classes"] = "sources"
    """Which two groups have equal weight in the classification loss: P and U (paper), or positive
    and negative targets. Both are equal until targets move. Then, with P and U, the positives
    outweigh the negatives, and in short runs too many votes are positive."""
    judge: Literal["online", "target"] = "online"
    """Which classifier predicts, in training and in the end: that of the network that is trained
    (paper), or that of the target network, an average over its last hundred steps."""
    voter: Literal["prototype", "judge"] = "prototype"
    """Which votes move the targets: those of the nearest prototype (paper), or those of the
    judge's classifier, with the share of positive votes kept as it was when votes began.
    Prototypes take longer to form."""

    budget_variant: ClassVar[str | None] = "budget"
    features_variant: ClassVar[str | None] = "features"
    uses_negatives: ClassVar[bool] = True
    card: ClassVar[Card] = Card(
        title="NcPU",
        summary="Finds the positives by representations that withstand wrong labels.",
        citation="Zhao et al., Noisy-Pair Robust Representation Alignment for Positive-Unlabeled "
        "Learning, ICLR 2026.",
        fidelity="Written from the paper. The authors' code differs in six switches; all are here.",
        licence="Authors' code: CC BY-NC-SA 4.0, academic use only; nothing of it is here.",
        good_at="Images, few positives, no class prior, no negatives; first in the paper's table.",
        bad_at="Runs of minutes with the published settings: votes begin before representations "
        "have formed. The presets use a variant of our own there.",
        variants={
            "paper": "the published mathematics (default)",
            "released": "the six switches as the authors' code sets them",
            "budget": "ours, for runs of minutes to hours: used by all presets but `paper`",
            "features": "`budget` with class pairs, which help on trained features: used by the "
            "presets on a frozen backbone",
        },
        logs=logs(
            "classification alignment entropy prototype_cosine positive_votes called_positive",
            own={
                "threshold": "How sure the model must be before a sample's target is negative.",
                "confidence": "How sure the model is on average.",
                "gated": "Share of the pool whose target the threshold holds at negative.",
            },
            titles={"threshold": "Threshold τ", "gated": "Held negative"},
        ),
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> "NcPU":
        """Return an untrained NcPU."""
        return NcPU(self, facts, backbone)

    def budget_training(self, batch_size: int) -> Settings:
        """Return short training for our variants; a small rate where w_r is 50."""
        if self.variant in ("budget", "features"):
            return short_training(batch_size)
        return super().budget_training(batch_size)

    def for_budget(self, epochs: int) -> Self:
        """Return settings whose targets move as far in fewer epochs as in the paper's 1300.

        A row votes once per epoch, so beta must forget as much over the whole run as the
        paper's does over 1300 epochs. The warm-up takes a larger share of the run, because
        features must form before votes mean anything. Three epochs are enough for our variants.
        With gentle views more would harm: a wide network then begins to memorise the labelled
        positives, and calls fewer and fewer others positive.
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


class NcPU(GradientMethod):
    """Two networks, one table of pseudo targets, two prototypes, one threshold."""

    def __init__(self, config: NcPUConfig, facts: DataFacts, backbone: Backbone) -> None:
        super().__init__()
        self.config = config
        self.backbone = backbone
        self.classifier = classifier(backbone.width)
        self.targets = PseudoTargets(facts.rows)
        self.gate = SelfAdaptiveThreshold()
        self.views = VIEWS[config.views]
        # Without alignment the branch is not trained, but prototypes still need queries.
        self.branch = AlignmentBranch(backbone, config)
        self.prototypes = Prototypes(2, EMBEDDING)
        self.judge = TargetNetwork(self.classifier) if config.judge == "target" else None
        self.kept = KeptShare() if config.voter == "judge" else None
        if self.judge is not None:
            self.inference_parts = ("judge.", "branch.target.copies.0.")

    def forward(self, batch: PUBatch, clock: Clock) -> Outputs:
        """Return f's logits, q~ and k~, and the judge's logits if it is the target network."""
        if self.config.views == "three":
            logits = self.classifier(self.backbone(batch.views["classify"]))
        features = self.backbone(batch.views["query"])
        if self.config.views == "two":
            logits = self.classifier(features)
        query = self.branch.queries(features)
        momentum = self.config.encoder_momentum
        if self.judge is not None:  # it must soon forget the initial weights
            momentum = _early(momentum, clock)
        key_features, key = self.branch.keys(self.backbone, batch.views["key"], momentum=momentum)
        outputs = {"logits": logits, "query": query, "key": key}
        if self.judge is not None:
            self.judge.follow(self.classifier, momentum=momentum)
            outputs["judged"] = self.judge(key_features)
        return Outputs(outputs)

    def classify(self, images: Tensor) -> Float[Tensor, "n 2"]:
        """Return the logits of the network that predicts."""
        if self.judge is None:
            return super().classify(images)
        logits: Tensor = self.judge(self.embed(images))
        return logits

    def embed(self, images: Tensor) -> Float[Tensor, "n d"]:
        """Return the features of the network that predicts."""
        if self.judge is None:
            return super().embed(images)
        features: Tensor = self.branch.target.copies[0](images)
        return features

    def loss(self, outputs: Outputs, batch: PUBatch, clock: Clock) -> Losses:
        """Return Eq. 14 with the entropy term, after updating prototypes, gate and targets."""
        logits, query, key = outputs["logits"], outputs["query"], outputs["key"]
        judged = logits.detach() if self.judge is None else outputs["judged"]
        probability = judged.softmax(dim=1)
        settled = clock.epoch >= self.config.warmup_epochs

        vote = self._move_prototypes_and_vote(query.detach(), probability, batch)
        if self.kept is not None:
            vote = self._judge_votes(self.kept, judged, batch, clock)
        self._move_threshold(probability, batch.unlabelled)
        target, gated = self._targets(probability, vote, batch, settled)
        same_class = self._same_class(probability, batch, settled)

        w_r = 0.0 if self.config.alignment == "none" else self.config.alignment_weight
        terms = {
            "classification": self._classification(logits, target, batch.labelled),
            "alignment": w_r * self.branch.loss(query, key, same_class),
            "entropy": self._entropy_weight(clock) * mean_entropy(logits),
        }
        return summed(terms, self._watched(vote, gated, probability, batch.unlabelled))

    def _classification(self, logits: TwoColumns, target: TwoColumns, labelled: RowMask) -> Scalar:
        if self.config.weighing == "classes":
            return class_weighted_cross_entropy(logits, target)
        return positive_unlabelled_cross_entropy(logits, target, labelled)

    def _move_prototypes_and_vote(
        self, query: Embeddings, probability: TwoColumns, batch: PUBatch
    ) -> RowIntegers:
        """Move mu_c towards the queries predicted as c (Eq. 9); return the votes r (Eq. 10)."""
        predicted = _as_known(probability.argmax(dim=1), batch)
        vote = self.prototypes.nearest(query)
        self.prototypes.follow(
            query,
            predicted,
            momentum=self.config.prototype_momentum,
            normalise=self.config.prototype_normalisation,
        )
        if self.config.vote == "after":
            vote = self.prototypes.nearest(query)
        return _as_known(vote, batch)

    def _judge_votes(
        self, kept: KeptShare, judged: TwoColumns, batch: PUBatch, clock: Clock
    ) -> RowIntegers:
        """Return the judge's predictions, with the share of positives from before votes began."""
        margin = judged[:, POSITIVE] - judged[:, NEGATIVE]
        if clock.epoch < self.config.warmup_epochs:
            momentum = _early(self.config.threshold_momentum, clock)
            kept.remember(margin[batch.unlabelled], momentum=momentum)
        else:
            kept.keep(margin[batch.unlabelled])
        return _as_known(kept.positive(margin).long(), batch)

    def _move_threshold(self, probability: TwoColumns, unlabelled: RowMask) -> None:
        """Update the gate's threshold tau by the classifier's confidence (Eq. 12 and 13)."""
        counted = probability if self.config.threshold_rows == "all" else probability[unlabelled]
        self.gate.follow(
            counted, momentum=self.config.threshold_momentum, cap=self.config.confidence_cap
        )

    def _targets(
        self, probability: TwoColumns, vote: RowIntegers, batch: PUBatch, settled: bool
    ) -> tuple[TwoColumns, RowMask]:
        """Return the targets s (Eq. 10 and 11) and which rows the gate holds at negative."""
        rule = self.config.disambiguation
        p_negative = probability[:, NEGATIVE]
        gated = ~batch.labelled & (p_negative >= self.gate.threshold)
        if not settled or rule in ("none", "prototype"):
            gated = torch.zeros_like(gated)
        if settled and rule != "none":
            self.targets.vote(batch.row, batch.labelled, vote, momentum=self.config.target_momentum)
        sure = gated | batch.surely_negative
        target = self.targets.read(batch.row, batch.labelled, sure)
        if rule == "prototype+threshold":
            self.targets.forget(batch.row[gated])
        return target, gated

    def _same_class(self, probability: TwoColumns, batch: PUBatch, settled: bool) -> PairMask:
        """Return the pairs Q: same predicted class; during the warm-up only self pairs."""
        if not settled:
            return torch.eye(len(probability), dtype=torch.bool, device=probability.device)
        known = _as_known(torch.zeros_like(batch.row), batch)
        certain = F.one_hot(known, 2).to(probability)
        believed = torch.where(batch.unlabelled[:, None], probability, certain)
        return same_class_pairs(believed, threshold=self.config.pair_threshold)

    def _entropy_weight(self, clock: Clock) -> float:
        """Return w_ent, rising from 0 over the warm-up: an untrained f must stay undecided."""
        warmup = self.config.warmup_epochs
        ramp = 1.0 if warmup == 0 else min(clock.epoch / warmup, 1.0)
        return ramp * self.config.entropy_weight

    def _watched(
        self, vote: RowIntegers, gated: RowMask, probability: TwoColumns, unlabelled: RowMask
    ) -> dict[str, Tensor]:
        """Return numbers that show early if votes are too positive or prototypes collapse."""
        return {
            "threshold": self.gate.threshold,
            "confidence": self.gate.confidence.clone(),
            "prototype_cosine": self.prototypes.similarity(),
            "positive_votes": mean_or_zero((vote == POSITIVE).float(), unlabelled),
            "gated": mean_or_zero(gated.float(), unlabelled),
            "called_positive": mean_or_zero((probability[:, POSITIVE] > 0.5).float(), unlabelled),
        }


def _early(momentum: float, clock: Clock) -> float:
    """Return the momentum, but after t steps at most (1 + t) / (10 + t).

    So an average soon forgets its initial value, as is usual for averages of weights.
    """
    done = clock.epoch * clock.steps + clock.step
    return min(momentum, (1 + done) / (10 + done))


def _as_known(label: RowIntegers, batch: PUBatch) -> RowIntegers:
    """Return the labels, corrected for labelled positives and known negatives."""
    corrected = label.masked_fill(batch.labelled, POSITIVE)
    return corrected if batch.negative is None else corrected.masked_fill(batch.negative, NEGATIVE)
