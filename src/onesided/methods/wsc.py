"""WSC: weakly supervised contrastive learning (Zhou et al., ICML 2025), for PU data.

Learning with noisy labels: labelled rows show "positive", all others "negative", and a
transition matrix explains how a positive comes to show "negative". Beside it, two strong
views of every sample are pulled together, and so are samples that are probably of one
class. Symbols:

| paper        | here                        | paper     | here                                |
|--------------|-----------------------------|-----------|-------------------------------------|
| p = f(x)     | softmax(`logits`)           | T         | `transition.matrix`                 |
| z1, z2       | `first`, `second`           | L_sup     | `supervised`                        |
| Q            | `same_class`                | L_cons    | `consistency`                       |
| alpha, beta  | `view_`, `class_weight`     | L_wsc     | `contrast`, weight lambda_w, ramped |
| lambda_c     | `repulsion_weight`          | L_bal     | `balance`, weight lambda_b          |
| e / E        | `_ramp`                     | log det T | `volume`, weight lambda_v           |

Differs from the original, which collapses to all-negative on PU data: the supervised term
averages P and U apart, as the NcPU authors ran it. Why: `losses/noisy_labels.py`.
The projector learns; in its authors' code no optimizer was given it.
"""

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from pydantic import Field, model_validator
from torch import Tensor, nn

from onesided.core.batch import Augment, DataFacts, Losses, Outputs, PUBatch
from onesided.core.clock import Clock
from onesided.core.labels import POSITIVE
from onesided.losses.classification import mean_or_zero, soft_cross_entropy
from onesided.losses.contrastive import spectral_contrast
from onesided.losses.noisy_labels import (
    balanced_transition_loss,
    class_balance_loss,
    mean_transition_loss,
)
from onesided.methods.base import Card, GradientMethod
from onesided.methods.logged import CALLED_POSITIVE, Logged
from onesided.methods.variant import VariantConfig
from onesided.nets.heads import classifier, projector
from onesided.nets.standardise import Backbone, normalise_vectors
from onesided.state.transition import KnownTransition, LearnedTransition

EMBEDDING = 256
SUPERVISION = {"balanced": balanced_transition_loss, "mean": mean_transition_loss}


class WSCConfig(VariantConfig):
    """Settings of WSC; the defaults are its authors' for CIFAR-10, with balanced supervision.

    Its authors train 250 epochs of SGD, batch 128, learning rate 0.02 falling to 2e-4, weight
    decay 1e-3 (not on biases and BatchNorm).
    """

    switches: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "published": {},
        "ncpu-paper": {"volume_weight": 0.01, "transition_rate": 0.001},
        "unmodified": {"supervision": "mean"},
        "binary": {"view_weight": 0.5, "class_weight": 1.0, "repulsion_weight": 1.0},
    }
    variant: Literal["published", "ncpu-paper", "unmodified", "binary"] = "published"
    """A bundle of switches: its authors' numbers, the NcPU authors', the noisy-label method
    unmodified (collapses), or contrast weights derived for two classes."""
    supervision: Literal["balanced", "mean"] = "balanced"
    """Whether P and U weigh the same in the supervised term, or every sample does (original)."""
    transition: Literal["learned", "known"] = "learned"
    """Whether T is learned, or computed from the numbers of rows and `known_prior`."""
    known_prior: float = Field(default=0.0, ge=0, lt=1)
    """Share of positives among the unlabelled, for transition = "known" only."""
    view_weight: float = Field(default=1.0, ge=0)
    """Weight of a sample's two views in the contrast, alpha."""
    class_weight: float = Field(default=12.0, ge=0)
    """Weight of pairs of one class in the contrast, beta. With two classes 12 makes pairs of a
    class repel beyond a cosine of 0.08; `variant = "binary"` does not."""
    repulsion_weight: float = Field(default=3.0, ge=0)
    """Weight of the repulsion of all pairs in the contrast, lambda_c."""
    contrast_weight: float = Field(default=1.0, ge=0)
    """Weight of the contrast as the run ends, lambda_w; it grows linearly from 0."""
    balance_weight: float = Field(default=0.1, ge=0)
    """Weight of equal class shares, lambda_b; 0 where the prior is far from one half."""
    volume_weight: float = Field(default=1e-4, ge=0)
    """Weight of log det T, lambda_v: prefers the most noise that explains the labels."""
    transition_scale: float = Field(default=0.5, ge=0, le=50)
    """How near to identity T starts: 0.5 gives a diagonal of 0.726."""
    transition_rate: float = Field(default=0.02, ge=0)
    """Length of T's own gradient steps, constant over the run."""
    projection: Literal["learned", "random"] = "learned"
    """Whether the projector learns, or stays as drawn (its authors' and NcPU's code)."""
    projector_width: int = Field(default=512, ge=1)
    """Hidden units of the projector."""

    card: ClassVar[Card] = Card(
        title="WSC",
        summary="Noisy-label learning with a contrast on the graph of views and likely classes.",
        citation="Zhou, Wang, Wei, Zhang, Weakly-Supervised Contrastive Learning for Imprecise "
        "Class Labels, ICML 2025.",
        fidelity="Written from a description of the method; balanced supervision, without which "
        "it collapses on PU data; the projector learns.",
        licence="Authors' code: no licence stated, all rights reserved; nothing of it is here.",
        good_at="Few positives without a prior; classes of similar size.",
        bad_at="Priors far from one half, where its balance term misleads; recall.",
        variants={
            "published": "its authors' numbers, balanced supervision (default)",
            "ncpu-paper": "as the NcPU authors ran it",
            "unmodified": "the plain noisy-label method: calls nothing positive on PU data",
            "binary": "contrast weights derived for two classes",
        },
        logs={
            "supervised": Logged(
                "Supervised loss",
                "How well the predictions explain which samples are labelled.",
            ),
            "consistency": Logged(
                "Consistency loss",
                "How much the prediction changes between views of a sample.",
            ),
            "contrast": Logged(
                "Contrastive loss",
                "How hard it is to tell views of one sample or likely class from the others.",
            ),
            "balance": Logged(
                "Balance",
                "How far the mean prediction is from half positive, half negative.",
            ),
            "volume": Logged(
                "Log determinant of the noise",
                "The lower, the noisier the labels are taken to be; it holds the estimate back.",
            ),
            "transition_positive": Logged(
                "Labelled share of the positives",
                "Estimated probability that a positive sample carries its label.",
            ),
            "called_positive": CALLED_POSITIVE,
        },
    )

    @model_validator(mode="after")
    def _a_known_transition_needs_a_prior(self) -> Self:
        if (self.transition == "known") != (self.known_prior > 0):
            raise ValueError(
                'transition = "known" and known_prior go together: give the share of positives '
                f"among the unlabelled, or neither. transition is {self.transition!r}, "
                f"known_prior is {self.known_prior:g}"
            )
        return self

    def build(self, facts: DataFacts, backbone: Backbone) -> "WSC":
        """Return an untrained WSC."""
        if self.supervision == "mean" and self.transition == "learned":
            warnings.warn(
                "WSC with supervision = 'mean' and a learned transition calls nothing positive on "
                "PU data, unless half of every batch is labelled. Use supervision = 'balanced'.",
                stacklevel=2,
            )
        return WSC(self, facts, backbone)


class WSC(GradientMethod):
    """One network with classifier and projector, and a transition matrix."""

    views: Mapping[str, Augment] = {
        "classify": Augment.WEAK,
        "first": Augment.STRONG,
        "second": Augment.STRONG,
    }

    def __init__(self, config: WSCConfig, facts: DataFacts, backbone: Backbone) -> None:
        super().__init__()
        self.config = config
        self.backbone = backbone
        self.classifier = classifier(backbone.width)
        self.projector = nn.Sequential(
            projector(
                backbone.width,
                hidden=config.projector_width,
                out=EMBEDDING,
                normalisation=backbone.normalisation,
            ),
            normalise_vectors(backbone.normalisation, EMBEDDING),
        )
        self.projector.requires_grad_(config.projection == "learned")
        self.transition = _transition(config, facts)

    def forward(self, batch: PUBatch, clock: Clock) -> Outputs:
        """Return logits of the three views and embeddings of two, which `loss` normalises."""
        # One pass over the three, as published: BatchNorm sees their common statistics.
        views = [batch.views[role] for role in ("classify", "first", "second")]
        features = self.backbone(torch.cat(views))
        logits = self.classifier(features).chunk(3)
        strong = features[len(views[0]) :]
        first, second = self.projector(strong).chunk(2)
        return Outputs(
            {
                "logits": logits[0],
                "first_logits": logits[1],
                "second_logits": logits[2],
                "first": first,
                "second": second,
            }
        )

    def loss(self, outputs: Outputs, batch: PUBatch, clock: Clock) -> Losses:
        """Return L_sup + L_cons + ramp L_wsc + L_bal + log det T, and move T."""
        logits = outputs["logits"]
        probability = logits.detach().softmax(dim=1)
        matrix = self.transition.matrix
        supervise = SUPERVISION[self.config.supervision]
        contrast = spectral_contrast(
            F.normalize(outputs["first"], dim=1),
            F.normalize(outputs["second"], dim=1),
            probability @ probability.T,
            view_weight=self.config.view_weight,
            class_weight=self.config.class_weight,
            repulsion_weight=self.config.repulsion_weight,
        )
        terms = {
            "supervised": supervise(logits, matrix, batch.labelled),
            "consistency": soft_cross_entropy(outputs["first_logits"], probability).mean()
            + soft_cross_entropy(outputs["second_logits"], probability).mean(),
            "contrast": self._ramp(clock) * self.config.contrast_weight * contrast.total,
            "balance": self.config.balance_weight * class_balance_loss(logits),
        }
        if isinstance(self.transition, LearnedTransition):
            terms["volume"] = self._volume(matrix)
            self._move_transition(self.transition, logits.detach(), batch.labelled)
        return Losses(
            total=torch.stack(list(terms.values())).sum(),
            terms=terms,
            watched={
                "transition_positive": matrix[POSITIVE, POSITIVE],
                "called_positive": mean_or_zero(
                    (probability[:, POSITIVE] > 0.5).float(), ~batch.labelled
                ),
            },
        )

    def _ramp(self, clock: Clock) -> float:
        """Return e / E: classes must be known before pairs of one class mean anything."""
        return clock.epoch / clock.epochs

    def _volume(self, matrix: Float[Tensor, "2 2"]) -> Float[Tensor, ""]:
        volume: Tensor = torch.linalg.slogdet(matrix).logabsdet
        return self.config.volume_weight * volume

    def _move_transition(
        self,
        transition: LearnedTransition,
        logits: Float[Tensor, "batch 2"],
        labelled: Bool[Tensor, "batch"],
    ) -> None:
        """Let T take its step on the terms in which it occurs."""
        supervise = SUPERVISION[self.config.supervision]
        transition.descend(
            lambda matrix: supervise(logits, matrix, labelled) + self._volume(matrix),
            rate=self.config.transition_rate,
        )


def _transition(config: WSCConfig, facts: DataFacts) -> LearnedTransition | KnownTransition:
    if config.transition == "learned":
        return LearnedTransition(config.transition_scale)
    if config.supervision == "balanced":
        # P and U weigh alike there, as if both were of one size.
        return KnownTransition(1, 1, config.known_prior)
    return KnownTransition(facts.labelled, facts.rows - facts.labelled, config.known_prior)
