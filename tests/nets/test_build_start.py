"""Initial weights of a backbone by its settings."""

import sys
from pathlib import Path

import pytest
from safetensors.torch import save_file

from onesided.core.errors import ConfigError
from onesided.nets.build import BackboneConfig, load_initial_weights
from onesided.nets.efficientnet import EfficientNetLite0
from onesided.nets.pretrained import PACKAGE
from tests.nets.test_build import build, same_weights


def weights_file(path: Path, settings: dict[str, object], shape: tuple[int, ...]) -> Path:
    save_file(build(settings, shape, seed=9).state_dict(), path)
    return path


def test_a_network_starts_from_the_file_it_is_given(tmp_path: Path) -> None:
    shape = (3, 8, 8)
    path = weights_file(tmp_path / "mine.safetensors", {"width": 0.125}, shape)
    config = BackboneConfig(width=0.125, weights=str(path))
    network = build(config.model_dump(), shape, seed=1)
    load_initial_weights(config, network)
    assert same_weights(network, build({"width": 0.125}, shape, seed=9))


def test_without_a_file_a_network_keeps_what_was_drawn() -> None:
    network = build({}, (5,), seed=1)
    load_initial_weights(BackboneConfig(), network)
    assert same_weights(network, build({}, (5,), seed=1))


@pytest.mark.parametrize("channels", [1, 3, 6])
def test_efficientnet_starts_from_published_weights_by_itself(channels: int) -> None:
    config = BackboneConfig(name="efficientnet_lite0")
    network = build(config.model_dump(), (channels, 8, 8))
    load_initial_weights(config, network)
    assert isinstance(network, EfficientNetLite0)
    assert network.size == (96, 96)
    assert network.get_buffer("head.1.running_var").std() > 0


def test_from_scratch_efficientnet_needs_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, PACKAGE, None)
    assert BackboneConfig(name="efficientnet_lite0", weights="none").weights_file() is None
    with pytest.raises(ConfigError, match="not installed"):
        BackboneConfig(name="efficientnet_lite0").weights_file()


def test_a_frozen_network_is_learned_on_by_an_mlp() -> None:
    frozen = BackboneConfig(name="efficientnet_lite0", freeze=True)
    assert frozen.learner() == BackboneConfig(name="mlp")
    whole = BackboneConfig(name="resnet18")
    assert whole.learner() is whole


def test_a_backbone_without_weights_cannot_be_frozen() -> None:
    with pytest.raises(ConfigError, match="needs pretrained weights"):
        BackboneConfig.from_settings({"freeze": True})
    assert BackboneConfig(freeze=True, weights="mine.safetensors")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "resnet18", "weights": "pretrained"}, "no published weights for resnet18"),
        ({"name": "small", "resize": 64}, "resize is a setting of efficientnet_lite0"),
        ({"name": "efficientnet_lite0", "width": 2}, "efficientnet_lite0 is the published"),
        ({"name": "efficientnet_lite0", "layers": "several"}, "for a frozen efficientnet_lite0"),
        ({"name": "resnet18", "layers": "several"}, "for a frozen efficientnet_lite0"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(
    settings: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        BackboneConfig.from_settings(settings)


def test_several_layers_are_refused_where_a_choice_takes_another_network() -> None:
    for shape in ((3, 8, 8), (5,)):
        with pytest.raises(ConfigError, match="for a frozen efficientnet_lite0"):
            build({"layers": "several"}, shape)


def test_runs_without_given_weights_keep_the_identity_they_always_had() -> None:
    identity = BackboneConfig(width=0.5).identity()
    assert identity == {"name": "auto", "width": 0.5, "normalisation": "batch"}


def test_a_file_is_part_of_the_identity_by_its_content(tmp_path: Path) -> None:
    one = weights_file(tmp_path / "one.safetensors", {}, (5,))
    two = tmp_path / "two.safetensors"
    two.write_bytes(one.read_bytes())
    identities = [BackboneConfig(weights=str(path)).identity() for path in (one, two)]
    assert identities[0] == identities[1]
    two.write_bytes(one.read_bytes() + b" ")
    assert BackboneConfig(weights=str(two)).identity() != identities[0]
    assert BackboneConfig(weights=str(one), freeze=True).identity() != identities[0]


def test_what_is_left_to_choice_is_written_down() -> None:
    config = BackboneConfig(name="efficientnet_lite0").for_samples((3, 32, 32))
    assert config.resize == 96
    assert config.for_samples((3, 64, 64)).resize == 96
    assert BackboneConfig().for_samples((3, 32, 32)) == BackboneConfig()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "auto"),
        ({"weights": "a/mine.safetensors"}, "auto with weights of mine.safetensors"),
        (
            {"name": "efficientnet_lite0", "freeze": True},
            "efficientnet_lite0 with weights of ImageNet at 96x96 pixels, frozen under a head",
        ),
        (
            {"name": "efficientnet_lite0", "freeze": True, "layers": "several"},
            "efficientnet_lite0 with weights of ImageNet at 96x96 pixels, features of its last and "
            "of three middle layers, frozen under a head",
        ),
    ],
)
def test_the_backbone_is_described_in_a_few_words(settings: dict[str, object], words: str) -> None:
    assert BackboneConfig.from_settings(settings).in_words((3, 32, 32)) == words


@pytest.mark.parametrize(
    ("channels", "words"),
    [
        (1, "pixels, grey as three equal colours"),
        (3, "pixels"),
        (4, "pixels, 4 channels as grey"),
        (6, "pixels, the mean of 2 stacked RGB images"),
    ],
)
def test_what_is_done_with_channels_is_said(channels: int, words: str) -> None:
    said = BackboneConfig(name="efficientnet_lite0").in_words((channels, 32, 32))
    assert said.endswith(f"at 96x96 {words}")
