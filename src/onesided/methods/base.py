"""The two contracts a method can sign, and what it may ask for.

Five laws, each with a test over every method (tests/contract):

1. `forward` touches parameters; `loss` touches outputs and buffers only.
2. State per sample is a buffer of length `facts.rows` addressed by `batch.row`; state per
   class or scalar is a buffer too. So it is in the `state_dict`, so in the checkpoint.
3. Updates of state use whole-batch tensors only, so that replicas stay equal.
4. `loss` runs in float32 outside autocast; only `forward` may be half precision.
5. A method asks the `Clock` for time and `core.rng` for randomness; it never counts
   steps and never calls the global random generator.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn

from onesided.core.batch import Augment, Batching, DataFacts, Losses, Mixed, Outputs, PUBatch
from onesided.core.clock import Clock, Stage, Sweep
from onesided.core.config import Config, Settings
from onesided.methods.logged import Logged
from onesided.nets.standardise import Backbone


@dataclass(frozen=True)
class Needs:
    """What a method must be given beyond P and U; everything here costs users something."""

    prior: bool = False
    held_out: bool = False
    clean: bool = False
    truth: bool = False


@dataclass(frozen=True)
class Card:
    """What `onesided methods NAME` tells: one place, beside the method it describes.

    Attributes:
        title: Name as people write it.
        summary: One sentence.
        citation: Authors, title, venue, year.
        fidelity: How this implementation relates to the publication and its code.
        licence: Under which terms the authors gave out their code, of which we hold none.
        good_at: When to choose it.
        bad_at: When not to.
        variants: Variant name to what it means.
        logs: Name of every number it logs, of any variant, to what it means.
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
    """A method that learns by descending a loss, batch by batch.

    `forward` and `loss` are to be written. A method that keeps a `backbone` and a
    `classifier` has its inference for free.
    """

    views: Mapping[str, Augment] = {"classify": Augment.WEAK}
    batching: Batching = Mixed()
    needs: Needs = Needs()
    backbone: Backbone
    classifier: nn.Linear

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
        parts = ("backbone.", "classifier.")
        return {name: value for name, value in self.state_dict().items() if name.startswith(parts)}

    def plan(self, epochs: int) -> Sequence[Stage]:
        """Divide the run into stages; by default there is one."""
        return [Stage("train", epochs)]

    def begin_stage(self, stage: Stage, sweep: Sweep) -> None:
        """Prepare a stage; not called again when the stage is resumed."""

    def begin_epoch(self, clock: Clock, sweep: Sweep) -> None:
        """Prepare an epoch; not called again when the epoch is resumed."""

    def finish(self, sweep: Sweep) -> None:
        """Do what can only be done after the last epoch, for example set a scale of scores."""


@runtime_checkable
class DirectMethod(Protocol):
    """A method that is fitted in one go, without gradients (trees)."""

    def fit(
        self,
        features: Shaped[np.ndarray, "n d"],
        labelled: Bool[np.ndarray, "n"],
        rng: np.random.Generator,
    ) -> None:
        """Learn from flattened samples: pixels as they are, 0 to 255, or numbers."""
        ...

    def scores(self, features: Shaped[np.ndarray, "m d"]) -> Float[np.ndarray, "m"]:
        """Return a score in [0, 1] per sample; above one half means positive."""
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """Return everything `scores` needs, as tensors."""
        ...

    def load_state_dict(self, state: Mapping[str, Tensor]) -> object:
        """Restore what `state_dict` returned."""
        ...


Method = GradientMethod | DirectMethod


MOST_GENTLE_EPOCHS = 30
"""Passes after which a few positives, shown nearly unchanged, are known by heart: on small data
the published views then find more of the others."""


def short_training(batch_size: int) -> Settings:
    """Return how to train in a few epochs, measured on CIFAR-10 training images.

    A fixed quarter of positives in every batch: at their natural share (1 in 40) a batch
    holds three, and the mean over them is mostly noise. A rate that rises and falls to
    nothing by the step, as in what made CIFAR training fast (DAWNBench, airbench). Gentle
    views, because a window of a fifth of an image teaches too little in a few epochs.
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
    """Settings of one method. The subclass knows how to build it: names stay at the door."""

    needs: ClassVar[Needs] = Needs()
    uses_negatives: ClassVar[bool] = False
    """Whether known negatives may be among the training rows. Where not, they are kept out:
    everything that is not labelled counts as a sample of the unlabelled population."""
    card: ClassVar[Card]

    def build(self, facts: DataFacts, backbone: Backbone) -> Method:
        """Return the untrained method."""
        raise NotImplementedError

    def batching(self, batch_size: int) -> Batching:
        """Return how batches are put together; how long an epoch is follows from it."""
        return Mixed()

    budget_variant: ClassVar[str | None] = None
    """Variant that suits runs of minutes; None where the published one does."""
    features_variant: ClassVar[str | None] = None
    """The same on features of a frozen network, which have formed before the first step."""

    def budget_learning_rate(self) -> float:
        """Return the rate where epochs are few: more than 1300 epochs would bear."""
        return 0.02

    def budget_training(self, batch_size: int) -> Settings:
        """Return training settings where epochs are few."""
        return {"learning_rate": self.budget_learning_rate()}

    def for_budget(self, epochs: int) -> "MethodConfig":
        """Return settings that suit a run of this many epochs; by default unchanged."""
        return self
