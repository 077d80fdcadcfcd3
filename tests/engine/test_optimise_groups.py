"""Weight decay and Nesterov momentum."""

import pytest
import torch
from torch import nn

from onesided.engine.optimise import build_optimizer
from onesided.engine.train_config import TrainConfig


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_biases_and_batch_norm_can_be_spared_from_decay(optimizer: str) -> None:
    train = TrainConfig.from_settings({"optimizer": optimizer, "decay": "weights"})
    decaying, spared = build_optimizer(network(), train).param_groups
    assert [p.ndim for p in decaying["params"]] == [2]
    assert [p.ndim for p in spared["params"]] == [1, 1, 1]
    assert (decaying["weight_decay"], spared["weight_decay"]) == (train.weight_decay, 0.0)


def test_by_default_everything_decays_alike() -> None:
    (group,) = build_optimizer(network(), TrainConfig()).param_groups
    assert len(group["params"]) == 4


def test_nesterov_is_on_only_where_asked_for_and_where_there_is_momentum() -> None:
    for momentum, wanted, expected in ((0.9, True, True), (0.0, True, False), (0.9, False, False)):
        made = build_optimizer(network(), TrainConfig(momentum=momentum, nesterov=wanted))
        assert isinstance(made, torch.optim.SGD)
        assert made.param_groups[0]["nesterov"] == expected
