"""Settings of training that do not depend on the method."""

import math
from typing import Annotated, Literal, get_args

import torch
from pydantic import Field, field_validator

from onesided.core.clock import Clock, Pace
from onesided.core.config import Config
from onesided.core.errors import ConfigError
from onesided.core.threads import MOST_THREADS

Precision = Literal["auto", "fp32", "bf16"]
PerEpoch = Literal["cosine", "steps", "seven-sixteenths", "constant"]
PerStep = Literal["cosine-step", "triangle", "seven-sixteenths-step"]
Schedule = Literal[PerEpoch, PerStep]
"""How the learning rate changes: once per epoch, or with every step."""
RISE, START = 0.2, 0.05
"""Share of a run in which the triangle rises, and the share of the rate at which it starts."""


class TrainConfig(Config):
    """Settings of the loop; the defaults are the paper's."""

    epochs: int = Field(default=1300, ge=1)
    """Passes over the data."""
    batch_size: int = Field(default=256, ge=2, le=2**20)
    """Rows in a batch, over all processes together."""
    optimizer: Literal["sgd", "adam"] = "sgd"
    """SGD with momentum (paper) or Adam."""
    learning_rate: float = Field(default=1e-3, gt=0)
    """Learning rate at the start."""
    schedule: Schedule = "cosine"
    """Cosine down to learning_rate x floor; steps: multiplied by `factor` after each milestone;
    triangle: up during a fifth of the run, then down to zero; FixMatch's cos(7 pi e / 16 E),
    which ends at a fifth; or constant. Rates change per epoch, those named -step per step."""
    floor: float = Field(default=1e-3, ge=0)
    """Share of the learning rate at which the cosine ends, and below which the triangle does not
    fall; above 1 the cosine rises."""
    milestones: tuple[Annotated[float, Field(ge=0, le=1)], ...] = (0.5, 0.75)
    """Shares of the run after which `steps` multiplies the rate: 0.5 of 100 epochs means every
    epoch later than 50, counted from 0."""
    factor: float = Field(default=0.1, gt=0)
    """What `steps` multiplies it by."""
    momentum: float = Field(default=0.9, ge=0, lt=1)
    """Momentum of SGD; beta1 of Adam."""
    nesterov: bool = False
    """Look ahead along the momentum (SGD only)."""
    weight_decay: float = Field(default=1e-3, ge=0)
    """L2 penalty on the parameters that decay."""
    decay: Literal["all", "weights"] = "all"
    """What decays: all parameters, or neither biases nor BatchNorm."""
    clip: float = Field(default=30.0, gt=0)
    """Largest norm of the gradient; longer ones are shortened to it."""
    batching: Literal["method", "mixed", "stratified"] = "method"
    """As the method declares, one shuffled stream, or as many positives in every batch."""
    positives_per_batch: int = Field(default=0, ge=0)
    """Positives in a stratified batch; 0 takes the data's own share."""
    views: Literal["published", "gentle"] = "published"
    """published: as the papers have them, which includes small windows of photographs. gentle:
    mirrored and moved a little instead, and strong views also recoloured with a patch hidden. A few
    epochs are too short to learn from windows of a fifth of an image."""
    precision: Precision = "auto"
    """bf16 runs the networks in half precision where the machine is good at it."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute."""
    threads: Literal["auto"] | int = "auto"
    """Threads of a run. auto: one for small networks and on busy machines, else as many as cores
    are idle; a resumed run keeps its number. Results depend on it in their last bits."""
    save_minutes: float = Field(default=5.0, ge=0)
    """A checkpoint is written at the end of every epoch, and inside long ones this often."""
    keep: Literal["last", "best", "best-accuracy"] = "last"
    """Which epoch is delivered: the last one, as papers do; or, of the last stage, the one with the
    highest proxy AUC on held-out P and U (best), or with the highest proxy accuracy at 0.5
    (best-accuracy, as in PU-Bench), which needs the prior. A method with a rule of its own (vPU)
    keeps that rule. Figures from the same held-out items are then biased slightly high."""
    tensorboard: bool = False
    """Write TensorBoard event files beside log.jsonl."""

    @field_validator("threads", mode="before")
    @classmethod
    def _auto_or_a_number(cls, value: object) -> object:
        whole = isinstance(value, int) and not isinstance(value, bool)
        if value != "auto" and not (whole and 1 <= value <= MOST_THREADS):  # type: ignore[operator]
            raise ValueError(f"expected auto, or a number of threads from 1 to {MOST_THREADS}")
        return value

    @property
    def threads_given(self) -> int | None:
        """The number of threads that the user set, or None."""
        return None if self.threads == "auto" else self.threads

    def at_pace(self, pace: Pace) -> "TrainConfig":
        """Return these settings as a stage changes them."""
        changes: dict[str, object] = {
            "learning_rate": self.learning_rate * pace.learning_rate,
            "weight_decay": self.weight_decay * pace.weight_decay,
            "floor": pace.floor,
            "optimizer": pace.optimizer,
            "momentum": pace.momentum,
        }
        return self.model_copy(update={k: v for k, v in changes.items() if v is not None})

    def learning_rate_at(self, epoch: float, epochs: int) -> float:
        """Return the learning rate at an epoch; fractions count for schedules that change per step.

        Cosine: m + (lr - m)(1 + cos(pi e / E)) / 2, where m is the floor.
        """
        match self.schedule:
            case "constant":
                return self.learning_rate
            case "seven-sixteenths" | "seven-sixteenths-step":
                return self.learning_rate * math.cos(7 / 16 * math.pi * epoch / epochs)
            case "steps":
                passed = sum(epoch / epochs > milestone for milestone in self.milestones)
                return self.learning_rate * self.factor**passed
            case "triangle":
                done = epoch / epochs
                height = min(done / RISE + START, (1 - done) / (1 - RISE), 1)
                return self.learning_rate * max(height, self.floor)
            case "cosine" | "cosine-step":
                lowest = self.learning_rate * self.floor
                height = 1 + math.cos(math.pi * epoch / epochs)
                return lowest + (self.learning_rate - lowest) * height / 2

    def learning_rate_during(self, clock: Clock, epochs: int) -> float:
        """Return the learning rate of a step: that of its epoch, unless the schedule is finer.

        A function of the clock, so a resumed run has the same rates.
        """
        within = clock.step / clock.steps if self.schedule in get_args(PerStep) else 0
        return self.learning_rate_at(clock.epoch + within, epochs)


def choose_device(wanted: Literal["auto", "cpu", "cuda"]) -> torch.device:
    """Return the device in the settings, or the best one available."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ConfigError("--device cuda was given, but torch finds no GPU. Use --device auto.")
    if wanted == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(wanted)


def choose_precision(wanted: Precision, device: torch.device) -> torch.dtype:
    """Return bfloat16 where it is set or, on auto, where the hardware multiplies in it.

    CPUs without such units emulate bf16, which is slower than float32.
    """
    if wanted != "auto":
        return torch.bfloat16 if wanted == "bf16" else torch.float32
    if device.type == "cuda":
        good = torch.cuda.is_bf16_supported()
    else:
        good = torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()
    return torch.bfloat16 if good else torch.float32
