"""PiCO: contrastive label disambiguation (Wang et al., ICLR 2022), for PU data.

Partial labels: every sample has a set of candidate classes. A labelled positive has one,
an unlabelled sample both. The predicted class gives the pairs of a contrastive loss.
Embeddings of a class gather around its prototype. The nearest prototype votes on the
sample's next target. Symbols:

| paper    | here                    | paper       | here                              |
|----------|-------------------------|-------------|-----------------------------------|
| f(x)     | softmax(`logits`)       | s           | `targets`                         |
| q, k     | `query`, `key`          | r           | `vote`                            |
| c_i      | `believed`              | phi         | `target_momentum`, falling        |
| mu_c     | `prototypes.vectors`    | m, gamma    | `prototype_momentum`              |
| A        | query, key, `queue`     | tau         | `temperature`                     |
| L_cls    | `classification`        | L_con       | `contrast`, weight lambda         |

Differs from the original, which is not for PU data, in one point, as in the NcPU paper (its
appendix on PiCO and WSC): unlabelled targets start as negative instead of undecided.
Ties, as between prototypes that are still zero, count as negative. Its successor PiCO+ is
in `pico_plus.py`.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from onesided.core.batch import Augment, DataFacts, Losses, Outputs, PUBatch
from onesided.core.clock import Clock
from onesided.core.labels import POSITIVE
from onesided.core.rng import generator
from onesided.losses.classification import (
    mean_or_zero,
    positive_unlabelled_cross_entropy,
    soft_cross_entropy,
)
from onesided.losses.contrastive import instance_contrastive_loss, supervised_contrastive_loss
from onesided.methods.base import EMBEDDING, Card, GradientMethod, VariantConfig, summed
from onesided.methods.logged import logs
from onesided.methods.shapes import Embeddings, RowIntegers, RowMask, Scalar, TwoColumns
from onesided.nets.heads import classifier, projector
from onesided.nets.momentum import TargetNetwork
from onesided.nets.standardise import Backbone
from onesided.state.prototypes import Prototypes
from onesided.state.pseudo_targets import SoftLabels
from onesided.state.queue import KeyQueue

FIRST_MOMENTUM = 0.99
"""phi of the first epoch; its schedule begins with the second."""
LONGEST_HALF_LIFE = 0.1
"""Share of a run after which a target has forgotten half of its start, at the latest."""
START = {"negative": 0.0, "uniform": 0.5}


class PiCOConfig(VariantConfig):
    """Settings of PiCO; the defaults are its authors', with unlabelled starting as negative.

    Its authors train 800 epochs of SGD, batch 256, learning rate 0.01, weight decay 1e-3.
    """

    switches: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "published": {},
        "ncpu-paper": {
            "classification": "groups",
            "query_view": "weak",
            "target_momentum": 0.99,
            "final_target_momentum": 0.95,
        },
        "plus": {"refinement": "reliable", "warmup_epochs": 5},
    }
    variant: Literal["published", "ncpu-paper", "plus"] = "published"
    """A group of switches: as its authors published it, as the NcPU authors ran it, or its
    successor PiCO+. Every switch can still be set alone."""
    start: Literal["negative", "uniform"] = "negative"
    """Initial target of unlabelled rows: negative, or both classes alike (original)."""
    classification: Literal["mean", "groups"] = "mean"
    """Cross entropy as one mean over the batch, or as the mean over P plus the mean over U. In
    the latter a labelled positive weighs as much as forty unlabelled rows on CIFAR."""
    query_view: Literal["weak", "strong"] = "strong"
    """Augmentation of the view of classifier and query; the key's is always strong."""
    contrast_weight: float = Field(default=0.5, ge=0)
    """Weight of the contrastive loss, lambda."""
    temperature: float = Field(default=0.07, gt=0)
    """Temperature of the contrastive loss, tau."""
    queue_length: int = Field(default=8192, ge=1, le=2**20)
    """Keys kept from past batches."""
    warmup_epochs: int = Field(default=1, ge=0)
    """Epochs in which targets do not move and a sample is pulled to its own key only."""
    prototype_momentum: float = Field(default=0.99, ge=0, lt=1)
    """Momentum of the prototypes per sample, m."""
    encoder_momentum: float = Field(default=0.999, ge=0, lt=1)
    """Momentum of the key encoder per step."""
    target_momentum: float = Field(default=0.95, ge=0, le=1)
    """Momentum of the targets per epoch, phi, at the start of its linear schedule."""
    final_target_momentum: float = Field(default=0.8, ge=0, le=1)
    """The same at the end of the schedule."""
    projector_width: int = Field(default=512, ge=1, le=65536)
    """Hidden units of the projector."""
    refinement: Literal["none", "reliable"] = "none"
    """Whether all rows count alike, or those near their prototype more (PiCO+). All settings
    below are for the latter."""
    reliable_share: float = Field(default=0.6, ge=0, le=1)
    """Share of the rows that are called reliable, beside the labelled ones."""
    reliable_weight: float = Field(default=2.0, ge=0)
    """Weight of the cross entropy on reliable rows."""
    unreliable_weight: float = Field(default=0.1, ge=0)
    """Weight of the terms with unreliable rows: their cross entropy and the contrast of all."""
    mixup: float = Field(default=4.0, gt=0)
    """Both parameters of the Beta distribution of the mixing shares."""
    neighbours: int = Field(default=16, ge=0)
    """Nearest keys and queries that an unreliable row is pulled to; 5 on CIFAR-100."""
    neighbours_from: int = Field(default=100, ge=0)
    """Epoch from which it is pulled to them, and from which anchors are weighted."""
    reliable_anchor: float = Field(default=0.5, ge=0)
    """Weight of a reliable row in the contrast from then on."""
    unreliable_anchor: float = Field(default=0.1, ge=0)
    """The same of an unreliable row."""

    card: ClassVar[Card] = Card(
        title="PiCO",
        summary="Prototypes of contrastive embeddings vote on the training target of each sample.",
        citation="Wang et al., PiCO: Contrastive Label Disambiguation for Partial Label Learning, "
        "ICLR 2022.",
        fidelity="Written from a description of the method; unlabelled rows start as negative, as "
        "in the NcPU paper. PiCO+ (Wang et al., TPAMI 2024) is the variant `plus`.",
        licence="Authors' code: Apache-2.0; nothing of it is here.",
        good_at="Images whose classes form clusters; needs no prior and no negatives.",
        bad_at="Poor features: votes drift to positive, and nothing pulls them back.",
        variants={
            "published": "its authors' settings (default)",
            "ncpu-paper": "means over P and over U, slower targets, weak query, as in NcPU's table",
            "plus": "PiCO+: rows near their prototype count more, neighbours for the rest, mixup",
        },
        logs=logs(
            "classification contrast mixup prototype_cosine positive_votes taught_positive "
            "called_positive",
            own={
                "reliable": "The classification loss on samples near their class average.",
                "unreliable": "The same on all other samples, whose target is the model's guess.",
                "contrast_all": "The contrastive loss with pairs of all samples, reliable or not.",
                "reliable_rows": "Share of the pool near the average of its class.",
            },
            titles={
                "reliable": "Loss on reliable samples",
                "unreliable": "Loss on unreliable samples",
                "contrast_all": "Contrastive loss, all samples",
                "reliable_rows": "Reliable samples",
            },
        ),
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> "PiCO":
        """Return an untrained PiCO, or PiCO+."""
        if self.refinement == "reliable":
            from onesided.methods.pico_plus import PiCOPlus  # its base class is below

            return PiCOPlus(self, facts, backbone)
        return PiCO(self, facts, backbone)

    def for_budget(self, epochs: int) -> "PiCOConfig":
        """Return settings whose targets can change class within a tenth of a short run.

        A row votes once per epoch: at 0.95 a change takes 14 epochs, at 0.99 it takes 69. The
        neighbours of PiCO+ begin after an eighth of the run, as in its authors' 800 epochs.
        """
        largest = 0.5 ** (1 / max(1.0, LONGEST_HALF_LIFE * epochs))
        return self.model_copy(
            update={
                "target_momentum": min(self.target_momentum, largest),
                "final_target_momentum": min(self.final_target_momentum, largest),
                "warmup_epochs": min(self.warmup_epochs, max(1, round(epochs / 10))),
                "neighbours_from": min(self.neighbours_from, 1 + round(epochs / 8)),
            }
        )

    def target_momentum_at(self, epoch: int, epochs: int) -> float:
        """Return phi of an epoch: the authors update it at the end of the epoch before."""
        if epoch == 0:
            return FIRST_MOMENTUM
        begin, end = self.target_momentum, self.final_target_momentum
        return begin + (end - begin) * (epoch - 1) / epochs


class PiCO(GradientMethod):
    """Two encoders, a queue of keys, two prototypes, one table of soft labels."""

    def __init__(self, config: PiCOConfig, facts: DataFacts, backbone: Backbone) -> None:
        super().__init__()
        self.config = config
        self.views = {"query": Augment(config.query_view), "key": Augment.STRONG}
        self.backbone = backbone
        self.classifier = classifier(backbone.width)
        self.projector = projector(
            backbone.width, hidden=config.projector_width, out=EMBEDDING, normalisation="none"
        )
        self.key_encoder = TargetNetwork(backbone, self.projector)
        self.targets = SoftLabels(facts.rows, positive=START[config.start])
        self.prototypes = Prototypes(2, EMBEDDING)
        self.queue = KeyQueue(config.queue_length, EMBEDDING, generator(facts.seed, "pico-queue"))

    def forward(self, batch: PUBatch, clock: Clock) -> Outputs:
        """Return logits and query of one view, and the key of the other; `loss` normalises."""
        features = self.backbone(batch.views["query"])
        query = self.projector(features)
        self.key_encoder.follow(
            self.backbone, self.projector, momentum=self.config.encoder_momentum
        )
        key = self.key_encoder(batch.views["key"])
        return Outputs({"logits": self.classifier(features), "query": query, "key": key})

    def loss(self, outputs: Outputs, batch: PUBatch, clock: Clock) -> Losses:
        """Return L_cls + lambda L_con, after updating prototypes and targets."""
        logits = outputs["logits"]
        query, key = (F.normalize(outputs[name], dim=1) for name in ("query", "key"))
        settled = self._settled(clock)
        believed = logits.detach().argmax(dim=1).masked_fill(batch.labelled, POSITIVE)

        vote = self.prototypes.nearest(query.detach()).masked_fill(batch.labelled, POSITIVE)
        momentum = self.config.prototype_momentum
        self.prototypes.follow(query.detach(), believed, momentum=momentum, normalise="batch")
        if settled:
            momentum = self.config.target_momentum_at(clock.epoch, clock.epochs)
            self.targets.vote(batch.row, batch.labelled, vote, momentum=momentum)
        target = self.targets.current(batch.row, batch.labelled)

        contrast = self._contrast(query, key, believed, settled)
        self.queue.push(key, believed)
        terms = {
            "classification": self._classification(logits, target, batch.labelled),
            "contrast": self.config.contrast_weight * contrast,
        }
        return summed(terms, self._watched(vote, target, believed, ~batch.labelled))

    def _settled(self, clock: Clock) -> bool:
        return clock.epoch >= self.config.warmup_epochs

    def _watched(
        self, vote: RowIntegers, target: TwoColumns, believed: RowIntegers, unlabelled: RowMask
    ) -> dict[str, Tensor]:
        return {
            "prototype_cosine": self.prototypes.similarity(),
            "positive_votes": mean_or_zero((vote == POSITIVE).float(), unlabelled),
            "taught_positive": mean_or_zero(target[:, POSITIVE], unlabelled),
            "called_positive": mean_or_zero((believed == POSITIVE).float(), unlabelled),
        }

    def _contrast(
        self, query: Embeddings, key: Embeddings, believed: RowIntegers, settled: bool
    ) -> Scalar:
        """Return L_con with pairs of one predicted class; in the warm-up, with the own key only."""
        keys, labels = self.queue.read()
        temperature = self.config.temperature
        if not settled:
            return instance_contrastive_loss(query, key, keys, temperature=temperature)
        alike = believed[:, None] == torch.cat([believed, believed, labels])[None, :]
        others = torch.cat([key, keys])
        return supervised_contrastive_loss(query, others, alike, temperature=temperature)

    def _classification(self, logits: TwoColumns, target: TwoColumns, labelled: RowMask) -> Scalar:
        """Return L_cls with the mean that the settings choose."""
        if self.config.classification == "groups":
            return positive_unlabelled_cross_entropy(logits, target, labelled)
        return soft_cross_entropy(logits, target).mean()
