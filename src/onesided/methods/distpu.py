"""DistPU: positive-unlabelled learning from a label distribution (Zhao et al., CVPR 2022).

Two stages. `align` brings the mean prediction of P to 1 and that of U to the class prior.
`mix` continues this and adds mixtures of samples, whose targets are mixed from the network's
own soft labels. So it also decides about single samples. Symbols:

| paper             | here                      | paper         | here                         |
|-------------------|---------------------------|---------------|------------------------------|
| f(x), p           | `margin`, its sigmoid     | pi            | `prior`                      |
| R_lab             | `label_distribution_risk` | L_ent         | mean of `binary_entropy`     |
| y-hat (soft label)| `soft_labels`             | lambda, alpha | `share`, `mixup_alpha`       |
| x'                | `mixed`                   | L_mix, L'_ent | `mixup`, `mixed_entropy`     |

The paper has one logit per sample; here it is the margin of two.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from onesided.core.batch import Augment, DataFacts, Losses, Outputs, PUBatch
from onesided.core.clock import Clock, Pace, Stage, Sweep
from onesided.core.dist import gather, shard
from onesided.losses.classification import margin, mean_or_zero, p_positive
from onesided.losses.distribution import binary_entropy, label_distribution_risk, mixup_cost
from onesided.losses.mixup import draw_share, mix
from onesided.methods.base import Card, GradientMethod, Needs, VariantConfig, summed, watched_scores
from onesided.methods.logged import logs
from onesided.methods.mixing import mixup_generator
from onesided.methods.shapes import RowIntegers, RowMask, RowValues, Scalar
from onesided.nets.heads import classifier
from onesided.nets.standardise import Backbone
from onesided.state.row_labels import RowLabels

ALIGN, MIX = "align", "mix"


class DistPUConfig(VariantConfig):
    """Settings of DistPU; needs the class prior. The defaults are its authors'."""

    switches: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "published": {},
        "ncpu-paper": {"view": "weak", "logit_limit": 10.0},
    }
    variant: Literal["published", "ncpu-paper"] = "published"
    """A group of settings: as published, or as the NcPU paper ran it. Each can be set alone."""
    view: Literal["plain", "weak"] = "plain"
    """View to train on: the samples as they are (published), or weakly augmented."""
    start_view: Literal["plain", "weak"] = "plain"
    """View of the first soft labels; weak is one random crop each, as in the NcPU authors' code."""
    risk_scale: Literal["released", "paper"] = "released"
    """R_lab / (2 prior), for which all published weights are chosen, or R_lab itself."""
    align_share: float = Field(default=0.5, gt=0, le=1)
    """Share of the epochs that the first stage takes; 60 of 120 as published."""
    align_entropy_weight: float = Field(default=2e-3, ge=0)
    """Weight of the entropy on U in the first stage."""
    entropy_weight: float = Field(default=4e-3, ge=0)
    """Weight of the entropy on U at the end of the second stage; it rises from 0."""
    mixed_entropy_weight: float = Field(default=0.04, ge=0)
    """Weight of the entropy on mixed samples."""
    mixup_weight: float = Field(default=5.0, ge=0)
    """Weight of the cost of mixed samples."""
    mixup_alpha: float = Field(default=6.0, gt=0)
    """Both parameters of the Beta distribution of shares; one share per batch."""
    logit_limit: float = Field(default=0.0, ge=0)
    """Margins are clamped to this size in the second stage and in every entropy, and get no
    gradient beyond it; 0 means never. The authors' code has 10."""
    align_optimizer: Literal["train", "plain-sgd"] = "train"
    """Optimizer of the first stage: the run's, or SGD without momentum (NcPU paper, STL-10)."""
    mix_learning_rate: float = Field(default=0.1, gt=0)
    """Learning rate of the second stage, as a factor of train.learning_rate."""
    mix_weight_decay: float = Field(default=0.2, ge=0)
    """Weight decay of the second stage, as a factor of train.weight_decay."""
    mix_floor: float = Field(default=0.7, ge=0, le=1)
    """Share of its learning rate at which the second stage ends."""

    needs: ClassVar[Needs] = Needs(prior=True)
    card: ClassVar[Card] = Card(
        title="DistPU",
        summary="Fits the share of predicted positives to the class prior, then sharpens scores.",
        citation="Zhao, Xu, Jiang, Wen, Huang, Dist-PU: Positive-Unlabeled Learning From a Label "
        "Distribution Perspective, CVPR 2022.",
        fidelity="The risk has the scale of the authors' code, for which the weights are given. "
        "Logits are not clamped; the code clamps them at 10.",
        licence="Authors' code: no licence stated, all rights reserved; nothing of it is here.",
        good_at="A correct prior below 0.5; both tables and images.",
        bad_at="A prior that is too high: from 0.5 on, calling everything positive is the best "
        "constant, and a run with prior 0.72 instead of the true 0.4 ends there.",
        variants={
            "published": "no augmentation, as its authors ran it",
            "ncpu-paper": "weak views and clamped logits, as the NcPU paper ran it",
        },
        logs=logs(
            "entropy mixup mean_positive called_positive",
            own={
                "risk": "How far the mean scores are from 1 on P and from the prior on the pool.",
                "mixed_entropy": "The same as the entropy, on blends of two samples.",
            },
            titles={"mixed_entropy": "Entropy of blends"},
        ),
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> "DistPU":
        """Return an untrained DistPU."""
        return DistPU(self, facts, backbone)


class DistPU(GradientMethod):
    """A classifier on a backbone; the soft label of a row is its last prediction."""

    needs = Needs(prior=True)

    def __init__(self, config: DistPUConfig, facts: DataFacts, backbone: Backbone) -> None:
        super().__init__()
        self.config = config
        self.prior = facts.prior
        self.backbone = backbone
        self.classifier = classifier(backbone.width)
        self.soft_labels = RowLabels(facts.rows)
        self.views = {"classify": Augment(config.view)}

    def plan(self, epochs: int) -> Sequence[Stage]:
        """Return the stages align and mix; a run of one epoch only aligns."""
        config = self.config
        align = min(max(1, round(epochs * config.align_share)), epochs)
        plain_sgd = Pace(optimizer="sgd", momentum=0.0)
        first = Stage(ALIGN, align, pace=Pace() if config.align_optimizer == "train" else plain_sgd)
        pace = Pace(
            learning_rate=config.mix_learning_rate,
            weight_decay=config.mix_weight_decay,
            floor=config.mix_floor,
        )
        return [first, Stage(MIX, epochs - align, pace=pace)] if align < epochs else [first]

    def begin_stage(self, stage: Stage, sweep: Sweep) -> None:
        """Warn of a prior that may cause collapse; set the first soft labels."""
        if stage.name == ALIGN and self.prior is not None and self.prior >= 0.5:
            warnings.warn(
                f"DistPU got prior {self.prior:g}. From 0.5 on, a model that calls everything "
                "positive has a lower risk than any other constant, and training may end there. "
                "Check the prior, or choose a method that needs none.",
                stacklevel=2,
            )
        if stage.name == MIX:
            view = Augment(self.config.start_view)
            positive, _ = sweep(lambda images: p_positive(self.classify(images)), view=view)
            self.soft_labels.fill(positive)

    def forward(self, batch: PUBatch, clock: Clock) -> Outputs:
        """Return logits of the samples and, in the second stage, of their mixtures."""
        images = batch.views["classify"]
        if clock.stage != MIX:
            return Outputs({"logits": self.classify(images)})
        # The mixture goes first, as published: BatchNorm's last update is on unmixed samples.
        mixed = self.classify(self._mixed(images, clock))
        return Outputs({"logits": self.classify(images), "mixed": mixed})

    def loss(self, outputs: Outputs, batch: PUBatch, clock: Clock) -> Losses:
        """Return the loss of the stage, after reading and updating the soft labels."""
        second = clock.stage == MIX
        clean = margin(outputs["logits"])
        terms = {
            "risk": self._risk(self._cut(clean) if second else clean, batch.labelled),
            "entropy": self._entropy_weight(clock)
            * mean_or_zero(binary_entropy(self._cut(clean)), ~batch.labelled),
        }
        if second:
            terms |= self._mixture_terms(self._cut(margin(outputs["mixed"])), batch, clock)
            self.soft_labels.overwrite(batch.row, self._cut(clean).detach().sigmoid())
        return summed(terms, watched_scores(clean.detach().sigmoid(), ~batch.labelled))

    def _risk(self, clean: RowValues, labelled: RowMask) -> Scalar:
        """Return R_lab in the scale of the settings."""
        assert self.prior is not None, "declared in `needs`, so the run provides it"
        risk = label_distribution_risk(clean, labelled, prior=self.prior)
        return risk / (2 * self.prior) if self.config.risk_scale == "released" else risk

    def _mixture_terms(self, mixed: RowValues, batch: PUBatch, clock: Clock) -> dict[str, Tensor]:
        """Return loss and entropy of the mixtures, with the soft labels from before this step."""
        share, partner = self._draw(len(mixed), clock)
        own = self.soft_labels.read(batch.row, batch.labelled).to(mixed)
        cost = mixup_cost(mixed, own, own[partner.to(own.device)], share=share)
        return {
            "mixup": self.config.mixup_weight * cost,
            "mixed_entropy": self.config.mixed_entropy_weight * binary_entropy(mixed).mean(),
        }

    def _mixed(self, images: Tensor, clock: Clock) -> Tensor:
        """Mix this shard with partners from the whole batch, as a single process would."""
        whole = gather(images)
        share, partner = self._draw(len(whole), clock)
        mine = partner[shard(len(whole))].to(images.device)
        return mix(images, whole[mine], share)

    def _draw(self, count: int, clock: Clock) -> tuple[float, RowIntegers]:
        """Draw the share of the batch and every row's partner; the same in all processes."""
        random = mixup_generator(clock)
        share = draw_share(self.config.mixup_alpha, random)
        return share, torch.from_numpy(random.permutation(count))

    def _entropy_weight(self, clock: Clock) -> float:
        """Return the constant of the first stage, or the rising weight of the second."""
        if clock.stage != MIX:
            return self.config.align_entropy_weight
        risen = 1 - math.cos(math.pi / 2 * clock.epoch / clock.epochs)
        return self.config.entropy_weight * risen

    def _cut(self, values: RowValues) -> RowValues:
        limit = self.config.logit_limit
        return values.clamp(-limit, limit) if limit else values
