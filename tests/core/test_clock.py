"""The clock: how much of the stage is done."""

from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onesided.core.clock import Clock, Stage


def clocks(epochs: int, steps: int) -> list[Clock]:
    """Every position of a stage, in the order in which a run passes them."""
    return [
        Clock(0, "train", epoch, epochs, step, steps)
        for epoch in range(epochs)
        for step in range(steps)
    ]


def test_a_stage_starts_at_zero() -> None:
    assert Clock(0, "train", 0, 10, 0, 5).progress == 0


def test_halfway_is_one_half() -> None:
    assert Clock(0, "train", 5, 10, 0, 7).progress == 0.5
    assert Clock(0, "train", 0, 1, 4, 8).progress == 0.5


@given(st.integers(1, 12), st.integers(1, 12))
def test_progress_counts_steps_and_never_reaches_one(epochs: int, steps: int) -> None:
    progress = [clock.progress for clock in clocks(epochs, steps)]
    expected = [done / (epochs * steps) for done in range(epochs * steps)]
    assert progress == pytest.approx(expected, abs=1e-12)
    assert max(progress) < 1


def test_a_resumed_clock_tells_the_same_time() -> None:
    straight = clocks(3, 4)[6]
    resumed = replace(Clock(0, "train", 1, 3, steps=4), step=2)
    assert resumed == straight
    assert resumed.progress == straight.progress


def test_a_clock_is_immutable() -> None:
    clock = Clock(0, "train", 0, 1)
    with pytest.raises(FrozenInstanceError):
        clock.epoch = 1  # type: ignore[misc]


def test_a_stage_leaves_to_the_method_what_it_does_not_name() -> None:
    stage = Stage("train", 3)
    assert (stage.learns, stage.views, stage.batching, stage.rows) == (None, None, None, None)
    assert stage.steps == 0


def test_a_stage_goes_at_the_runs_pace_unless_it_names_its_own() -> None:
    pace = Stage("train", 3).pace
    assert (pace.learning_rate, pace.weight_decay) == (1, 1)
    assert (pace.floor, pace.span, pace.optimizer, pace.momentum) == (None, None, None, None)
