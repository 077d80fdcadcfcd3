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
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from onesided.core.batch import Augment, DataFacts, Losses, Outputs, PUBatch
from onesided.core.clock import Clock
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.losses.alignment import same_class_pairs
from onesided.losses.classification import (
    class_weighted_cross_entropy,
    mean_entropy,
    mean_or_zero,
    positive_unlabelled_cross_entropy,
)
from onesided.methods.alignment import (
    ALIGNED_VIEWS,
    EMBEDDING,
    AlignmentBranch,
)
from onesided.methods.base import Card, GradientMethod
from onesided.methods.logged import (
    ALIGNMENT,
    CALLED_POSITIVE,
    CLASSIFICATION,
    ENTROPY,
    POSITIVE_VOTES,
    PROTOTYPE_COSINE,
    Logged,
)
from onesided.methods.ncpu_settings import NcPUSettings
from onesided.nets.heads import classifier
from onesided.nets.momentum import TargetNetwork
from onesided.nets.standardise import Backbone
from onesided.state.kept_share import KeptShare
from onesided.state.prototypes import Prototypes
from onesided.state.pseudo_targets import PseudoTargets
from onesided.state.threshold import SelfAdaptiveThreshold

VIEWS: Mapping[str, Mapping[str, Augment]] = {
    "three": {"classify": Augment.WEAK, **ALIGNED_VIEWS},
    "two": {"query": Augment.STRONG, "key": Augment.WEAK},
}


class NcPUConfig(NcPUSettings):
    """Settings of NcPU, what people are told of it, and the method they make."""

    uses_negatives: ClassVar[bool] = True
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
        logs={
            "classification": CLASSIFICATION,
            "alignment": ALIGNMENT,
            "entropy": ENTROPY,
            "threshold": Logged(
                "Threshold τ",
                "How sure the model must be before a sample is taught as surely negative.",
            ),
            "confidence": Logged("Confidence", "How sure the model is on average."),
            "prototype_cosine": PROTOTYPE_COSINE,
            "positive_votes": POSITIVE_VOTES,
            "gated": Logged(
                "Taught as negative",
                "Share of the pool that is taught as surely negative.",
            ),
            "called_positive": CALLED_POSITIVE,
        },
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> "NcPU":
        """Return an untrained NcPU."""
        return NcPU(self, facts, backbone)


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
