"""WSC: weakly supervised contrastive learning (Zhou et al., ICML 2025), for PU data.

Learning with noisy labels: labelled rows have the label positive, all others the label
negative, and a transition matrix holds the probability that a positive has the label
negative. Besides, two strong views of every sample are pulled together, and so are samples
that are probably of one class. Symbols:

| paper        | here                        | paper     | here                                |
|--------------|-----------------------------|-----------|-------------------------------------|
| p = f(x)     | softmax(`logits`)           | T         | `transition.matrix`                 |
| z1, z2       | `first`, `second`           | L_sup     | `supervised`                        |
| Q            | `same_class`                | L_cons    | `consistency`                       |
| alpha, beta  | `view_`, `class_weight`     | L_wsc     | `contrast`, weight lambda_w, ramped |
| lambda_c     | `repulsion_weight`          | L_bal     | `balance`, weight lambda_b          |
| e / E        | ramp of `contrast`          | log det T | `volume`, weight lambda_v           |

Differs from the original, which collapses to all-negative on PU data: the supervised term
has separate means over P and U, as the NcPU authors ran it. Why: `losses/noisy_labels.py`.
The projector is trained; in its authors' code it belongs to no optimizer.
"""

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import torch
import torch.nn.functional as F
from jaxtyping import Float
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
from onesided.methods.base import Card, GradientMethod, VariantConfig, summed
from onesided.methods.logged import logs
from onesided.methods.shapes import Scalar
from onesided.nets.heads import classifier, projector
from onesided.nets.standardise import Backbone, normalise_vectors
from onesided.state.transition import KnownTransition, LearnedTransition

WSC_EMBEDDING = 256
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
    """A group of switches: its authors' numbers, the NcPU authors', the noisy-label method
    unmodified (collapses), or contrast weights derived for two classes."""
    supervision: Literal["balanced", "mean"] = "balanced"
    """What weighs the same in the supervised term: P and U, or every sample (original)."""
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
    """Weight of the contrast at the end of the run, lambda_w; it grows linearly from 0."""
    balance_weight: float = Field(default=0.1, ge=0)
    """Weight of equal class shares, lambda_b; set 0 if the prior is far from 0.5."""
    volume_weight: float = Field(default=1e-4, ge=0)
    """Weight of log det T, lambda_v: prefers the largest noise that explains the labels."""
    transition_scale: float = Field(default=0.5, ge=0, le=50)
    """How near to the identity T starts: 0.5 gives a diagonal of 0.726."""
    transition_rate: float = Field(default=0.02, ge=0)
    """Learning rate of T, constant over the run."""
    projection: Literal["learned", "random"] = "learned"
    """Whether the projector is trained, or stays random (its authors' and NcPU's code)."""
    projector_width: int = Field(default=512, ge=1, le=65536)
    """Hidden units of the projector."""

    card: ClassVar[Card] = Card(
        title="WSC",
        summary="Noisy-label learning with a contrast on the graph of views and likely classes.",
        citation="Zhou, Wang, Wei, Zhang, Weakly-Supervised Contrastive Learning for Imprecise "
        "Class Labels, ICML 2025.",
        fidelity="Written from a description of the method. Supervision is balanced; otherwise it "
        "collapses on PU data. The projector is trained.",
        licence="Authors' code: no licence stated, all rights reserved; nothing of it is here.",
        good_at="Few positives without a prior; classes of similar size.",
        bad_at="Priors far from 0.5, where its balance term misleads; recall.",
        variants={
            "published": "its authors' numbers, balanced supervision (default)",
            "ncpu-paper": "as the NcPU authors ran it",
            "unmodified": "the plain noisy-label method: calls nothing positive on PU data",
            "binary": "contrast weights derived for two classes",
        },
        logs=logs(
            "consistency called_positive",
            own={
                "supervised": "How well the predictions explain which samples are labelled.",
                "contrast": "How hard it is to tell views of one sample or class from the others.",
                "balance": "How far the mean prediction is from half positive, half negative.",
                "volume": "The lower, the noisier the labels are taken to be; it limits the noise.",
                "transition_positive": "Estimated probability that a positive sample is labelled.",
            },
            titles={
                "supervised": "Supervised loss",
                "contrast": "Contrastive loss",
                "volume": "Log determinant of the noise",
                "transition_positive": "Labelled share of the positives",
            },
        ),
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

    def __init__(self, config: WSCConfig, facts: DataFacts, backbone: Backbone) -> None:
        super().__init__()
        self.config = config
        self.views = {"classify": Augment.WEAK, "first": Augment.STRONG, "second": Augment.STRONG}
        self.backbone = backbone
        self.classifier = classifier(backbone.width)
        width, norm = config.projector_width, backbone.normalisation
        self.projector = nn.Sequential(
            projector(backbone.width, hidden=width, out=WSC_EMBEDDING, normalisation=norm),
            normalise_vectors(norm, WSC_EMBEDDING),
        )
        self.projector.requires_grad_(config.projection == "learned")
        self.transition = _transition(config, facts)

    def forward(self, batch: PUBatch, clock: Clock) -> Outputs:
        """Return logits of three views and embeddings of the strong two (`loss` normalises)."""
        # One pass for all three, as published: BatchNorm takes their common statistics.
        views = [batch.views[role] for role in ("classify", "first", "second")]
        features = self.backbone(torch.cat(views))
        names = ("logits", "first_logits", "second_logits")
        logits = dict(zip(names, self.classifier(features).chunk(3), strict=True))
        first, second = self.projector(features[len(views[0]) :]).chunk(2)
        return Outputs({**logits, "first": first, "second": second})

    def loss(self, outputs: Outputs, batch: PUBatch, clock: Clock) -> Losses:
        """Return L_sup + L_cons + ramp L_wsc + L_bal + log det T, and update T."""
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
            # The ramp e / E: pairs of one class mean nothing before classes are learnt.
            "contrast": clock.epoch / clock.epochs * self.config.contrast_weight * contrast.total,
            "balance": self.config.balance_weight * class_balance_loss(logits),
        }
        if isinstance(self.transition, LearnedTransition):
            terms["volume"] = self._volume(matrix)
            fixed = logits.detach()
            self.transition.descend(
                lambda matrix: supervise(fixed, matrix, batch.labelled) + self._volume(matrix),
                rate=self.config.transition_rate,
            )
        called = (probability[:, POSITIVE] > 0.5).float()
        watched = {
            "transition_positive": matrix[POSITIVE, POSITIVE],
            "called_positive": mean_or_zero(called, ~batch.labelled),
        }
        return summed(terms, watched)

    def _volume(self, matrix: Float[Tensor, "2 2"]) -> Scalar:
        volume: Tensor = torch.linalg.slogdet(matrix).logabsdet
        return self.config.volume_weight * volume


def _transition(config: WSCConfig, facts: DataFacts) -> LearnedTransition | KnownTransition:
    if config.transition == "learned":
        return LearnedTransition(config.transition_scale)
    if config.supervision == "balanced":
        # P and U then have equal weight, as if both had the same size.
        return KnownTransition(1, 1, config.known_prior)
    return KnownTransition(facts.labelled, facts.rows - facts.labelled, config.known_prior)
