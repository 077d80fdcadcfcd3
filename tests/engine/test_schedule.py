"""The loop takes every step at the schedule's rate, also after it was stopped."""

import os
import signal
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor

from onesided.core.batch import Losses, Outputs, PUBatch
from onesided.core.clock import Clock
from onesided.core.errors import Interrupted
from onesided.engine.checkpoint import Checkpoints
from onesided.engine.fit import Memory, Watcher, fit
from onesided.engine.log import EpochLog, Row
from onesided.engine.train_config import Schedule, TrainConfig
from onesided.methods.base import GradientMethod
from tests.contract.cases import toy_split

STEPS, EPOCHS = 4, 3  # 96 rows in batches of 24


class Descent(GradientMethod):
    """One number whose gradient is always one: a plain step moves it by the learning rate."""

    def __init__(self) -> None:
        super().__init__()
        self.height = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))

    def forward(self, batch: PUBatch, clock: Clock) -> Outputs:
        return Outputs({"height": self.height.expand(len(batch.row))})

    def loss(self, outputs: Outputs, batch: PUBatch, clock: Clock) -> Losses:
        mean = outputs["height"].mean()
        return Losses(mean, {"height": mean})

    def classify(self, images: Tensor) -> Tensor:
        return self.height.expand(len(images), 2)


def settings(schedule: Schedule) -> TrainConfig:
    return TrainConfig(
        schedule=schedule,
        epochs=EPOCHS,
        batch_size=24,
        learning_rate=0.25,
        momentum=0.0,
        weight_decay=0.0,
        device="cpu",
        precision="fp32",
    )


def trained_in(
    method: Descent, schedule: Schedule, folder: Path, *, stop_after: int = 0
) -> list[Row]:
    """Train in a folder, and return the rows of the log."""
    done = [0]

    def count(clock: Clock) -> None:
        done[0] += 1
        if done[0] == stop_after:
            os.kill(os.getpid(), signal.SIGTERM)

    folder.mkdir(exist_ok=True)
    memory = Memory(Checkpoints(folder / "last.pt", "x"), EpochLog(folder / "log.jsonl"))
    rows: list[Row] = []
    watcher = Watcher(step=count, epoch=rows.append)
    fit(method, toy_split(), settings(schedule), memory=memory, watcher=watcher)
    return rows


@pytest.mark.parametrize(
    "schedule",
    ["cosine", "cosine-step", "steps", "triangle", "seven-sixteenths-step", "constant"],
)
def test_every_step_is_as_long_as_the_schedule_says(schedule: Schedule) -> None:
    method = Descent()
    seen = [0.0]
    watcher = Watcher(step=lambda clock: seen.append(method.height.item()))
    train = settings(schedule)
    fit(method, toy_split(), train, watcher=watcher)
    moved = [before - after for before, after in pairwise(seen)]
    finer = schedule in ("cosine-step", "triangle", "seven-sixteenths-step")
    expected = [
        train.learning_rate_at(epoch + (step / STEPS if finer else 0), EPOCHS)
        for epoch in range(EPOCHS)
        for step in range(STEPS)
    ]
    assert moved == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("stop_after", [1, STEPS, STEPS + 3])
@pytest.mark.parametrize("schedule", ["cosine-step", "triangle", "steps"])
def test_a_stopped_run_goes_on_at_the_rate_it_would_have_had(
    schedule: Schedule, stop_after: int, tmp_path: Path
) -> None:
    whole, broken, resumed = Descent(), Descent(), Descent()
    rows = trained_in(whole, schedule, tmp_path / "whole")
    with pytest.raises(Interrupted):
        trained_in(broken, schedule, tmp_path / "broken", stop_after=stop_after)
    later = trained_in(resumed, schedule, tmp_path / "broken")
    assert torch.equal(whole.height, resumed.height)
    assert [row["lr"] for row in later] == [row["lr"] for row in rows][-len(later) :]
    states = [Checkpoints(tmp_path / name / "last.pt", "x").load() for name in ("whole", "broken")]
    groups = [state.optimizer["param_groups"] for state in states if state and state.optimizer]
    assert groups[0] == groups[1]


def test_the_log_tells_the_rate_at_which_an_epoch_began(tmp_path: Path) -> None:
    train = settings("triangle")
    rows = trained_in(Descent(), "triangle", tmp_path / "run")
    assert [row["lr"] for row in rows] == [
        train.learning_rate_at(epoch, EPOCHS) for epoch in range(EPOCHS)
    ]
