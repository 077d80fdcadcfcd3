"""HolisticPU: beyond myopia, learning from predictive trends (Wang et al., NeurIPS 2023).

Two stages. `observe` trains one network to tell P from U, with as many of P as of U in
every batch, and records its prediction of each row after every epoch. Predictions of
negatives in U fall steadily, those of positives go up and down. A trend score per row and a
break in these scores give pseudo labels. `teach` trains new weights on the pseudo labels,
with a weight that grows. Symbols:

| paper / code     | here                         | paper / code   | here                        |
|------------------|------------------------------|----------------|-----------------------------|
| f(x)             | sigmoid of `margin`          | rho            | `smoothing`                 |
| p^(t)            | `trends.history`             | EMA model      | `average`                   |
| TS (trend score) | `trends.scores`              | lambda         | `_trust`                    |
| Fisher break     | `trend_break`                | tau            | `confidence`                |
| x^w, x^s         | views "weak", "strong"       | pseudo label   | `pseudo_labels`             |

The paper numbers the classes 0 = positive, 1 = negative; here POSITIVE = 1, NEGATIVE = 0.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Bool
from pydantic import Field
from torch import Tensor

from onesided.core.batch import Augment, DataFacts, Losses, Outputs, PUBatch, Stratified
from onesided.core.clock import Clock, Pace, Stage, Sweep
from onesided.core.errors import ConfigError
from onesided.core.rng import generator
from onesided.losses.classification import margin, mean_or_zero, p_positive
from onesided.losses.pseudo_labels import confident_consistency, soft_label_cost
from onesided.methods.base import Card, GradientMethod, VariantConfig, summed, watched_scores
from onesided.methods.logged import logs
from onesided.methods.shapes import RowValues
from onesided.nets.build import initialise
from onesided.nets.heads import classifier
from onesided.nets.momentum import AveragedNetwork
from onesided.nets.standardise import Backbone
from onesided.priors.natural_break import trend_break
from onesided.state.row_labels import RowLabels
from onesided.state.trend import PredictionTrends, Trend

OBSERVE, TEACH = "observe", "teach"
OBSERVED_SHARE = 15 / 40
"""Share of the published run that the first stage takes."""
LARGEST_HEAD_START = 0.85
"""Trends mislead if predictions have this share of their final spread at the first recording."""


class HolisticPUConfig(VariantConfig):
    """Settings of HolisticPU; the defaults are its authors'."""

    switches: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "published": {},
        "ncpu-paper": {"smoothing": 0.01},
    }
    variant: Literal["published", "ncpu-paper"] = "published"
    """A group of settings: as published, or as the NcPU paper ran it. Each can be set alone."""
    smoothing: float = Field(default=0.1, ge=0, le=1)
    """Label smoothing of P in the first stage, rho; 0.01 as the NcPU paper ran it."""
    trend_epochs: int = Field(default=15, ge=2)
    """Epochs of the first stage and recordings per row; all other epochs are the second stage."""
    steps_per_epoch: int = Field(default=0, ge=0)
    """Steps of an epoch; 0 means one pass over U. The published runs have 512 on all data."""
    trend: Trend = "consecutive"
    """Trend score: consecutive recordings as in the authors' code, the same with a symmetric
    influence, or all pairs of recordings."""
    record_view: Literal["plain", "weak"] = "plain"
    """View that is recorded; the authors' code takes a random weak one, whose noise blurs it."""
    average_momentum: float = Field(default=0.999, ge=0, lt=1)
    """Momentum per step of the averaged network that is recorded."""
    confidence: float = Field(default=0.9, ge=0.5, le=1)
    """Confidence from which the prediction of a weak view is the target of the strong one."""
    trust_power: float = Field(default=0.8, gt=0)
    """Pseudo labels have the weight (epoch / epochs) to this power in the second stage."""
    statistics: Literal["every-epoch", "first-epoch"] = "every-epoch"
    """When BatchNorm updates its statistics in the second stage; in the authors' code, by mistake,
    in the first epoch only."""

    card: ClassVar[Card] = Card(
        title="HolisticPU",
        summary="Records predictions during training; rows that fall steadily are negative.",
        citation="Wang, Wan, Geng, Wu, Sun, Lin, Beyond Myopia: Learning from Positive and "
        "Unlabeled Data through Holistic Predictive Trends, NeurIPS 2023.",
        fidelity="Losses, score and break as in the authors' code, recorded on plain samples. "
        "Weak and strong views are those of this library, not RandAugment.",
        licence="Authors' code: no licence stated, all rights reserved; nothing of it is here.",
        good_at="No prior, no negatives, training slow enough to show trends.",
        bad_at="Training that converges before the first recording: then all trends look alike. "
        "Results vary much between seeds.",
        variants={
            "published": "as in the authors' code",
            "ncpu-paper": "less smoothing, as the NcPU paper ran it",
        },
        logs=logs(
            "consistency mean_positive called_positive",
            own={
                "positive": "How far the labelled positives are from being called positive.",
                "unlabelled": "How far the pool is from its targets: negative, then pseudo labels.",
                "pseudo_positive": "Share of the pool whose pseudo label is positive.",
                "sure": "Share of the pool predicted with enough confidence to be a target.",
            },
            titles={
                "positive": "Loss on positives",
                "unlabelled": "Loss on the pool",
                "pseudo_positive": "Pseudo positives",
                "sure": "Sure predictions",
            },
        ),
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> "HolisticPU":
        """Return an untrained HolisticPU."""
        return HolisticPU(self, facts, backbone)

    def budget_learning_rate(self) -> float:
        """Return a small rate: at ten times this rate training converges before recordings."""
        return 0.002

    def batching(self, batch_size: int) -> Stratified:
        """Return batches of which half is P, as its authors draw them."""
        return Stratified(max(1, batch_size // 2))

    def for_budget(self, epochs: int) -> "HolisticPUConfig":
        """Return settings with the published proportion of the stages, in passes over U.

        Such runs have hundreds to a few thousand steps instead of twenty thousand, so the
        averaged network must forget its initial weights ten times as fast.
        """
        return self.model_copy(
            update={
                "trend_epochs": max(2, round(epochs * OBSERVED_SHARE)),
                "steps_per_epoch": 0,
                "average_momentum": min(self.average_momentum, 0.99),
            }
        )


class HolisticPU(GradientMethod):
    """A classifier on a backbone, its average, a table of trends and one of pseudo labels."""

    def __init__(self, config: HolisticPUConfig, facts: DataFacts, backbone: Backbone) -> None:
        super().__init__()
        self.config = config
        self.seed = facts.seed
        self.backbone = backbone
        self.classifier = classifier(backbone.width)
        self.average = AveragedNetwork(self.backbone, self.classifier)
        self.trends = PredictionTrends(facts.rows, config.trend_epochs)
        self.pseudo_labels = RowLabels(facts.rows)
        self.views = {"weak": Augment.WEAK, "strong": Augment.STRONG}
        self.batching = config.batching(facts.batch_size)

    def plan(self, epochs: int) -> Sequence[Stage]:
        """Return the stages: observe as long as trends need, teach for all other epochs."""
        observe = min(self.config.trend_epochs, epochs - 1)
        if observe < 2:
            raise ConfigError(
                "HolisticPU needs at least 3 epochs: two to record a trend and one to train on it; "
                f"got {epochs}. Raise train.epochs."
            )
        teach = epochs - observe
        # The published schedule ends early in the first stage; it is not compressed.
        pace = Pace(span=max(observe, teach))
        steps = self.config.steps_per_epoch
        return [Stage(OBSERVE, observe, pace=pace, steps=steps), Stage(TEACH, teach, steps=steps)]

    def begin_stage(self, stage: Stage, sweep: Sweep) -> None:
        """Before the second stage: make pseudo labels from trends, and reset the network."""
        if stage.name == TEACH:
            labelled = self._record(sweep)
            self._label_by_trend(~labelled)
            self._reset_weights()

    def begin_epoch(self, clock: Clock, sweep: Sweep) -> None:
        """Record the predictions of all rows after each epoch of the first stage."""
        if clock.stage == OBSERVE and clock.epoch > 0:
            self._record(sweep)

    def forward(self, batch: PUBatch, clock: Clock) -> Outputs:
        """Return logits of weak and strong views, which are one batch for BatchNorm."""
        if clock.stage == OBSERVE and clock.step > 0:
            self._follow()
        frozen = self.config.statistics == "first-epoch" and clock.stage == TEACH and clock.epoch
        self.backbone.train(self.training and not frozen)
        views = torch.cat([batch.views["weak"], batch.views["strong"]])
        weak, strong = self.classify(views).chunk(2)
        return Outputs({"weak": weak, "strong": strong})

    def loss(self, outputs: Outputs, batch: PUBatch, clock: Clock) -> Losses:
        """Return the loss of the stage."""
        weak, strong = margin(outputs["weak"]), margin(outputs["strong"])
        scores = watched_scores(weak.detach().sigmoid(), ~batch.labelled)
        if clock.stage != TEACH:
            return summed(self._observe(weak, strong, batch), scores)
        terms, watched = self._teach(weak, strong, batch, clock)
        return summed(terms, {**scores, **watched})

    def _observe(self, weak: RowValues, strong: RowValues, batch: PUBatch) -> dict[str, Tensor]:
        """Return the loss of P against U: both views of P positive, the weak one of U negative."""
        positive = torch.full_like(weak, 1 - self.config.smoothing / 2)
        on_positive = (soft_label_cost(weak, positive) + soft_label_cost(strong, positive)) / 2
        on_unlabelled = soft_label_cost(weak, torch.zeros_like(weak))
        return {
            "positive": mean_or_zero(on_positive, batch.labelled),
            "unlabelled": mean_or_zero(on_unlabelled, ~batch.labelled),
        }

    def _teach(
        self, weak: RowValues, strong: RowValues, batch: PUBatch, clock: Clock
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return the loss on weighted pseudo labels and on sure weak views, and what to log."""
        pseudo = self.pseudo_labels.read(batch.row, batch.labelled).to(weak)
        target = torch.where(batch.labelled, pseudo, self._trust(clock) * pseudo)
        cost = soft_label_cost(weak, target)
        consistency = confident_consistency(weak, strong, confidence=self.config.confidence)
        terms = {
            "positive": mean_or_zero(cost, batch.labelled),
            "unlabelled": mean_or_zero(cost, ~batch.labelled),
            "consistency": mean_or_zero(consistency, ~batch.labelled),
        }
        sure = (weak.detach().abs().sigmoid() >= self.config.confidence).float()
        return terms, {
            "pseudo_positive": mean_or_zero(pseudo, ~batch.labelled),
            "sure": mean_or_zero(sure, ~batch.labelled),
        }

    def _trust(self, clock: Clock) -> float:
        """Return lambda, the weight of pseudo labels: 0 in the first epoch, always below 1."""
        trust: float = (clock.epoch / clock.epochs) ** self.config.trust_power
        return trust

    def _follow(self) -> None:
        self.average.follow(self.backbone, self.classifier, momentum=self.config.average_momentum)

    def _record(self, sweep: Sweep) -> Bool[Tensor, "rows"]:
        """Update the average, record its predictions, and return which rows are P."""
        self._follow()
        view = Augment(self.config.record_view)
        positive, labelled = sweep(lambda images: p_positive(self.average(images)), view=view)
        self.trends.record(positive)
        return labelled

    def _label_by_trend(self, unlabelled: Bool[Tensor, "rows"]) -> None:
        """Give rows of U above the break of the trend scores a positive pseudo label."""
        scores = self.trends.scores(self.config.trend)
        cut = trend_break(scores[unlabelled].cpu().numpy())
        self.pseudo_labels.fill((scores > cut.value).float())
        head_start = self.trends.head_start(unlabelled)
        if head_start > LARGEST_HEAD_START:
            warnings.warn(
                "At HolisticPU's first recording, predictions already had "
                f"{head_start:.0%} of their final spread, so trends hardly separate positives from "
                "negatives. Lower train.learning_rate: training must not converge before the "
                "recordings.",
                stacklevel=2,
            )

    def _reset_weights(self) -> None:
        """Draw new initial weights; on the CPU, so that they do not depend on the device."""
        for name, module in (("backbone", self.backbone), ("classifier", self.classifier)):
            device = next(module.parameters()).device
            initialise(module.cpu(), generator(self.seed, "holisticpu", TEACH, name))
            module.to(device)
