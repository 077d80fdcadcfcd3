"""A pretrained network whose last blocks learn, and whose first ones never change."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from onesided.core.clock import Clock
from onesided.core.errors import ConfigError, Interrupted
from onesided.engine.fit import Watcher
from onesided.engine.optimise import build_optimizer, set_learning_rate
from onesided.engine.train_config import TrainConfig
from onesided.nets.build import BackboneConfig, build_backbone, load_initial_weights
from onesided.nets.efficientnet import BLOCKS, EfficientNetLite0
from onesided.run.config import RunConfig
from onesided.run.folder import SCORES
from onesided.run.load import LoadedData, load_data
from onesided.run.problem import build_problem
from onesided.run.training import train
from tests.run.running import run_in
from tests.run.test_embed import scores_again, scores_in

TUNED = 2
SETTINGS = {"name": "efficientnet_lite0", "resize": 32, "tune": TUNED}


def config(method: str = "teacher") -> RunConfig:
    data = {"name": "toy-images", "positives": 12, "unlabelled": 24}
    held_out = {"held_out_positives": 4, "held_out_unlabelled": 8}
    return RunConfig.from_settings(
        {
            "data": data | held_out,
            "method": {"name": method},
            "backbone": SETTINGS,
            "train": {"epochs": 2, "batch_size": 12, "learning_rate": 0.1, "device": "cpu"},
        }
    )


@pytest.fixture(scope="module")
def loaded() -> LoadedData:
    return load_data(config().data)


def backbone(settings: dict[str, object] | None = None) -> EfficientNetLite0:
    chosen = BackboneConfig.from_settings(settings or SETTINGS)
    built = build_backbone(chosen, (3, 16, 16), [0.5] * 3, [0.5] * 3)
    load_initial_weights(chosen, built)
    assert isinstance(built, EfficientNetLite0)
    return built


def is_tuned(name: str) -> bool:
    """Whether a tensor of the network is of its last blocks or of its last convolution."""
    part, *rest = name.split(".")
    return part == "head" or (part == "blocks" and int(rest[0]) >= BLOCKS - TUNED)


def test_only_the_last_blocks_change_in_training(loaded: LoadedData) -> None:
    method = train(build_problem(config(), loaded)).predictor.method
    assert isinstance(method, nn.Module)
    networks = [module for module in method.modules() if isinstance(module, EfficientNetLite0)]
    assert len(networks) == 2  # the second follows the first, and is what scores
    start = backbone().state_dict()
    for network in networks:
        after = network.state_dict()
        for name, value in start.items():
            assert torch.equal(after[name], value) == (not is_tuned(name)), name


@pytest.mark.parametrize("method", ["ce", "teacher"])
def test_a_saved_model_scores_as_the_trained_one(
    method: str, loaded: LoadedData, tmp_path: Path
) -> None:
    run_in(tmp_path / "run", config(method), loaded)
    expected, found = scores_in(tmp_path / "run"), scores_again(tmp_path / "run", loaded)
    assert np.allclose([found[name] for name in expected], list(expected.values()), atol=1e-5)


def test_a_run_resumes_to_the_bit(loaded: LoadedData, tmp_path: Path) -> None:
    left = [4]

    def stop(clock: Clock) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGTERM)

    run_in(tmp_path / "whole", config(), loaded)
    with pytest.raises(Interrupted):
        run_in(tmp_path / "broken", config(), loaded, watcher=Watcher(step=stop))
    run_in(tmp_path / "broken", config(), loaded)
    for name in ("model.safetensors", SCORES):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "broken" / name).read_bytes()


def test_fixed_parts_are_evaluated_in_every_mode() -> None:
    network = backbone().train()
    assert not network.stem.training
    modes = [block.training for block in network.blocks]
    assert modes == [False] * (BLOCKS - TUNED) + [True] * TUNED
    assert network.head.training
    assert not any(module.training for module in network.eval().modules())


def test_without_the_setting_everything_learns() -> None:
    network = backbone({"name": "efficientnet_lite0", "resize": 32}).train()
    assert all(module.training for module in network.modules())
    assert all(parameter.requires_grad for parameter in network.parameters())


@pytest.mark.parametrize("decay", ["all", "weights"])
def test_pretrained_parameters_learn_at_a_tenth_of_the_rate(decay: str) -> None:
    network = nn.Sequential(backbone(), nn.Linear(1280, 2))
    settings = TrainConfig.from_settings({"decay": decay})
    optimizer = build_optimizer(network, settings)
    set_learning_rate(optimizer, 0.5)
    rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    learning = {name: p for name, p in network.named_parameters() if p.requires_grad}
    assert len(rates) == len(learning)
    for name, parameter in learning.items():
        assert rates[id(parameter)] == pytest.approx(0.05 if name.startswith("0.") else 0.5), name
    for group in optimizer.param_groups:
        spared = decay == "weights" and group["params"][0].ndim == 1
        assert group["weight_decay"] == (0.0 if spared else settings.weight_decay)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "small", "tune": 2}, "tune is for a pretrained efficientnet_lite0"),
        ({**SETTINGS, "weights": "none"}, "tune is for a pretrained efficientnet_lite0"),
        ({**SETTINGS, "freeze": True}, "choose one of them"),
        ({**SETTINGS, "tune": BLOCKS + 1}, "tune"),
    ],
)
def test_what_cannot_be_tuned_is_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        BackboneConfig.from_settings(settings)


def test_earlier_runs_keep_their_identity_and_others_get_one_of_their_own() -> None:
    plain = BackboneConfig(name="efficientnet_lite0")
    assert "tune" not in plain.identity()
    identities = [BackboneConfig(name="efficientnet_lite0", tune=n).identity() for n in (1, 2)]
    assert identities[0] != identities[1]
    assert "tuned from block 15 of 16 on" in BackboneConfig(**SETTINGS).in_words((3, 16, 16))
