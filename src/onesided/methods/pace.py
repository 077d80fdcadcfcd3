"""A stage at its own pace: what a method with two stages asks of the loop.

`PacedStage` is a `Stage` with two more fields. The loop takes it as the `Stage` it is and
trains every stage with the run's own settings; a loop that reads `pace` and `steps` trains
as DistPU and HolisticPU were published.
"""

from dataclasses import dataclass, field
from typing import Literal

from onesided.core.clock import Stage


@dataclass(frozen=True)
class Pace:
    """How a stage is optimised where it differs from the run's settings.

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
class PacedStage(Stage):
    """A stage with its own pace and, where it is not one pass over U, length of an epoch.

    Attributes:
        pace: How it is optimised.
        steps: Steps of an epoch; 0 means one pass over the data.
    """

    pace: Pace = field(default_factory=Pace)
    steps: int = 0
