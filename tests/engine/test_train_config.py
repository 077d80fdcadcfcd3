"""The schedule's published numbers, and the choice of device and precision."""

import pytest
import torch

from onesided.core.clock import Clock
from onesided.core.errors import ConfigError
from onesided.engine.train_config import Schedule, TrainConfig, choose_device, choose_precision


@pytest.mark.parametrize(
    ("epoch", "rate"), [(0, 1e-3), (325, 8.536998e-4), (650, 5.005e-4), (1299, 1.001459e-6)]
)
def test_the_cosine_passes_through_the_published_numbers(epoch: int, rate: float) -> None:
    assert TrainConfig().learning_rate_at(epoch, 1300) == pytest.approx(rate, rel=1e-6)


def test_a_constant_schedule_is_constant() -> None:
    train = TrainConfig(schedule="constant", learning_rate=0.1)
    assert {train.learning_rate_at(epoch, 10) for epoch in range(10)} == {0.1}


def during(train: TrainConfig, epoch: int, step: int) -> float:
    """Return the rate at a step of four, in a run of ten epochs."""
    return train.learning_rate_during(Clock(0, "train", epoch, 10, step, 4), 10)


@pytest.mark.parametrize("schedule", ["cosine", "seven-sixteenths", "steps", "constant"])
def test_these_schedules_stand_still_during_an_epoch(schedule: Schedule) -> None:
    train = TrainConfig(schedule=schedule)
    for epoch in range(10):
        assert during(train, epoch, 3) == during(train, epoch, 0)
        assert during(train, epoch, 0) == train.learning_rate_at(epoch, 10)


@pytest.mark.parametrize("schedule", ["cosine", "seven-sixteenths"])
def test_per_step_a_schedule_is_the_same_curve_in_finer_strokes(schedule: Schedule) -> None:
    coarse = TrainConfig(schedule=schedule)
    fine = TrainConfig.from_settings({"schedule": f"{schedule}-step"})
    for epoch in range(10):
        assert during(fine, epoch, 0) == during(coarse, epoch, 0)
        for step in range(4):
            forty = coarse.learning_rate_at(4 * epoch + step, 40)
            assert during(fine, epoch, step) == pytest.approx(forty, rel=1e-12)


@pytest.mark.parametrize(
    ("done", "share"),
    [(0, 0.05), (0.1, 0.55), (0.19, 1), (0.2, 1), (0.6, 0.5), (0.9, 0.125), (0.9999, 1e-3)],
)
def test_a_triangle_rises_for_a_fifth_of_the_run_and_falls_to_a_thousandth(
    done: float, share: float
) -> None:
    train = TrainConfig(schedule="triangle", learning_rate=0.2)
    assert train.learning_rate_at(30 * done, 30) == pytest.approx(0.2 * share)


def test_a_triangle_moves_with_every_step() -> None:
    train = TrainConfig(schedule="triangle", learning_rate=1.0)
    assert during(train, 7, 2) == train.learning_rate_at(7.5, 10) == (1 - 0.75) / 0.8


def test_steps_are_taken_after_their_milestones_and_multiply() -> None:
    train = TrainConfig(schedule="steps", learning_rate=1.0, milestones=(0.3, 0.7), factor=0.5)
    rates = [train.learning_rate_at(epoch, 10) for epoch in range(10)]
    assert rates == [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25]


@pytest.mark.parametrize("share", [-0.1, 1.5])
def test_a_milestone_is_a_share_of_the_run(share: float) -> None:
    with pytest.raises(ConfigError, match="milestones"):
        TrainConfig.from_settings({"milestones": [0.5, share]})


def test_defaults_are_the_papers() -> None:
    train = TrainConfig()
    assert (train.epochs, train.batch_size, train.learning_rate) == (1300, 256, 1e-3)
    assert (train.momentum, train.weight_decay, train.clip) == (0.9, 1e-3, 30)


def test_asking_for_a_gpu_that_is_not_there_says_so() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU, so the refusal cannot be seen here")
    with pytest.raises(ConfigError, match="no GPU"):
        choose_device("cuda")


def test_precision_is_what_was_asked_for() -> None:
    cpu = torch.device("cpu")
    assert choose_precision("fp32", cpu) == torch.float32
    assert choose_precision("bf16", cpu) == torch.bfloat16
    assert choose_precision("auto", cpu) in (torch.float32, torch.bfloat16)


@pytest.mark.parametrize(("epoch", "factor"), [(0, 1.0), (15, 0.6788), (25, 0.1951)])
def test_fixmatchs_schedule_ends_at_a_fifth(epoch: int, factor: float) -> None:
    config = TrainConfig(learning_rate=2.0, schedule="seven-sixteenths")
    assert config.learning_rate_at(epoch, 25) == pytest.approx(2 * factor, abs=2e-4)


@pytest.mark.parametrize("threads", ["auto", 1, 64])
def test_threads_are_auto_or_a_number(threads: object) -> None:
    train = TrainConfig.from_settings({"threads": threads})
    assert train.threads == threads
    assert train.threads_given == (None if threads == "auto" else threads)


@pytest.mark.parametrize("threads", [0, -1, True, 1.5, "2", "many", 10**6, [1]])
def test_other_threads_are_refused_in_one_sentence(threads: object) -> None:
    with pytest.raises(ConfigError, match=r"threads: expected auto, or a number .*1 to 1024"):
        TrainConfig.from_settings({"threads": threads})
