"""How to train, apart from what the method is."""

import math
from typing import Literal

import torch
from pydantic import Field

from onesided.core.clock import Pace
from onesided.core.config import Config
from onesided.core.errors import ConfigError

Precision = Literal["auto", "fp32", "bf16"]


class TrainConfig(Config):
    """Settings of the loop; the defaults are the paper's."""

    epochs: int = Field(default=1300, ge=1)
    """Passes over the data."""
    batch_size: int = Field(default=256, ge=2)
    """Rows in a batch, over all processes together."""
    optimizer: Literal["sgd", "adam"] = "sgd"
    """SGD with momentum (paper) or Adam."""
    learning_rate: float = Field(default=1e-3, gt=0)
    """Learning rate at the start."""
    schedule: Literal["cosine", "seven-sixteenths", "constant"] = "cosine"
    """Cosine per epoch down to learning_rate x floor; FixMatch's cos(7 pi e / 16 E), which ends
    at a fifth; or constant."""
    floor: float = Field(default=1e-3, ge=0, le=1)
    """Share of the learning rate at which the cosine ends."""
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
    """As the method declares, one shuffled stream, or equally many positives in every batch."""
    positives_per_batch: int = Field(default=0, ge=0)
    """Positives in a stratified batch; 0 takes the data's own share."""
    precision: Precision = "auto"
    """bf16 runs the networks in half precision where the machine is good at it."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute."""
    save_minutes: float = Field(default=5.0, ge=0)
    """A checkpoint is written at the end of every epoch, and inside long ones this often."""
    tensorboard: bool = False
    """Write TensorBoard event files beside log.jsonl."""

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

    def learning_rate_at(self, epoch: int, epochs: int) -> float:
        """Return the learning rate of an epoch: m + (lr - m)(1 + cos(pi e / E)) / 2."""
        if self.schedule == "constant":
            return self.learning_rate
        if self.schedule == "seven-sixteenths":
            return self.learning_rate * math.cos(7 / 16 * math.pi * epoch / epochs)
        lowest = self.learning_rate * self.floor
        return lowest + (self.learning_rate - lowest) * (1 + math.cos(math.pi * epoch / epochs)) / 2


def choose_device(wanted: Literal["auto", "cpu", "cuda"]) -> torch.device:
    """Return the device asked for, or the best one there is."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ConfigError("--device cuda was asked for, but torch sees no GPU. Use --device auto.")
    if wanted == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(wanted)


def choose_precision(wanted: Precision, device: torch.device) -> torch.dtype:
    """Return bfloat16 where it is asked for or, on auto, where the hardware multiplies in it.

    On processors without such units bf16 is emulated and slower than float32.
    """
    if wanted != "auto":
        return torch.bfloat16 if wanted == "bf16" else torch.float32
    if device.type == "cuda":
        good = torch.cuda.is_bf16_supported()
    else:
        good = torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()
    return torch.bfloat16 if good else torch.float32
