"""CE, Supervised, uPU, nnPU and ImbPU: one method, a choice of risk, alignment as a plug-in.

`RiskMethod` = classification risk x alignment (Table 3 and the appendix study of the NcPU
paper). A risk is a small settings class that turns margins into a number; the alignment
branch beside it is NcPU's own. `alignment = "none"`, the default here, is the baseline as
its authors published it.
"""

import warnings
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import torch
from jaxtyping import Bool, Float, Int64
from pydantic import Field
from torch import Tensor

from onesided.core.batch import Augment, DataFacts, Losses, Outputs, PUBatch
from onesided.core.clock import Clock
from onesided.core.config import Settings
from onesided.core.labels import POSITIVE
from onesided.losses.alignment import same_class_pairs
from onesided.losses.classification import (
    balanced_cross_entropy,
    margin,
    mean_entropy,
    mean_or_zero,
    p_positive,
    plain_cross_entropy,
)
from onesided.losses.risk import (
    PURisk,
    RiskParts,
    Surrogate,
    imbalanced_risk,
    nnpu_risk,
    released_imbalanced_risk,
    risk_parts,
    upu_risk,
)
from onesided.methods.alignment import ALIGNED_VIEWS, Alignment, AlignmentBranch, AlignmentConfig
from onesided.methods.base import Card, GradientMethod, Needs, short_training
from onesided.methods.logged import ALIGNMENT, CALLED_POSITIVE, ENTROPY, Logged
from onesided.nets.heads import classifier
from onesided.nets.standardise import Backbone

BALANCES = {"balanced": balanced_cross_entropy, "plain": plain_cross_entropy}


@dataclass(frozen=True)
class Evidence:
    """What a risk is computed from.

    Attributes:
        margin: Logit of positive minus logit of negative.
        labelled: Which rows are labelled positive.
        truth: True classes, only for a method that declared the need.
        prior: Share of positives among the unlabelled, likewise.
    """

    margin: Float[Tensor, "batch"]
    labelled: Bool[Tensor, "batch"]
    truth: Int64[Tensor, "batch"] | None = None
    prior: float | None = None

    @property
    def share(self) -> float:
        """The prior, which the method declared to need."""
        assert self.prior is not None, "declared in `needs`, so the run provides it"
        return self.prior

    def parts(self, surrogate: Surrogate) -> RiskParts:
        """Return the three means that PU risks are made of."""
        return risk_parts(self.margin, self.labelled, surrogate)


LOGS = {
    "risk": Logged("Risk", "The estimated cost of wrong decisions; what the method minimises."),
    "alignment": ALIGNMENT,
    "entropy": ENTROPY,
    "called_positive": CALLED_POSITIVE,
    "ascending": Logged(
        "Steps back", "Share of steps that went back because the negative part fell below zero."
    ),
}


class RiskConfig(AlignmentConfig):
    """What the five share: a risk, and the alignment plug-in, off by default."""

    alignment: Alignment = "none"
    """Representation learning beside the risk: none, self, class or robust (NoiSNCL)."""
    warmup_epochs: int = Field(default=30, ge=0)
    """Epochs in which alignment pairs are self pairs only."""
    entropy_weight: float = Field(default=0.0, ge=0)
    """Weight of the classifier's entropy; the plug-in study leaves it open, so none."""

    def build(self, facts: DataFacts, backbone: Backbone) -> "RiskMethod":
        """Return the untrained method."""
        return RiskMethod(self, facts, backbone)

    def budget_training(self, batch_size: int) -> Settings:
        """Return short training, unless w_r asks for a small rate."""
        if self.alignment == "none":
            return short_training(batch_size)
        return super().budget_training(batch_size)

    def for_budget(self, epochs: int) -> Self:
        """Return settings whose pairs of a class begin within a short run, as NcPU's do."""
        if self.alignment == "none":
            return self
        warmup = min(self.warmup_epochs, max(1, round(0.3 * epochs)))
        return self.model_copy(update={"warmup_epochs": warmup})

    def risk(self, seen: Evidence) -> PURisk:
        """Return the classification risk of one batch."""
        raise NotImplementedError


class RiskMethod(GradientMethod):
    """A classifier on a backbone, trained by one risk and, if asked, one alignment loss."""

    def __init__(self, config: RiskConfig, facts: DataFacts, backbone: Backbone) -> None:
        super().__init__()
        self.config = config
        self.needs = config.needs
        self.prior = facts.prior
        self.backbone = backbone
        self.classifier = classifier(backbone.width)
        self.views = {"classify": Augment.WEAK}
        self.branch = None
        if config.alignment != "none":
            self.views |= ALIGNED_VIEWS
            self.branch = AlignmentBranch(backbone, config)

    def forward(self, batch: PUBatch, clock: Clock) -> Outputs:
        """Return logits of the weak view and, with alignment, query and key."""
        outputs = {"logits": self.classifier(self.backbone(batch.views["classify"]))}
        if self.branch is not None:
            outputs["query"], outputs["key"] = self.branch(self.backbone, batch)
        return Outputs(outputs)

    def loss(self, outputs: Outputs, batch: PUBatch, clock: Clock) -> Losses:
        """Return risk + w_r x alignment + w_ent x entropy."""
        logits = outputs["logits"]
        evidence = Evidence(margin(logits), batch.labelled, batch.truth, self.prior)
        risk = self.config.risk(evidence)
        total, terms = risk.objective, {"risk": risk.value}
        if self.branch is not None:
            pairs = self._same_class(logits.detach(), batch, clock)
            aligned = self.branch.loss(outputs["query"], outputs["key"], pairs)
            terms["alignment"] = self.config.alignment_weight * aligned
            total = total + terms["alignment"]
        if self.config.entropy_weight:
            terms["entropy"] = self.config.entropy_weight * mean_entropy(logits)
            total = total + terms["entropy"]
        called = (p_positive(logits.detach()) > 0.5).float()
        watched = {
            "called_positive": mean_or_zero(called, batch.unlabelled),
            "ascending": risk.ascending.float(),
        }
        return Losses(total, terms, watched)

    def _same_class(
        self, logits: Float[Tensor, "batch 2"], batch: PUBatch, clock: Clock
    ) -> Bool[Tensor, "batch batch"]:
        """Return pairs from true classes where the method has them, else from predictions."""
        if clock.epoch < self.config.warmup_epochs:
            return torch.eye(len(logits), dtype=torch.bool, device=logits.device)
        if batch.truth is not None:
            return batch.truth[:, None] == batch.truth[None, :]
        return same_class_pairs(logits.softmax(dim=1), threshold=self.config.pair_threshold)


class CEConfig(RiskConfig):
    """Unlabelled taken as negative: what people do before they know better."""

    balance: Literal["balanced", "plain"] = "balanced"
    """Whether both classes weigh the same (as the NcPU authors ran it) or every sample does."""

    # Nothing to add: whatever is not labelled is taught as negative, and these are right.
    uses_negatives: ClassVar[bool] = True
    card: ClassVar[Card] = Card(
        title="CE",
        summary="An ordinary classifier that takes every unlabelled sample as negative.",
        citation="No publication: what everybody tries first; a baseline of the NcPU paper.",
        fidelity="The class-balanced form the authors ran is the default; plain is a variant.",
        licence="A formula of textbooks; nobody's code.",
        good_at="Ranking with small networks: a lower bound every method must beat.",
        bad_at="Flexible networks learn the labels by heart and call nothing positive.",
        variants={"balanced": "both classes weigh the same", "plain": "every sample does"},
        logs=LOGS,
    )

    def risk(self, seen: Evidence) -> PURisk:
        """Return cross entropy with unlabelled as negative."""
        return _descended(BALANCES[self.balance](seen.margin, seen.labelled))


class SupervisedConfig(CEConfig):
    """The oracle: true classes for everybody. An upper bound, not a PU method."""

    needs: ClassVar[Needs] = Needs(truth=True)
    card: ClassVar[Card] = Card(
        title="Supervised",
        summary="The same classifier with the true class of every sample: the upper bound.",
        citation="No publication; an oracle of the NcPU paper.",
        fidelity="Class-balanced, as the authors ran it.",
        licence="A formula of textbooks; nobody's code.",
        good_at="Telling how much of the gap is due to missing labels.",
        bad_at="Everything else: it needs the truth, and refuses data without it.",
        variants={"balanced": "both classes weigh the same", "plain": "every sample does"},
        logs=LOGS,
    )

    def risk(self, seen: Evidence) -> PURisk:
        """Return cross entropy with the true classes."""
        assert seen.truth is not None, "declared in `needs`, so the loader provides it"
        return _descended(BALANCES[self.balance](seen.margin, seen.truth == POSITIVE))


class UPUConfig(RiskConfig):
    """Unbiased PU risk; needs the class prior."""

    surrogate: Surrogate = "sigmoid"
    """Smooth stand-in for the zero-one loss: sigmoid (2014), logistic or double_hinge (2015)."""

    needs: ClassVar[Needs] = Needs(prior=True)
    card: ClassVar[Card] = Card(
        title="uPU",
        summary="An unbiased estimate of the ordinary risk, from P, U and the class prior.",
        citation="du Plessis, Niu, Sugiyama, Analysis of Learning from Positive and Unlabeled "
        "Data, NeurIPS 2014; Convex Formulation for Learning from Positive and Unlabeled Data, "
        "ICML 2015.",
        fidelity="The published estimator; the sigmoid loss as the NcPU authors ran it.",
        licence="Authors' code: MIT-style; nothing of it is here, nor of its GPL-3.0 port.",
        good_at="Linear and small models, where unbiasedness is all that is needed.",
        bad_at="Flexible networks drive the risk below zero: over-fitting.",
        variants={"sigmoid": "2014", "logistic": "2015, convex", "double_hinge": "2015, convex"},
        logs=LOGS,
    )

    def risk(self, seen: Evidence) -> PURisk:
        """Return the unbiased risk."""
        return upu_risk(seen.parts(self.surrogate), seen.share)


class NNPUConfig(UPUConfig):
    """Non-negative PU risk; needs the class prior."""

    step: float = Field(default=1.0, gt=0, le=1)
    """Factor of the climb when the negative part is below zero, gamma."""
    tolerance: float = Field(default=0.0, ge=0)
    """How far below zero the negative part may be before the climb, beta."""

    card: ClassVar[Card] = Card(
        title="nnPU",
        summary="uPU that climbs back when its negative part falls below zero.",
        citation="Kiryo, Niu, du Plessis, Sugiyama, Positive-Unlabeled Learning with Non-Negative "
        "Risk Estimator, NeurIPS 2017.",
        fidelity="The published step rule (Algorithm 1), not a clamp.",
        licence="Authors' code: MIT-style; nothing of it is here, nor of its GPL-3.0 port.",
        good_at="Deep networks with a good class prior; the field's default baseline.",
        bad_at="A wrong prior: too high calls nearly everything positive, too low misses many.",
        variants={"sigmoid": "as published", "logistic": "unbounded", "double_hinge": "unbounded"},
        logs=LOGS,
    )

    def risk(self, seen: Evidence) -> PURisk:
        """Return the non-negative risk."""
        parts = seen.parts(self.surrogate)
        return nnpu_risk(parts, seen.share, step=self.step, tolerance=self.tolerance)


MOST_PRIOR = 0.95
"""Above it ImbPU's weight of the negatives, (1 - pi') / (1 - pi), grows without bound."""


class ImbPUConfig(NNPUConfig):
    """nnPU learnt for a world with another share of positives."""

    variant: Literal["published", "released"] = "published"
    """ImbPU as published, or the form the NcPU authors' code runs (nnPU with a scaled climb)."""
    target_prior: float = Field(default=0.5, gt=0, lt=1)
    """Share of positives to learn for, pi'."""

    card: ClassVar[Card] = Card(
        title="ImbPU",
        summary="nnPU re-weighted to a balanced world, for rare positives.",
        citation="Su, Chen, Xu, Positive-Unlabeled Learning from Imbalanced Data, IJCAI 2021.",
        fidelity="As published; the overwritten form of the NcPU authors' code is a variant.",
        licence="Authors' code: MIT; nothing of it is here.",
        good_at="Rare positives where recall matters.",
        bad_at="Priors above one half, where it favours the negatives; a wrong prior.",
        variants={"published": "as published", "released": "as the NcPU authors' code runs it"},
        logs=LOGS,
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> "RiskMethod":
        """Return the untrained method; warn of a prior under which few samples weigh it all."""
        if facts.prior is not None and MOST_PRIOR < facts.prior < 1:
            warnings.warn(
                f"ImbPU with a prior of {facts.prior:.3g} multiplies the few negatives by "
                f"{(1 - self.target_prior) / (1 - facts.prior):.0f}. Check the prior, or use nnPU.",
                stacklevel=2,
            )
        return super().build(facts, backbone)

    def risk(self, seen: Evidence) -> PURisk:
        """Return the re-weighted non-negative risk."""
        formula = imbalanced_risk if self.variant == "published" else released_imbalanced_risk
        return formula(
            seen.parts(self.surrogate),
            seen.share,
            target_prior=self.target_prior,
            step=self.step,
            tolerance=self.tolerance,
        )


def _descended(loss: Float[Tensor, ""]) -> PURisk:
    return PURisk(loss, loss.detach(), torch.zeros((), dtype=torch.bool, device=loss.device))
