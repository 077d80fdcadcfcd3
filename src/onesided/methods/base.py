"""The two contracts of a method, what it may need, its settings and their variants.

Five laws, each with a test over every method (tests/contract):

1. `forward` touches parameters; `loss` touches outputs and buffers only.
2. State per sample is a buffer of length `facts.rows` addressed by `batch.row`; state per
   class or scalar is a buffer too. So it is in the `state_dict` and in the checkpoint.
3. Updates of state use whole-batch tensors only, so that replicas stay equal.
4. `loss` runs in float32 outside autocast; only `forward` may be half precision.
5. Time comes from the `Clock`, randomness from `core.rng`. A method never counts steps
   and never uses the global random generator.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Shaped
from pydantic import model_validator
from torch import Tensor, nn

from onesided.core.batch import Augment, Batching, DataFacts, Losses, Mixed, Outputs, PUBatch
from onesided.core.clock import Clock, Stage, Sweep
from onesided.core.config import Config, Settings
from onesided.losses.classification import mean_or_zero
from onesided.methods.logged import Logged
from onesided.methods.shapes import RowMask, RowValues
from onesided.nets.standardise import Backbone

EMBEDDING = 128
"""Length of the embeddings that are compared, as published for all methods but WSC."""


@dataclass(frozen=True)
class Needs:
    """What a method must be given beyond P and U; each of these costs users something."""

    prior: bool = False
    held_out: bool = False
    clean: bool = False
    truth: bool = False


@dataclass(frozen=True)
class Card:
    """What `onesided methods NAME` prints about a method.

    Attributes:
        title: Name as people write it.
        summary: One sentence.
        citation: Authors, title, venue, year.
        fidelity: How this implementation relates to the publication and its code.
        licence: Terms of the authors' code, of which nothing is here.
        good_at: When to choose it.
        bad_at: When not to choose it.
        variants: Meaning of each variant.
        logs: Meaning of each number that any variant logs.
    """

    title: str
    summary: str
    citation: str
    fidelity: str
    licence: str
    good_at: str
    bad_at: str
    variants: Mapping[str, str]
    logs: Mapping[str, Logged]


class GradientMethod(nn.Module):
    """A method that minimises a loss by gradient descent, batch by batch.

    A subclass writes `forward` and `loss`. If it has a `backbone` and a `classifier`, the
    inference below works for it.
    """

    views: Mapping[str, Augment] = {"classify": Augment.WEAK}
    batching: Batching = Mixed()
    needs: Needs = Needs()
    backbone: Backbone
    classifier: nn.Linear
    inference_parts: tuple[str, ...] = ("backbone.", "classifier.")
    """Beginnings of the names that `inference_state` keeps."""
    chooses_epoch: bool = False
    """Whether it delivers an epoch by a rule of its own; `train.keep` then has no effect."""

    def forward(self, batch: PUBatch, clock: Clock) -> Outputs:
        """Run the networks on this shard of the batch."""
        raise NotImplementedError

    def loss(self, outputs: Outputs, batch: PUBatch, clock: Clock) -> Losses:
        """Compute the objective on the whole batch, and update state."""
        raise NotImplementedError

    def classify(self, images: Tensor) -> Float[Tensor, "n 2"]:
        """Return logits for plain images; inference only. Default: classifier on backbone."""
        logits: Tensor = self.classifier(self.backbone(images))
        return logits

    def embed(self, images: Tensor) -> Float[Tensor, "n d"]:
        """Return features for plain images, for t-SNE and neighbours. Default: backbone."""
        features: Tensor = self.backbone(images)
        return features

    def inference_state(self) -> dict[str, Tensor]:
        """Return the part of the state that `classify` and `embed` need."""
        kept = self.inference_parts
        return {name: value for name, value in self.state_dict().items() if name.startswith(kept)}

    def plan(self, epochs: int) -> Sequence[Stage]:
        """Divide the run into stages. Default: one stage."""
        return [Stage("train", epochs)]

    def begin_stage(self, stage: Stage, sweep: Sweep) -> None:
        """Prepare a stage. It is not called again when the stage is resumed."""

    def begin_epoch(self, clock: Clock, sweep: Sweep) -> None:
        """Prepare an epoch. It is not called again when the epoch is resumed."""

    def finish(self, sweep: Sweep) -> None:
        """Do the work after the last epoch, for example set the scale of the scores.

        Where `train.keep` chooses, every epoch may be the last: it is done after each of them, and
        must not change how training goes on.
        """


def summed(terms: Mapping[str, Tensor], watched: Mapping[str, Tensor]) -> Losses:
    """Return losses whose total is the sum of all terms."""
    return Losses(torch.stack(list(terms.values())).sum(), terms, watched)


def watched_scores(p_positive: RowValues, unlabelled: RowMask) -> dict[str, Tensor]:
    """Return mean score and share called positive of the unlabelled rows, for the log."""
    return {
        "mean_positive": mean_or_zero(p_positive, unlabelled),
        "called_positive": mean_or_zero((p_positive > 0.5).float(), unlabelled),
    }


@runtime_checkable
class DirectMethod(Protocol):
    """A method that is fitted in one call, without gradients (trees)."""

    def fit(
        self,
        features: Shaped[np.ndarray, "n d"],
        labelled: Bool[np.ndarray, "n"],
        rng: np.random.Generator,
    ) -> None:
        """Fit to flattened samples: pixels from 0 to 255, or numbers of a table.

        A method whose settings declare `uses_negatives` or `uses_weights` takes these as well, see
        `InformedMethod`.
        """
        ...

    def scores(self, features: Shaped[np.ndarray, "m d"]) -> Float[np.ndarray, "m"]:
        """Return a score in [0, 1] per sample; above 0.5 means positive."""
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """Return everything `scores` needs, as tensors."""
        ...

    def load_state_dict(self, state: Mapping[str, Tensor]) -> object:
        """Restore what `state_dict` returned."""
        ...


class InformedMethod(DirectMethod, Protocol):
    """A direct method that also learns from known negatives and from weights."""

    def fit(
        self,
        features: Shaped[np.ndarray, "n d"],
        labelled: Bool[np.ndarray, "n"],
        rng: np.random.Generator,
        *,
        negative: Bool[np.ndarray, "n"] | None = None,
        weights: Float64[np.ndarray, "n"] | None = None,
    ) -> None:
        """Fit to flattened samples, of which some are known to be negative, or count more."""
        ...


Method = GradientMethod | DirectMethod


MOST_GENTLE_EPOCHS = 30
"""Epochs after which a network has memorised a few positives that it sees nearly unchanged. On
small data the published views then find more of the other positives."""


def short_training(batch_size: int) -> Settings:
    """Return training settings for a few epochs, measured on CIFAR-10 training images.

    A quarter of every batch is positive: at their natural share (1 in 40) a batch holds
    three positives, whose mean is mostly noise. The learning rate rises and falls to zero
    step by step, as in fast CIFAR training (DAWNBench, airbench). Views are gentle: in a few
    epochs a window of a fifth of an image shows too little.
    """
    return {
        "learning_rate": 0.05,
        "schedule": "triangle",
        "nesterov": True,
        "weight_decay": 5e-4,
        "decay": "weights",
        "views": "gentle",
        "batching": "stratified",
        "positives_per_batch": max(1, batch_size // 4),
    }


class MethodConfig(Config):
    """Settings of one method, which know how to build it."""

    needs: ClassVar[Needs] = Needs()
    uses_negatives: ClassVar[bool] = False
    """Whether known negatives may be training rows. Methods without it count every row that is
    not labelled as a random sample of the unlabelled pool, so known negatives are left out."""
    uses_weights: ClassVar[bool] = False
    """Whether samples may count more than others in training; only direct methods can."""
    trains_backbone: ClassVar[bool] = True
    """False where the method builds no network, so that the backbone's size says nothing of the
    work."""
    card: ClassVar[Card]

    def build(self, facts: DataFacts, backbone: Backbone) -> Method:
        """Return the untrained method."""
        raise NotImplementedError

    def stored(self) -> Settings:
        """Return the settings as a TOML file holds them, which knows no None."""
        return self.model_dump(mode="json")

    def batching(self, batch_size: int) -> Batching:
        """Return how batches are composed, which also sets the length of an epoch."""
        return Mixed()

    budget_variant: ClassVar[str | None] = None
    """Variant for runs of minutes; None: the published one."""
    features_variant: ClassVar[str | None] = None
    """The same on features of a frozen backbone, which are trained already."""

    def budget_learning_rate(self) -> float:
        """Return the learning rate for few epochs; it is too high for 1300 epochs."""
        return 0.02

    def budget_training(self, batch_size: int) -> Settings:
        """Return training settings for few epochs."""
        return {"learning_rate": self.budget_learning_rate()}

    def for_budget(self, epochs: int) -> "MethodConfig":
        """Return settings for a run of this many epochs. Default: unchanged."""
        return self

    def for_features(self, epochs: int) -> "MethodConfig":
        """Return the same for a head on features of a frozen backbone. Default: no difference."""
        return self.for_budget(epochs)

    def notice(self, epochs: int) -> str | None:
        """Return what a person should know about a run of this many epochs. Default: nothing."""
        return None


class VariantConfig(MethodConfig):
    """Settings of a method with variants: named groups of switches, each also set alone."""

    switches: ClassVar[Mapping[str, Mapping[str, Any]]] = {"published": {}}
    """The settings that each variant fills in where none is given."""
    variant: str = "published"
    """The group of switches to start from."""

    @model_validator(mode="before")
    @classmethod
    def _fill_switches_of_the_variant(cls, settings: Any) -> Any:  # noqa: ANN401 - pydantic's
        if not isinstance(settings, Mapping):
            return settings
        return {**cls.switches.get(str(settings.get("variant", "published")), {}), **settings}
