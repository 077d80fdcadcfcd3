"""The schedule's published numbers, and what the machine is asked to do."""

import pytest
import torch

from onesided.core.errors import ConfigError
from onesided.engine.train_config import TrainConfig, choose_device, choose_precision


@pytest.mark.parametrize(
    ("epoch", "rate"), [(0, 1e-3), (325, 8.536998e-4), (650, 5.005e-4), (1299, 1.001459e-6)]
)
def test_the_cosine_passes_through_the_published_numbers(epoch: int, rate: float) -> None:
    assert TrainConfig().learning_rate_at(epoch, 1300) == pytest.approx(rate, rel=1e-6)


def test_a_constant_schedule_is_constant() -> None:
    train = TrainConfig(schedule="constant", learning_rate=0.1)
    assert {train.learning_rate_at(epoch, 10) for epoch in range(10)} == {0.1}


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
