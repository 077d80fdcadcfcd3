"""Time in a run: stages, epochs, steps.

A method never counts steps: it asks the clock. The clock is a function of the position
in the run, so a resumed run has the same clock.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from jaxtyping import Bool
from torch import Tensor

from onesided.core.batch import Augment, Batching


@dataclass(frozen=True)
class Pace:
    """How the optimisation of a stage differs from the run's settings.

    Attributes:
        learning_rate: Factor of the run's learning rate.
        weight_decay: Factor of the run's weight decay.
        floor: Share of the learning rate at which the schedule ends; None: the run's.
        span: Epochs over which the schedule runs; None: the stage's own.
        optimizer: Kind of optimizer; None: the run's.
        momentum: Momentum of the optimizer; None: the run's.
    """

    learning_rate: float = 1.0
    weight_decay: float = 1.0
    floor: float | None = None
    span: int | None = None
    optimizer: Literal["sgd", "adam"] | None = None
    momentum: float | None = None


@dataclass(frozen=True)
class Stage:
    """A part of training, as data: which submodules learn, views, batching, rows and pace.

    `None` means the method's own: all parameters, its views, its batching, all rows.

    Attributes:
        steps: Steps of an epoch; 0 means one pass over the data.
    """

    name: str
    epochs: int
    learns: tuple[str, ...] | None = None
    views: Mapping[str, Augment] | None = None
    batching: Batching | None = None
    rows: Bool[Tensor, "rows"] | None = None
    pace: Pace = Pace()
    steps: int = 0


@dataclass(frozen=True)
class Clock:
    """A position in the run: epoch in the stage and step in the epoch, both counted from 0."""

    seed: int
    stage: str
    epoch: int
    epochs: int
    step: int = 0
    steps: int = 1

    @property
    def progress(self) -> float:
        """Share of the stage that is done, in [0, 1)."""
        return (self.epoch + self.step / self.steps) / self.epochs


class Sweep(Protocol):
    """Runs a function over a whole data set without gradients, in row order.

    It is a method's only way to data outside a batch.
    """

    def __call__(
        self,
        function: Callable[[Tensor], Tensor],
        *,
        view: Augment = Augment.PLAIN,
        of: str = "train",
    ) -> tuple[Tensor, Bool[Tensor, "rows"]]:
        """Return outputs in row order and the labelled mask of `of` (train, held_out)."""
        ...
