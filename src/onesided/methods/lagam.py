"""LaGAM: latent group-aware meta disambiguation (Long et al., CVPR 2024).

It needs a small clean set with positives *and* negatives, and uses it in every step: the
label of an unlabelled row moves to the class that would have lowered the loss on the clean
samples. Besides, embeddings of one cluster and one predicted class are pulled together.
Symbols:

| paper     | here                          | paper    | here                                  |
|-----------|-------------------------------|----------|---------------------------------------|
| g         | `margin`, a scalar logit      | G        | `meta_gradient`                       |
| Y         | `labels`, `target`            | eta      | `virtual_step`                        |
| h         | `features`                    | rho      | `target_momentum`, falling            |
| q, k      | `query`, `key`                | K        | `clusters`                            |
| B(g, Y)   | `balanced_soft_cross_entropy` | M        | `_group`                              |
| L_mix     | `mixup`                       | L_inst, L_group | `instance`, `group`            |

The virtual step needs no copy of the weights: the head is linear, so the step can be written in
features and margins, which `forward` returns (`losses/meta_label.py`). Every process has the whole
clean batch, so gathered outputs hold it once per process; all use the first copy.

Differs from the authors' code: labelled positives stay positive by their label, not by an equality
of floats that fails after one update. A class that is missing in a clean batch is left out; there
it becomes NaN. Groups are split at p = 0.5 and neighbours do not count the sample itself (with
`released` they do). Mixup pairs neighbours in the shuffled batch: both are in one process's shard.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor, nn

from onesided.core.batch import Augment, CleanBatch, DataFacts, Losses, Outputs, PUBatch
from onesided.core.clock import Clock, Sweep
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.core.rng import numpy_generator
from onesided.losses.classification import mean_or_zero
from onesided.losses.contrastive import nearest_in_pool, own_key, supervised_contrastive_loss
from onesided.losses.meta_label import LinearView, balanced_soft_cross_entropy, meta_gradient
from onesided.losses.mixup import partner_offset
from onesided.methods.base import EMBEDDING, Card, GradientMethod, Needs, VariantConfig, summed
from onesided.methods.logged import logs
from onesided.methods.mixing import mix_pairs
from onesided.methods.shapes import Embeddings, RowIntegers, RowValues, Scalar, TwoColumns
from onesided.nets.heads import projector
from onesided.nets.standardise import Backbone, features_by_batch_statistics
from onesided.state.clusters import Clusters
from onesided.state.pseudo_targets import SoftLabels


class LaGAMConfig(VariantConfig):
    """Settings of LaGAM; the defaults are its authors' for CIFAR-10.

    Its authors train 400 epochs of SGD, batch 64, learning rate 1e-3 divided by ten after 250,
    300 and 350 epochs, weight decay 1e-4, with 500 clean samples.
    """

    switches: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "published": {},
        # A threshold of 0.5 on the logit, and ten neighbours of which one is the sample itself.
        "released": {"group_threshold": 0.6224593, "neighbours": 9},
    }
    variant: Literal["published", "released"] = "published"
    """A group of switches: the method as described, or two deviations of its authors' code."""
    warmup_epochs: int = Field(default=20, ge=0)
    """Epochs in which unlabelled rows have the target negative, without meta labels and groups."""
    clusters: int = Field(default=5, ge=1, le=10_000)
    """Number of clusters of the embeddings, K; its authors take 100 for CIFAR-100 and STL-10."""
    group_threshold: float = Field(default=0.5, ge=0, le=1)
    """Probability above which a row counts as positive when groups are formed."""
    neighbours: int = Field(default=10, ge=0)
    """Nearest embeddings of the batch that join a row's group late in training."""
    neighbours_from: int = Field(default=51, ge=0)
    """Epoch from which they join."""
    virtual_step: float = Field(default=1e-3, gt=0)
    """Length of the virtual step, eta; it scales the meta gradient and hardly changes its sign."""
    target_momentum: float = Field(default=0.95, ge=0, le=1)
    """Momentum of the labels per epoch, rho, at the start of a run; it falls linearly."""
    final_target_momentum: float = Field(default=0.8, ge=0, le=1)
    """The same at the end of a run."""
    mixup: float = Field(default=4.0, gt=0)
    """Both parameters of the Beta distribution of the mixing shares."""
    mixup_weight: float = Field(default=1.0, ge=0)
    """Weight of the loss on mixed samples."""
    temperature: float = Field(default=0.07, gt=0)
    """Temperature of the contrastive losses, tau."""
    projector_width: int = Field(default=512, ge=1, le=65536)
    """Hidden units of the projector."""

    needs: ClassVar[Needs] = Needs(clean=True)
    uses_negatives: ClassVar[bool] = True
    card: ClassVar[Card] = Card(
        title="LaGAM",
        summary="Labels move to the class that lowers the loss on a few samples of known class.",
        citation="Long et al., Positive-Unlabeled Learning by Latent Group-Aware Meta "
        "Disambiguation, CVPR 2024.",
        fidelity="Written from a description of the method. The meta gradient is in closed form; "
        "mistakes of the authors' code are left out. Entropy regularisation is not included.",
        licence="Authors' code: no licence stated, all rights reserved; nothing of it is here.",
        good_at="Data with some known negatives: a hundred samples of each class make it strong.",
        bad_at="No known negatives: then it cannot run. Clean samples that are unlike the pool.",
        variants={
            "published": "the method as described (default)",
            "released": "group threshold and neighbours as in its authors' code",
        },
        logs=logs(
            "classification mixup taught_positive called_positive",
            own={
                "instance": "How hard it is to tell two views of one sample from other views.",
                "group": "How hard it is to tell samples of one group from the others.",
                "passed_over": "Share of steps that were skipped: no target was positive.",
                "positive_votes": "Share of the pool that the clean samples vote positive.",
            },
            titles={
                "instance": "Contrast of views",
                "group": "Contrast of groups",
                "passed_over": "Skipped steps",
            },
        ),
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> "LaGAM":
        """Return an untrained LaGAM."""
        return LaGAM(self, facts, backbone)

    def for_budget(self, epochs: int) -> "LaGAMConfig":
        """Return settings with a warm-up of a sixth and neighbours after a third of the run."""
        return self.model_copy(
            update={
                "warmup_epochs": min(self.warmup_epochs, max(1, round(epochs / 6))),
                "neighbours_from": min(self.neighbours_from, 1 + round(epochs / 3)),
            }
        )

    def target_momentum_at(self, epoch: int, epochs: int) -> float:
        """Return rho of an epoch."""
        begin, end = self.target_momentum, self.final_target_momentum
        return begin + (end - begin) * epoch / epochs


class LaGAM(GradientMethod):
    """One network with a scalar head and a projector, a table of labels, and clusters."""

    needs = Needs(clean=True)

    def __init__(self, config: LaGAMConfig, facts: DataFacts, backbone: Backbone) -> None:
        super().__init__()
        self.config = config
        # The plain view is for the clean samples; that of training rows is not used.
        self.views = {"weak": Augment.WEAK, "strong": Augment.STRONG, "plain": Augment.PLAIN}
        self.backbone = backbone
        self.classifier = nn.Linear(backbone.width, 1)
        self.projector = projector(
            backbone.width, hidden=config.projector_width, out=EMBEDDING, normalisation="none"
        )
        self.labels = SoftLabels(facts.rows)
        self.clusters = Clusters(facts.rows)

    def begin_epoch(self, clock: Clock, sweep: Sweep) -> None:
        """Cluster all training rows, once labels may move."""
        if self._settled(clock):
            embeddings, _ = sweep(self._embedding)
            random = numpy_generator(clock.seed, "clusters", clock.stage, clock.epoch)
            self.clusters.regroup(embeddings, count=self.config.clusters, random=random)

    def forward(self, batch: PUBatch, clock: Clock) -> Outputs:
        """Return margins, embeddings (`loss` normalises) and the inputs of the meta step."""
        weak = batch.views["weak"]
        outputs = self._clean_outputs(batch.clean) if self._settled(clock) else {}
        features = self.backbone(weak)
        offset = partner_offset(len(weak), weak.device)
        mixed = mix_pairs(weak, offset, self.config.mixup, clock)
        return Outputs(
            {
                **outputs,
                "features": features.detach(),
                "margin": self._margin(features),
                "mixed_margin": self._margin(self.backbone(mixed)),
                "partner_offset": offset,
                "query": self.projector(features),
                "key": self.projector(self.backbone(batch.views["strong"])),
            }
        )

    def loss(self, outputs: Outputs, batch: PUBatch, clock: Clock) -> Losses:
        """Return B + L_mix + L_inst + L_group, after updating the labels."""
        margin = outputs["margin"]
        query, key = (F.normalize(outputs[name], dim=1) for name in ("query", "key"))
        settled = self._settled(clock)
        target = self.labels.current(batch.row, batch.labelled)
        # A batch without any positive target says nothing about the classes: skip it.
        usable = bool(target[:, POSITIVE].sum() > 0)
        watched = {"passed_over": torch.tensor(float(not usable))}
        if settled and usable:
            vote = self._meta_labels(outputs, batch, target)
            momentum = self.config.target_momentum_at(clock.epoch, clock.epochs)
            self.labels.vote(batch.row, batch.labelled, vote, momentum=momentum)
            target = self.labels.current(batch.row, batch.labelled)
            watched["positive_votes"] = mean_or_zero((vote == POSITIVE).float(), batch.unlabelled)

        contrast = partial(
            supervised_contrastive_loss, query, key, temperature=self.config.temperature
        )
        terms = {
            "classification": balanced_soft_cross_entropy(margin, target),
            "mixup": self.config.mixup_weight * self._mixup(outputs, target, clock),
            "instance": contrast(own_key(query)),
        }
        if settled:
            group = self._group(margin.detach(), query, key, batch.row, clock)
            terms["group"] = contrast(group)
        terms = {name: term * float(usable) for name, term in terms.items()}
        watched["taught_positive"] = mean_or_zero(target[:, POSITIVE], batch.unlabelled)
        watched["called_positive"] = mean_or_zero((margin.detach() > 0).float(), batch.unlabelled)
        return summed(terms, watched)

    def classify(self, images: Tensor) -> Float[Tensor, "n 2"]:
        """Return two logits: the scalar one for positive, zero for negative."""
        margin = self._margin(self.backbone(images))
        logits = margin.new_zeros(margin.shape[0], 2)  # len() would fix the batch of an export
        logits[:, POSITIVE] = margin
        return logits

    def _settled(self, clock: Clock) -> bool:
        return clock.epoch >= self.config.warmup_epochs

    def _margin(self, features: Float[Tensor, "n width"]) -> Float[Tensor, "n"]:
        margin: Tensor = self.classifier(features)[:, 0]
        return margin

    def _embedding(self, images: Tensor) -> Float[Tensor, "n dim"]:
        return F.normalize(self.projector(self.backbone(images)), dim=1)

    def _clean_outputs(self, clean: CleanBatch | None) -> dict[str, Tensor]:
        """Return features and margins of the clean samples, without gradients."""
        assert clean is not None, "declared in `needs`, so the loader provides it"
        features = features_by_batch_statistics(self.backbone, clean.views["plain"])
        return {"clean_features": features, "clean_margin": self._margin(features).detach()}

    def _meta_labels(self, outputs: Outputs, batch: PUBatch, target: TwoColumns) -> RowIntegers:
        """Return for each row the class that lowers the loss on the clean samples most."""
        assert batch.clean is not None, "declared in `needs`, so the loader provides it"
        truth = batch.clean.truth
        count = len(truth)  # the rest are the other processes' copies
        gradient = meta_gradient(
            LinearView(outputs["features"], outputs["margin"].detach(), target),
            LinearView(
                outputs["clean_features"][:count],
                outputs["clean_margin"][:count],
                F.one_hot(truth, 2).to(target),
            ),
            step=self.config.virtual_step,
        )
        vote = gradient.argmin(dim=1).masked_fill(batch.labelled, POSITIVE)
        # Labels start as negative, so a known negative that always votes negative never moves.
        return vote if batch.negative is None else vote.masked_fill(batch.negative, NEGATIVE)

    def _mixup(self, outputs: Outputs, target: TwoColumns, clock: Clock) -> Scalar:
        """Return B on mixed samples, with their labels mixed in the same shares."""
        mixed = mix_pairs(target, outputs["partner_offset"], self.config.mixup, clock)
        return balanced_soft_cross_entropy(outputs["mixed_margin"], mixed)

    def _group(
        self, margin: RowValues, query: Embeddings, key: Embeddings, row: RowIntegers, clock: Clock
    ) -> Bool[Tensor, "batch pool"]:
        """Return M: same cluster and same prediction; later also the nearest neighbours."""
        positive = torch.sigmoid(margin) > self.config.group_threshold
        alike = self.clusters.together(row) & (positive[:, None] == positive[None, :])
        group = torch.cat([alike, alike], dim=1)
        if clock.epoch >= self.config.neighbours_from and self.config.neighbours:
            group = group | nearest_in_pool(query, key, count=self.config.neighbours)
        return group
