"""HolisticPU: beyond myopia, learning from predictive trends (Wang et al., NeurIPS 2023).

Two stages. `observe` teaches one network to tell P from U, with as many of P as of U in
every batch, and notes after every epoch what it thinks of each row. Negatives among U fall
steadily, positives waver: a trend score per row, cut in two, gives pseudo labels. `teach`
starts afresh and learns from them, more and more. Symbols:

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
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor

from onesided.core.batch import Augment, DataFacts, Losses, Outputs, PUBatch, Stratified
from onesided.core.clock import Clock, Pace, Stage, Sweep
from onesided.core.errors import ConfigError
from onesided.core.rng import generator
from onesided.losses.classification import margin, mean_or_zero, p_positive
from onesided.losses.pseudo_labels import confident_consistency, soft_label_cost
from onesided.methods.base import Card, GradientMethod
from onesided.methods.logged import CALLED_POSITIVE, MEAN_POSITIVE, Logged
from onesided.methods.variant import VariantConfig
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
"""Share of the final spread of predictions at the first recording from which trends mislead."""


class HolisticPUConfig(VariantConfig):
    """Settings of HolisticPU; the defaults are its authors'."""

    switches: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "published": {},
        "ncpu-paper": {"smoothing": 0.01},
    }
    variant: Literal["published", "ncpu-paper"] = "published"
    """A bundle of settings: as published, or as the NcPU paper ran it. Each can be set alone."""
    smoothing: float = Field(default=0.1, ge=0, le=1)
    """Label smoothing of P in the first stage, rho; 0.01 as the NcPU paper ran it."""
    trend_epochs: int = Field(default=15, ge=2)
    """Epochs of the first stage, and so recordings per row; the other epochs are the second's."""
    steps_per_epoch: int = Field(default=0, ge=0)
    """Steps of an epoch; 0 means one pass over U. The published runs have 512 on all data."""
    trend: Trend = "consecutive"
    """Trend score: consecutive recordings as in the authors' code, the same with a symmetric
    influence, or all pairs of recordings."""
    record_view: Literal["plain", "weak"] = "plain"
    """What is recorded; the authors' code takes a random weak view, whose noise blurs trends."""
    average_momentum: float = Field(default=0.999, ge=0, lt=1)
    """Momentum per step of the averaged network that is recorded."""
    confidence: float = Field(default=0.9, ge=0.5, le=1)
    """How sure a weak view must be to teach the strong one."""
    trust_power: float = Field(default=0.8, gt=0)
    """Pseudo labels count with weight (epoch / epochs) to this power in the second stage."""
    statistics: Literal["every-epoch", "first-epoch"] = "every-epoch"
    """When BatchNorm learns its statistics in the second stage; the authors' loop forgets to
    after the first epoch."""

    card: ClassVar[Card] = Card(
        title="HolisticPU",
        summary="Watches how predictions move during training; what falls steadily is negative.",
        citation="Wang, Wan, Geng, Wu, Sun, Lin, Beyond Myopia: Learning from Positive and "
        "Unlabeled Data through Holistic Predictive Trends, NeurIPS 2023.",
        fidelity="Losses, score and break as in the authors' code, recorded on unchanged samples; "
        "weak and strong views are this library's, not RandAugment.",
        licence="Authors' code: no licence stated, all rights reserved; nothing of it is here.",
        good_at="No prior, no negatives, a network that learns slowly enough to be watched.",
        bad_at="First stages that converge before the first recording: then all trends look alike. "
        "Results vary much between seeds.",
        variants={
            "published": "as in the authors' code",
            "ncpu-paper": "less smoothing, as the NcPU paper ran it",
        },
        logs={
            "positive": Logged(
                "Loss on positives",
                "How far the labelled positives are from being called positive.",
            ),
            "unlabelled": Logged(
                "Loss on the pool",
                "How far the pool is from what it is taught: negative first, pseudo labels later.",
            ),
            "consistency": Logged(
                "Consistency loss",
                "How much the prediction changes when a sample is strongly augmented.",
            ),
            "mean_positive": MEAN_POSITIVE,
            "called_positive": CALLED_POSITIVE,
            "pseudo_positive": Logged(
                "Pseudo positives",
                "Share of the pool whose pseudo label is positive.",
            ),
            "sure": Logged(
                "Sure predictions",
                "Share of the pool predicted with enough confidence to be learned from.",
            ),
        },
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> "HolisticPU":
        """Return an untrained HolisticPU."""
        return HolisticPU(self, facts, backbone)

    def budget_learning_rate(self) -> float:
        """Return a small rate: at ten times it a network has learned before it is watched."""
        return 0.002

    def batching(self, batch_size: int) -> Stratified:
        """Return batches of which one half is P, as its authors draw them."""
        return Stratified(max(1, batch_size // 2))

    def for_budget(self, epochs: int) -> "HolisticPUConfig":
        """Return settings with the published proportion of the stages, in passes over U.

        Such runs have hundreds or a few thousand steps where the published one has twenty
        thousand, so the averaged network must forget its start ten times as fast.
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
        """Observe for as long as trends need, teach for the rest."""
        observe = min(self.config.trend_epochs, epochs - 1)
        if observe < 2:
            raise ConfigError(
                "HolisticPU needs at least 3 epochs: two to see a trend and one to learn from it; "
                f"got {epochs}. Raise train.epochs."
            )
        teach = epochs - observe
        # The published schedule is cut off in the first stage, not squeezed into it.
        pace = Pace(span=max(observe, teach))
        steps = self.config.steps_per_epoch
        return [
            Stage(OBSERVE, observe, pace=pace, steps=steps),
            Stage(TEACH, teach, steps=steps),
        ]

    def begin_stage(self, stage: Stage, sweep: Sweep) -> None:
        """Before teaching: turn trends into pseudo labels, and forget the network."""
        if stage.name != TEACH:
            return
        labelled = self._record(sweep)
        self._label_by_trend(~labelled)
        self._start_afresh()

    def begin_epoch(self, clock: Clock, sweep: Sweep) -> None:
        """Note what the network thinks of every row after each epoch of observation."""
        if clock.stage == OBSERVE and clock.epoch > 0:
            self._record(sweep)

    def forward(self, batch: PUBatch, clock: Clock) -> Outputs:
        """Return logits of the weak and the strong views, seen by BatchNorm as one batch."""
        if clock.stage == OBSERVE and clock.step > 0:
            self._follow()
        frozen = self.config.statistics == "first-epoch" and clock.stage == TEACH and clock.epoch
        self.backbone.train(self.training and not frozen)
        views = torch.cat([batch.views["weak"], batch.views["strong"]])
        weak, strong = self.classify(views).chunk(2)
        return Outputs({"weak": weak, "strong": strong})

    def loss(self, outputs: Outputs, batch: PUBatch, clock: Clock) -> Losses:
        """Return the objective of the stage."""
        weak, strong = margin(outputs["weak"]), margin(outputs["strong"])
        step = self._teach if clock.stage == TEACH else self._observe
        terms, watched = step(weak, strong, batch, clock)
        probability = weak.detach().sigmoid()
        return Losses(
            total=torch.stack(list(terms.values())).sum(),
            terms=terms,
            watched={
                "mean_positive": mean_or_zero(probability, ~batch.labelled),
                "called_positive": mean_or_zero((probability > 0.5).float(), ~batch.labelled),
                **watched,
            },
        )

    def _observe(
        self,
        weak: Float[Tensor, "batch"],
        strong: Float[Tensor, "batch"],
        batch: PUBatch,
        clock: Clock,
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Tell P from U: both views of P as smoothed positives, the weak one of U as negative."""
        positive = torch.full_like(weak, 1 - self.config.smoothing / 2)
        on_positive = (soft_label_cost(weak, positive) + soft_label_cost(strong, positive)) / 2
        on_unlabelled = soft_label_cost(weak, torch.zeros_like(weak))
        return {
            "positive": mean_or_zero(on_positive, batch.labelled),
            "unlabelled": mean_or_zero(on_unlabelled, ~batch.labelled),
        }, {}

    def _teach(
        self,
        weak: Float[Tensor, "batch"],
        strong: Float[Tensor, "batch"],
        batch: PUBatch,
        clock: Clock,
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Learn pseudo labels as far as they are trusted, and the sure weak views by heart."""
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
        """Return the weight of pseudo labels: none in the first epoch, never quite one."""
        trust: float = (clock.epoch / clock.epochs) ** self.config.trust_power
        return trust

    def _follow(self) -> None:
        self.average.follow(self.backbone, self.classifier, momentum=self.config.average_momentum)

    def _record(self, sweep: Sweep) -> Bool[Tensor, "rows"]:
        """Let the average follow the epoch's last step, and note what it says; return P."""
        self._follow()
        view = Augment(self.config.record_view)
        positive, labelled = sweep(lambda images: p_positive(self.average(images)), view=view)
        self.trends.record(positive)
        return labelled

    def _label_by_trend(self, unlabelled: Bool[Tensor, "rows"]) -> None:
        """Call positive what did not fall like the rest of U."""
        scores = self.trends.scores(self.config.trend)
        cut = trend_break(scores[unlabelled].cpu().numpy())
        self.pseudo_labels.fill((scores > cut.value).float())
        head_start = self.trends.head_start(unlabelled)
        if head_start > LARGEST_HEAD_START:
            warnings.warn(
                "When HolisticPU first looked, predictions already had "
                f"{head_start:.0%} of their final spread, so trends hardly tell positives from "
                "negatives. Lower train.learning_rate: the network must still be learning while "
                "it is watched.",
                stacklevel=2,
            )

    def _start_afresh(self) -> None:
        """Draw all weights anew; on the CPU, so that they do not depend on the device."""
        for name, module in (("backbone", self.backbone), ("classifier", self.classifier)):
            device = next(module.parameters()).device
            initialise(module.cpu(), generator(self.seed, "holisticpu", TEACH, name))
            module.to(device)
