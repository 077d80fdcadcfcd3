"""CE, Supervised, uPU, nnPU and ImbPU: one method, a choice of risk, alignment as a plug-in.

`RiskMethod` = classification risk x alignment (Table 3 and the appendix study of the NcPU
paper). A risk is a small settings class that turns margins into a number; the alignment
branch is that of NcPU. `alignment = "none"`, the default here, is the baseline as its
authors published it.
"""

import warnings
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import torch
from pydantic import Field

from onesided.core.batch import DataFacts, Losses, Outputs, PUBatch
from onesided.core.clock import Clock
from onesided.core.config import Settings
from onesided.core.labels import POSITIVE
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
from onesided.methods.alignment import (
    ALIGNED_VIEWS,
    Alignment,
    AlignmentBranch,
    AlignmentConfig,
    Pairs,
    self_pairs,
)
from onesided.methods.base import Card, GradientMethod, Needs, short_training
from onesided.methods.logged import logs
from onesided.methods.shapes import PairMask, RowIntegers, RowMask, RowValues, Scalar, TwoColumns
from onesided.nets.heads import classifier
from onesided.nets.standardise import Backbone

BALANCES = {"balanced": balanced_cross_entropy, "plain": plain_cross_entropy}


@dataclass(frozen=True)
class Evidence:
    """The inputs of a risk; `truth` and `prior` only for a method that declared the need."""

    margin: RowValues
    labelled: RowMask
    truth: RowIntegers | None = None
    prior: float | None = None

    @property
    def share(self) -> float:
        """The prior, for a method that declared the need."""
        assert self.prior is not None, "declared in `needs`, so the run provides it"
        return self.prior

    def parts(self, surrogate: Surrogate) -> RiskParts:
        """Return the three means of which PU risks consist."""
        return risk_parts(self.margin, self.labelled, surrogate)


LOGS = logs(
    "alignment entropy called_positive",
    own={
        "risk": "The estimated cost of wrong decisions, which the method minimises.",
        "ascending": "Share of steps with gradient ascent: the negative part was below zero.",
    },
    titles={"ascending": "Ascent steps"},
)


class RiskConfig(AlignmentConfig):
    """Settings of all five: the alignment plug-in, off by default. Subclasses add the risk."""

    alignment: Alignment = "none"
    """Representation learning beside the risk: none, self, class or robust (NoiSNCL)."""
    pairs: Pairs = "probabilities"
    """Which samples count as one class: those whose probabilities agree, f_i . f_j >=
    pair_threshold (the paper's plug-in study, App. H); those of one predicted class, predicted;
    or labelled, by probabilities with labelled positives on their own side."""
    warmup_epochs: int = Field(default=30, ge=0)
    """Epochs in which alignment pairs are self pairs only."""
    entropy_weight: float = Field(default=0.0, ge=0)
    """Weight of the classifier's entropy; the plug-in study gives none, so it is 0."""

    def build(self, facts: DataFacts, backbone: Backbone) -> "RiskMethod":
        """Return the untrained method."""
        return RiskMethod(self, facts, backbone)

    def budget_training(self, batch_size: int) -> Settings:
        """Return short training, unless w_r needs a small rate."""
        if self.alignment == "none":
            return short_training(batch_size)
        return super().budget_training(batch_size)

    def for_budget(self, epochs: int) -> Self:
        """Return settings whose class pairs begin within a short run, as in NcPU."""
        if self.alignment == "none":
            return self
        warmup = min(self.warmup_epochs, max(1, round(0.3 * epochs)))
        return self.model_copy(update={"warmup_epochs": warmup})

    def risk(self, seen: Evidence) -> PURisk:
        """Return the classification risk of one batch."""
        raise NotImplementedError


class RiskMethod(GradientMethod):
    """A classifier on a backbone, trained by one risk and, if set, one alignment loss."""

    def __init__(self, config: RiskConfig, facts: DataFacts, backbone: Backbone) -> None:
        super().__init__()
        self.config = config
        self.needs = config.needs
        self.prior = facts.prior
        self.backbone = backbone
        self.classifier = classifier(backbone.width)
        self.branch = None
        if config.alignment != "none":
            self.views = {**self.views, **ALIGNED_VIEWS}
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

    def _same_class(self, logits: TwoColumns, batch: PUBatch, clock: Clock) -> PairMask:
        """Return pairs of one class: the true one where the method has it, else the predicted."""
        if clock.epoch < self.config.warmup_epochs:
            return self_pairs(batch)
        if batch.truth is not None:
            return batch.truth[:, None] == batch.truth[None, :]
        return self.config.class_pairs(logits.softmax(dim=1), batch)


class CEConfig(RiskConfig):
    """Cross entropy with the unlabelled rows as negatives: the naive baseline."""

    balance: Literal["balanced", "plain"] = "balanced"
    """What weighs the same: both classes (as the NcPU authors ran it), or every sample."""

    # No special treatment: all rows that are not labelled are trained as negative.
    uses_negatives: ClassVar[bool] = True
    card: ClassVar[Card] = Card(
        title="CE",
        summary="An ordinary classifier that takes every unlabelled sample as negative.",
        citation="No publication: the usual first attempt; a baseline of the NcPU paper.",
        fidelity="The class-balanced form of the NcPU authors is the default; plain is a variant.",
        licence="A formula of textbooks; nobody's code.",
        good_at="Ranking with small networks: a baseline that every method must beat.",
        bad_at="Flexible networks, which memorise the labels and call nothing positive.",
        variants={"balanced": "both classes weigh the same", "plain": "all samples weigh the same"},
        logs=LOGS,
    )

    def risk(self, seen: Evidence) -> PURisk:
        """Return cross entropy with unlabelled as negative."""
        return descended(BALANCES[self.balance](seen.margin, seen.labelled))


class SupervisedConfig(CEConfig):
    """Trained on the true classes: an upper bound, not a PU method."""

    needs: ClassVar[Needs] = Needs(truth=True)
    card: ClassVar[Card] = replace(
        CEConfig.card,
        title="Supervised",
        summary="The same classifier with the true class of every sample: the upper bound.",
        citation="No publication; an oracle of the NcPU paper.",
        fidelity="Class-balanced, as the NcPU authors ran it.",
        good_at="Measuring how much performance is lost by missing labels.",
        bad_at="Everything else: it needs the true classes, and refuses data without them.",
    )

    def risk(self, seen: Evidence) -> PURisk:
        """Return cross entropy with the true classes."""
        assert seen.truth is not None, "declared in `needs`, so the loader provides it"
        return descended(BALANCES[self.balance](seen.margin, seen.truth == POSITIVE))


class UPUConfig(RiskConfig):
    """Unbiased PU risk; needs the class prior."""

    surrogate: Surrogate = "sigmoid"
    """Smooth replacement of the zero-one loss: sigmoid (2014), logistic, double_hinge (2015)."""

    needs: ClassVar[Needs] = Needs(prior=True)
    card: ClassVar[Card] = Card(
        title="uPU",
        summary="An unbiased estimate of the ordinary risk, from P, U and the class prior.",
        citation="du Plessis, Niu, Sugiyama, Analysis of Learning from Positive and Unlabeled "
        "Data, NeurIPS 2014; Convex Formulation for Learning from Positive and Unlabeled Data, "
        "ICML 2015.",
        fidelity="The published estimator; the sigmoid loss as the NcPU authors ran it.",
        licence="Authors' code: MIT-style; nothing of it is here, nor of its GPL-3.0 port.",
        good_at="Linear and small models, for which an unbiased risk is enough.",
        bad_at="Flexible networks, which overfit: their risk falls below zero.",
        variants={"sigmoid": "2014", "logistic": "2015, convex", "double_hinge": "2015, convex"},
        logs=LOGS,
    )

    def risk(self, seen: Evidence) -> PURisk:
        """Return the unbiased risk."""
        return upu_risk(seen.parts(self.surrogate), seen.share)


class NNPUConfig(UPUConfig):
    """Non-negative PU risk; needs the class prior."""

    step: float = Field(default=1.0, gt=0, le=1)
    """Factor of the gradient ascent when the negative part is below zero, gamma."""
    tolerance: float = Field(default=0.0, ge=0)
    """How far below zero the negative part may be before the ascent, beta."""

    card: ClassVar[Card] = replace(
        UPUConfig.card,
        title="nnPU",
        summary="uPU with gradient ascent when its negative part falls below zero.",
        citation="Kiryo, Niu, du Plessis, Sugiyama, Positive-Unlabeled Learning with Non-Negative "
        "Risk Estimator, NeurIPS 2017.",
        fidelity="The published step rule (Algorithm 1), not a clamp.",
        good_at="Deep networks with a good class prior; the usual baseline of the field.",
        bad_at="A wrong prior: too high calls nearly everything positive, too low misses many.",
        variants={"sigmoid": "as published", "logistic": "unbounded", "double_hinge": "unbounded"},
    )

    def risk(self, seen: Evidence) -> PURisk:
        """Return the non-negative risk."""
        parts = seen.parts(self.surrogate)
        return nnpu_risk(parts, seen.share, step=self.step, tolerance=self.tolerance)


MOST_PRIOR = 0.95
"""Above it ImbPU's weight of the negatives, (1 - pi') / (1 - pi), is too large."""


class ImbPUConfig(NNPUConfig):
    """nnPU with its risk re-weighted to another share of positives."""

    variant: Literal["published", "released"] = "published"
    """ImbPU as published, or as in the NcPU authors' code (nnPU with a scaled ascent)."""
    target_prior: float = Field(default=0.5, gt=0, lt=1)
    """Share of positives to re-weight to, pi'."""

    card: ClassVar[Card] = Card(
        title="ImbPU",
        summary="nnPU re-weighted to equal classes, for rare positives.",
        citation="Su, Chen, Xu, Positive-Unlabeled Learning from Imbalanced Data, IJCAI 2021.",
        fidelity="As published; the overwritten form of the NcPU authors' code is a variant.",
        licence="Authors' code: MIT; nothing of it is here.",
        good_at="Rare positives where recall matters.",
        bad_at="Priors above 0.5, where it favours the negatives; a wrong prior.",
        variants={"published": "as published", "released": "as the NcPU authors' code runs it"},
        logs=LOGS,
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> "RiskMethod":
        """Return the untrained method; warn of a prior that gives few samples all the weight."""
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


def descended(loss: Scalar) -> PURisk:
    """Return a loss that is descended in every step, as a risk."""
    return PURisk(loss, loss.detach(), torch.zeros((), dtype=torch.bool, device=loss.device))
