"""NcPU: noisy-pair robust representation alignment for PU learning (Zhao et al., ICLR 2026).

Reads beside section 3 of the paper. Symbols:

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
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from pydantic import Field
from torch import Tensor

from onesided.core.batch import Augment, DataFacts, Losses, Outputs, PUBatch
from onesided.core.clock import Clock
from onesided.core.config import Settings
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.losses.alignment import same_class_pairs
from onesided.losses.classification import (
    class_weighted_cross_entropy,
    mean_or_zero,
    positive_unlabelled_cross_entropy,
)
from onesided.losses.entropy import mean_entropy
from onesided.methods.alignment import (
    ALIGNED_VIEWS,
    EMBEDDING,
    AlignmentBranch,
    AlignmentConfig,
)
from onesided.methods.base import Card, GradientMethod, short_training
from onesided.methods.variant import VariantConfig
from onesided.nets.heads import classifier
from onesided.nets.momentum import TargetNetwork
from onesided.nets.standardise import Backbone
from onesided.state.kept_share import KeptShare
from onesided.state.prototypes import Normalisation, Prototypes
from onesided.state.pseudo_targets import PseudoTargets
from onesided.state.threshold import SelfAdaptiveThreshold

PAPER_EPOCHS = 1300
# What both of our variants share; class pairs only where features have formed already.
IN_MINUTES: Mapping[str, Any] = {
    "views": "two",
    "weighing": "classes",
    "judge": "target",
    "alignment_weight": 1.0,
    "entropy_weight": 0.0,
}
VIEWS: Mapping[str, Mapping[str, Augment]] = {
    "three": {"classify": Augment.WEAK, **ALIGNED_VIEWS},
    "two": {"query": Augment.STRONG, "key": Augment.WEAK},
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
    """A bundle of switches: the published mathematics, what the authors' code does, or ours for
    a thousandth of the paper's steps, on images or on features of a network that has learned.
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

    uses_negatives: ClassVar[bool] = True
    budget_variant: ClassVar[str | None] = "budget"
    features_variant: ClassVar[str | None] = "features"
    card: ClassVar[Card] = Card(
        title="NcPU",
        summary="Learns representations that survive wrong labels, and with them who is positive.",
        citation="Zhao et al., Noisy-Pair Robust Representation Alignment for Positive-Unlabeled "
        "Learning, ICLR 2026.",
        fidelity="Written from the paper; the authors' code differs in six switches, all here.",
        licence="Authors' code: CC BY-NC-SA 4.0, academic use only; nothing of it is here.",
        good_at="Images, few positives, no class prior, no negatives; first in the paper's table.",
        bad_at="Runs of minutes in its published form, where representations cannot form before "
        "votes begin; the presets take a form of our own there.",
        variants={
            "paper": "the published mathematics (default)",
            "released": "the six switches as the authors' code sets them",
            "budget": "ours, for runs of minutes to hours: the presets below `paper` take it",
            "features": "the same with class pairs, which help once features have formed: the "
            "presets take it on a frozen network",
        },
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> "NcPU":
        """Return an untrained NcPU."""
        return NcPU(self, facts, backbone)

    def budget_training(self, batch_size: int) -> Settings:
        """Return short training where the classifier's loss weighs; a small rate under w_r 50."""
        if self.variant in ("budget", "features"):
            return short_training(batch_size)
        return super().budget_training(batch_size)

    def for_budget(self, epochs: int) -> "NcPUConfig":
        """Return settings with the paper's pace of targets compressed into fewer epochs.

        A row votes once per epoch, so beta must forget as much over the whole run as the
        paper's does over 1300 epochs. The warm-up keeps a longer share, because features
        have to form before votes mean anything; with the variants for short runs three epochs
        are enough, or a quarter of a longer run.
        """
        if epochs >= PAPER_EPOCHS:
            return self
        if self.variant in ("budget", "features"):
            warmup = min(0.5 * epochs, max(3, 0.25 * epochs))
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
        # Without alignment nothing trains the branch, but prototypes still need queries.
        self.views = VIEWS[config.views]
        self.branch = AlignmentBranch(backbone, config)
        self.prototypes = Prototypes(2, EMBEDDING)
        self.judge = TargetNetwork(self.classifier) if config.judge == "target" else None
        self.kept = KeptShare() if config.voter == "judge" else None

    def forward(self, batch: PUBatch, clock: Clock) -> Outputs:
        """Return f's logits, q~ and k~, and what the judge says of the rows."""
        if self.config.views == "three":
            logits = self.classifier(self.backbone(batch.views["classify"]))
        features = self.backbone(batch.views["query"])
        if self.config.views == "two":
            logits = self.classifier(features)
        query = self.branch.queries(features)
        momentum = self._encoder_momentum(clock)
        key_features, key = self.branch.keys(self.backbone, batch.views["key"], momentum=momentum)
        outputs = {"logits": logits, "query": query, "key": key}
        if self.judge is not None:
            self.judge.follow(self.classifier, momentum=momentum)
            outputs["judged"] = self.judge(key_features)
        return Outputs(outputs)

    def _encoder_momentum(self, clock: Clock) -> float:
        """Return eta; a judge starts with less: a short run must leave its first weights."""
        eta = self.config.encoder_momentum
        return eta if self.judge is None else _early(eta, clock)

    def classify(self, images: Tensor) -> Float[Tensor, "n 2"]:
        """Return the judge's logits for plain images."""
        if self.judge is None:
            return super().classify(images)
        logits: Tensor = self.judge(self.embed(images))
        return logits

    def embed(self, images: Tensor) -> Float[Tensor, "n d"]:
        """Return the features that the judge looks at."""
        if self.judge is None:
            return super().embed(images)
        features: Tensor = self.branch.target.copies[0](images)
        return features

    def inference_state(self) -> dict[str, Tensor]:
        """Return the judge's part of the state."""
        if self.judge is None:
            return super().inference_state()
        parts = ("judge.", "branch.target.copies.0.")
        return {name: value for name, value in self.state_dict().items() if name.startswith(parts)}

    def loss(self, outputs: Outputs, batch: PUBatch, clock: Clock) -> Losses:
        """Return Eq. 14 with the entropy term, after moving prototypes, gate and targets."""
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

        terms = {
            "classification": self._classification(logits, target, batch.labelled),
            "alignment": self._alignment_weight * self.branch.loss(query, key, same_class),
            "entropy": self._entropy_weight(clock) * mean_entropy(logits),
        }
        return Losses(
            total=torch.stack(list(terms.values())).sum(),
            terms=terms,
            watched=self._watched(vote, gated, probability, batch.unlabelled),
        )

    def _classification(
        self,
        logits: Float[Tensor, "batch 2"],
        target: Float[Tensor, "batch 2"],
        labelled: Bool[Tensor, "batch"],
    ) -> Float[Tensor, ""]:
        if self.config.weighing == "classes":
            return class_weighted_cross_entropy(logits, target)
        return positive_unlabelled_cross_entropy(logits, target, labelled)

    def _move_prototypes_and_vote(
        self,
        query: Float[Tensor, "batch dim"],
        probability: Float[Tensor, "batch 2"],
        batch: PUBatch,
    ) -> Int64[Tensor, "batch"]:
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
        self, kept: KeptShare, judged: Float[Tensor, "batch 2"], batch: PUBatch, clock: Clock
    ) -> Int64[Tensor, "batch"]:
        """Return what the judge says, as often positive as it was before votes began."""
        margin = judged[:, POSITIVE] - judged[:, NEGATIVE]
        if clock.epoch < self.config.warmup_epochs:
            momentum = _early(self.config.threshold_momentum, clock)
            kept.remember(margin[batch.unlabelled], momentum=momentum)
        else:
            kept.keep(margin[batch.unlabelled])
        return _as_known(kept.positive(margin).long(), batch)

    def _move_threshold(
        self, probability: Float[Tensor, "batch 2"], unlabelled: Bool[Tensor, "batch"]
    ) -> None:
        """Let the gate's threshold follow the classifier's confidence (Eq. 12)."""
        counted = probability if self.config.threshold_rows == "all" else probability[unlabelled]
        self.gate.follow(
            counted, momentum=self.config.threshold_momentum, cap=self.config.confidence_cap
        )

    def _targets(
        self,
        probability: Float[Tensor, "batch 2"],
        vote: Int64[Tensor, "batch"],
        batch: PUBatch,
        settled: bool,
    ) -> tuple[Float[Tensor, "batch 2"], Bool[Tensor, "batch"]]:
        """Return the targets s (Eq. 11) and which rows the gate holds negative."""
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

    def _same_class(
        self,
        probability: Float[Tensor, "batch 2"],
        batch: PUBatch,
        settled: bool,
    ) -> Bool[Tensor, "batch batch"]:
        """Return the pairs Q: same predicted class, or only self pairs during warm-up."""
        if not settled:
            return torch.eye(len(probability), dtype=torch.bool, device=probability.device)
        known = _as_known(torch.zeros_like(batch.row), batch)
        certain = F.one_hot(known, 2).to(probability)
        believed = torch.where(batch.unlabelled[:, None], probability, certain)
        return same_class_pairs(believed, threshold=self.config.pair_threshold)

    @property
    def _alignment_weight(self) -> float:
        return 0.0 if self.config.alignment == "none" else self.config.alignment_weight

    def _entropy_weight(self, clock: Clock) -> float:
        """Ramp from 0 to w_ent over the warm-up: an unformed classifier must not take sides."""
        warmup = self.config.warmup_epochs
        ramp = 1.0 if warmup == 0 else min(clock.epoch / warmup, 1.0)
        return ramp * self.config.entropy_weight

    def _watched(
        self,
        vote: Int64[Tensor, "batch"],
        gated: Bool[Tensor, "batch"],
        probability: Float[Tensor, "batch 2"],
        unlabelled: Bool[Tensor, "batch"],
    ) -> dict[str, Tensor]:
        """Return what tells early whether votes overshoot or prototypes fall together."""
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

    So an average forgets at first where it started, as is usual for averages of weights.
    """
    done = clock.epoch * clock.steps + clock.step
    return min(momentum, (1 + done) / (10 + done))


def _as_known(label: Int64[Tensor, "batch"], batch: PUBatch) -> Int64[Tensor, "batch"]:
    """Return labels that agree with what is known: labelled positives, sure negatives."""
    corrected = label.masked_fill(batch.labelled, POSITIVE)
    return corrected if batch.negative is None else corrected.masked_fill(batch.negative, NEGATIVE)
