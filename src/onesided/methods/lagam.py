"""LaGAM: latent group-aware meta disambiguation (Long et al., CVPR 2024).

Needs a small clean set with positives *and* negatives, and uses it in every step: the
label of an unlabelled row moves to the class that would have helped the classifier on the
clean samples. Beside it, embeddings of one cluster and one predicted class are pulled
together. Symbols:

| paper     | here                          | paper    | here                                  |
|-----------|-------------------------------|----------|---------------------------------------|
| g         | `margin`, a scalar logit      | G        | `meta_gradient`                       |
| Y         | `labels`, `target`            | eta      | `virtual_step`                        |
| h         | `features`                    | rho      | `target_momentum`, falling            |
| q, k      | `query`, `key`                | K        | `clusters`                            |
| B(g, Y)   | `balanced_soft_cross_entropy` | M        | `_group`                              |
| L_mix     | `mixup`                       | L_inst, L_group | `instance`, `group`            |

The virtual step needs no weight: a linear head turns it into features and margins, which
`forward` returns (`losses/meta_label.py`). Every process sees the same clean batch whole, so
gathered outputs hold it once per process; the first copy is everybody's.

Differs from the authors' code: labelled positives are held by their label, not by an equality of
floats that fails after one update; a class that a clean batch lacks is left out instead of
becoming NaN; groups cut at p = 0.5 and neighbours do not count the sample itself (`released`
does). Mixup pairs neighbours of the shuffled batch: both are in one process's shard.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from pydantic import Field
from torch import Tensor, nn

from onesided.core.batch import Augment, CleanBatch, DataFacts, Losses, Outputs, PUBatch
from onesided.core.clock import Clock, Sweep
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.core.rng import numpy_generator
from onesided.losses.classification import mean_or_zero
from onesided.losses.contrastive import nearest_in_pool, own_key, supervised_contrastive_loss
from onesided.losses.meta_label import LinearView, balanced_soft_cross_entropy, meta_gradient
from onesided.losses.mixup import draw_share, mix, partner, partner_offset
from onesided.methods.base import Card, GradientMethod, Needs
from onesided.methods.logged import CALLED_POSITIVE, CLASSIFICATION, MIXUP, TAUGHT_POSITIVE, Logged
from onesided.methods.variant import VariantConfig
from onesided.nets.heads import projector
from onesided.nets.standardise import Backbone, features_by_batch_statistics
from onesided.state.clusters import Clusters
from onesided.state.pseudo_targets import SoftLabels

EMBEDDING = 128


class LaGAMConfig(VariantConfig):
    """Settings of LaGAM; the defaults are its authors' for CIFAR-10.

    Its authors train 400 epochs of SGD, batch 64, learning rate 1e-3 divided by ten after 250,
    300 and 350 epochs, weight decay 1e-4, with 500 clean samples.
    """

    switches: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "published": {},
        # A raw logit cut at 0.5, and ten neighbours of which one is the sample itself.
        "released": {"group_threshold": 0.6224593, "neighbours": 9},
    }
    variant: Literal["published", "released"] = "published"
    """A bundle of switches: the method as described, or two habits of its authors' code."""
    warmup_epochs: int = Field(default=20, ge=0)
    """Epochs in which unlabelled rows are taught negative, without meta labels and groups."""
    clusters: int = Field(default=5, ge=1)
    """Groups that embeddings are divided into, K; its authors take 100 for CIFAR-100 and STL-10."""
    group_threshold: float = Field(default=0.5, ge=0, le=1)
    """Probability of positive from which a row is predicted positive when groups are formed."""
    neighbours: int = Field(default=10, ge=0)
    """Nearest embeddings of the batch that join a row's group late in training."""
    neighbours_from: int = Field(default=51, ge=0)
    """Epoch from which they join."""
    virtual_step: float = Field(default=1e-3, gt=0)
    """Length of the virtual step, eta; it scales the meta gradient and hardly turns its sign."""
    target_momentum: float = Field(default=0.95, ge=0, le=1)
    """Momentum of the labels per epoch, rho, as a run begins; it falls linearly."""
    final_target_momentum: float = Field(default=0.8, ge=0, le=1)
    """The same as a run ends."""
    mixup: float = Field(default=4.0, gt=0)
    """Both parameters of the Beta distribution that mixing weights are drawn from."""
    mixup_weight: float = Field(default=1.0, ge=0)
    """Weight of the loss on mixed samples."""
    temperature: float = Field(default=0.07, gt=0)
    """Temperature of the contrastive losses, tau."""
    projector_width: int = Field(default=512, ge=1)
    """Hidden units of the projector."""

    needs: ClassVar[Needs] = Needs(clean=True)
    uses_negatives: ClassVar[bool] = True
    card: ClassVar[Card] = Card(
        title="LaGAM",
        summary="Labels move to what would have helped on a few samples of known class.",
        citation="Long et al., Positive-Unlabeled Learning by Latent Group-Aware Meta "
        "Disambiguation, CVPR 2024.",
        fidelity="Written from a description of the method; the meta gradient in closed form, "
        "defects of the authors' code left out. Entropy regularisation is not included.",
        licence="Authors' code: no licence stated, all rights reserved; nothing of it is here.",
        good_at="Whenever some negatives are known: a hundred of each class make it strong.",
        bad_at="No known negatives: then it cannot run. Clean samples unlike the unlabelled ones.",
        variants={
            "published": "the method as described (default)",
            "released": "group threshold and neighbours as in its authors' code",
        },
        logs={
            "classification": CLASSIFICATION,
            "mixup": MIXUP,
            "instance": Logged(
                "Contrast of views",
                "How hard it is to tell two views of one sample from those of others.",
            ),
            "group": Logged(
                "Contrast of groups",
                "How hard it is to tell samples of one group from the others.",
            ),
            "passed_over": Logged(
                "Steps passed over",
                "Share of steps without any positive to learn from.",
            ),
            "positive_votes": Logged(
                "Positive votes",
                "Share of the pool that the clean samples would have taught as positive.",
            ),
            "taught_positive": TAUGHT_POSITIVE,
            "called_positive": CALLED_POSITIVE,
        },
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> "LaGAM":
        """Return an untrained LaGAM."""
        return LaGAM(self, facts, backbone)

    def for_budget(self, epochs: int) -> "LaGAMConfig":
        """Return settings whose warm-up takes a sixth and whose neighbours join after a third."""
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

    # The plain view is the clean samples'; of training rows it is not used.
    views: Mapping[str, Augment] = {
        "weak": Augment.WEAK,
        "strong": Augment.STRONG,
        "plain": Augment.PLAIN,
    }
    needs = Needs(clean=True)

    def __init__(self, config: LaGAMConfig, facts: DataFacts, backbone: Backbone) -> None:
        super().__init__()
        self.config = config
        self.backbone = backbone
        self.classifier = nn.Linear(backbone.width, 1)
        self.projector = projector(
            backbone.width, hidden=config.projector_width, out=EMBEDDING, normalisation="none"
        )
        self.labels = SoftLabels(facts.rows)
        self.clusters = Clusters(facts.rows)

    def begin_epoch(self, clock: Clock, sweep: Sweep) -> None:
        """Find the clusters of all training rows, once labels may move."""
        if self._settled(clock):
            embeddings, _ = sweep(self._embedding)
            random = numpy_generator(clock.seed, "clusters", clock.stage, clock.epoch)
            self.clusters.regroup(embeddings, count=self.config.clusters, random=random)

    def forward(self, batch: PUBatch, clock: Clock) -> Outputs:
        """Return margins, embeddings (`loss` normalises) and what the meta step needs."""
        weak = batch.views["weak"]
        outputs = self._clean_outputs(batch.clean) if self._settled(clock) else {}
        features = self.backbone(weak)
        offset = partner_offset(len(weak), weak.device)
        mixed = mix(weak, partner(weak, offset), self._mixing_share(clock))
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
        """Return B + L_mix + L_inst + L_group, after the labels moved."""
        margin = outputs["margin"]
        query, key = (F.normalize(outputs[name], dim=1) for name in ("query", "key"))
        settled = self._settled(clock)
        target = self.labels.current(batch.row, batch.labelled)
        # A batch in which nothing is positive says nothing about the classes: it is passed over.
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
        return Losses(torch.stack(list(terms.values())).sum(), terms, watched)

    def classify(self, images: Tensor) -> Float[Tensor, "n 2"]:
        """Return the scalar logit as that of positive, against a negative logit of zero."""
        margin = self._margin(self.backbone(images))
        logits = torch.zeros(len(margin), 2, dtype=margin.dtype, device=margin.device)
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
        """Return features and margins of the clean samples: looked at, not trained on."""
        assert clean is not None, "declared in `needs`, so the loader provides it"
        features = features_by_batch_statistics(self.backbone, clean.views["plain"])
        return {"clean_features": features, "clean_margin": self._margin(features).detach()}

    def _meta_labels(
        self, outputs: Outputs, batch: PUBatch, target: Float[Tensor, "batch 2"]
    ) -> Int64[Tensor, "batch"]:
        """Return for each row the class that would have helped most on the clean samples."""
        assert batch.clean is not None, "declared in `needs`, so the loader provides it"
        truth = batch.clean.truth
        count = len(truth)  # the rest are copies of other processes
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
        # Rows start as negative, so a sure negative that always votes so never moves.
        return vote if batch.negative is None else vote.masked_fill(batch.negative, NEGATIVE)

    def _mixing_share(self, clock: Clock) -> float:
        """Return the share of the larger part in every mixed sample of this step."""
        place = (clock.stage, clock.epoch, clock.step)
        share = draw_share(self.config.mixup, numpy_generator(clock.seed, "mixup", *place))
        return max(share, 1 - share)

    def _mixup(
        self, outputs: Outputs, target: Float[Tensor, "batch 2"], clock: Clock
    ) -> Float[Tensor, ""]:
        """Return B on mixed samples, whose labels are mixed as they are."""
        other = partner(target, outputs["partner_offset"])
        mixed = mix(target, other, self._mixing_share(clock))
        return balanced_soft_cross_entropy(outputs["mixed_margin"], mixed)

    def _group(
        self,
        margin: Float[Tensor, "batch"],
        query: Float[Tensor, "batch dim"],
        key: Float[Tensor, "batch dim"],
        row: Int64[Tensor, "batch"],
        clock: Clock,
    ) -> Bool[Tensor, "batch pool"]:
        """Return M: same cluster and same prediction, later also the nearest neighbours."""
        positive = torch.sigmoid(margin) > self.config.group_threshold
        alike = self.clusters.together(row) & (positive[:, None] == positive[None, :])
        group = torch.cat([alike, alike], dim=1)
        if clock.epoch >= self.config.neighbours_from and self.config.neighbours:
            group = group | nearest_in_pool(query, key, count=self.config.neighbours)
        return group
