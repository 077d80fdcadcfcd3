import threading

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from onesided.core.config import Config
from onesided.core.errors import ConfigError, ContractError
from onesided.core.rng import generator
from onesided.nets.build import BackboneConfig, build_backbone, drawing_from, initialise, seeded
from onesided.nets.heads import predictor, projector
from onesided.nets.mlp import MLP
from onesided.nets.momentum import TargetNetwork
from onesided.nets.resnet import PreActivationResNet
from onesided.nets.small import SmallNetwork
from onesided.nets.standardise import Backbone

NAMES = ["small", "resnet18", "mlp"]


def build(settings: dict[str, object], shape: tuple[int, ...], *, seed: int = 0) -> Backbone:
    config = BackboneConfig.from_settings(settings)
    numbers = torch.full((shape[0],), 0.5)
    return build_backbone(config, shape, numbers, numbers, generator(seed, "backbone"))


def same_weights(first: nn.Module, second: nn.Module) -> bool:
    mine, theirs = first.state_dict(), second.state_dict()
    return mine.keys() == theirs.keys() and all(
        torch.equal(value, theirs[name]) for name, value in mine.items()
    )


def test_auto_takes_an_mlp_for_vectors_and_the_small_network_for_images() -> None:
    assert isinstance(build({}, (7,)), MLP)
    assert isinstance(build({}, (3, 16, 16)), SmallNetwork)


def test_names_mean_what_they_say() -> None:
    shape = (3, 8, 8)
    assert isinstance(build({"name": "mlp"}, shape), MLP)
    eighteen, thirty_four = (build({"name": f"resnet{n}"}, shape) for n in (18, 34))
    assert isinstance(eighteen, PreActivationResNet)
    assert isinstance(thirty_four, PreActivationResNet)
    assert [len(list(stage.children())) for stage in thirty_four.stages] == [3, 4, 6, 3]
    assert [len(list(stage.children())) for stage in eighteen.stages] == [2, 2, 2, 2]


def test_width_multiplies_what_comes_out() -> None:
    assert build({"width": 0.5}, (3, 8, 8)).width == 128
    assert build({"width": 2}, (5,)).width == 512


@pytest.mark.parametrize("name", ["small", "mlp"])
def test_normalisation_none_leaves_no_batchnorm(name: str) -> None:
    network = build({"name": name, "normalisation": "none"}, (3, 8, 8))
    assert not any("running_mean" in key for key in network.state_dict())


@pytest.mark.parametrize("name", NAMES)
def test_initial_weights_are_a_function_of_the_seed_alone(name: str) -> None:
    torch.manual_seed(1)
    first = build({"name": name}, (3, 8, 8), seed=5)
    torch.manual_seed(2)
    again = build({"name": name}, (3, 8, 8), seed=5)
    other = build({"name": name}, (3, 8, 8), seed=6)
    assert same_weights(first, again)
    assert not same_weights(first, other)


@pytest.mark.parametrize("name", NAMES)
def test_building_leaves_the_global_generator_untouched(name: str) -> None:
    before = torch.get_rng_state()
    build({"name": name}, (3, 8, 8))
    assert torch.equal(torch.get_rng_state(), before)


def test_heads_built_inside_seeded_depend_on_seed_and_place() -> None:
    def heads(seed: int, place: str) -> nn.Sequential:
        with seeded(seed, place):
            return nn.Sequential(projector(8, 16, 4), predictor(4, 8))

    before = torch.get_rng_state()
    assert same_weights(heads(1, "heads"), heads(1, "heads"))
    assert not same_weights(heads(1, "heads"), heads(2, "heads"))
    assert not same_weights(heads(1, "heads"), heads(1, "other heads"))
    assert torch.equal(torch.get_rng_state(), before)


def test_the_generator_is_given_back_after_an_error() -> None:
    before = torch.get_rng_state()

    def fail() -> None:
        with seeded(0, "x"):
            torch.rand(3)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert torch.equal(torch.get_rng_state(), before)


def test_a_generator_keeps_the_state_it_has_at_the_end_of_the_block() -> None:
    ours, reference = generator(3), generator(3)
    with drawing_from(ours):
        inside = torch.rand(4)
    expected = torch.rand(8, generator=reference)
    assert torch.equal(torch.cat([inside, torch.rand(4, generator=ours)]), expected)


def test_layers_are_built_on_the_cpu_whatever_the_default_device() -> None:
    with torch.device("meta"), seeded(0, "x"):
        layer = nn.Linear(2, 2)
    assert layer.weight.device.type == "cpu"


def test_threads_wait_for_each_other() -> None:
    entered = threading.Event()

    def enter() -> None:
        with seeded(2, "other thread"):
            entered.set()

    other = threading.Thread(target=enter)
    with seeded(1, "this thread"):
        other.start()
        assert not entered.wait(0.1)
    other.join(timeout=5)
    assert entered.is_set()


def test_blocks_may_be_nested() -> None:
    with seeded(1, "outer"):
        expected = torch.rand(2)
    with seeded(1, "outer"):
        with seeded(2, "inner"):
            torch.rand(5)
        assert torch.equal(torch.rand(2), expected)


def test_a_network_to_be_loaded_needs_no_generator_and_leaves_the_global_one() -> None:
    before = torch.get_rng_state()
    build_backbone(BackboneConfig(), (5,), [0.0] * 5, [1.0] * 5)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", NAMES)
def test_initialise_resets_everything_but_the_preprocessing(name: str) -> None:
    network = build({"name": name}, (3, 8, 8))
    network(torch.rand(4, 3, 8, 8))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(100.0)
    statistics = network.standardise.state_dict()
    before = torch.get_rng_state()
    initialise(network, generator(7))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(parameter.abs().max() < 50 for parameter in network.parameters())
    means = [value for key, value in network.state_dict().items() if key.endswith("running_mean")]
    assert means
    assert not any(value.any() for value in means)
    assert all(torch.equal(v, statistics[k]) for k, v in network.standardise.state_dict().items())


def test_initialise_depends_on_its_generator_and_not_on_what_was_learned() -> None:
    first = nn.Sequential(build({}, (5,), seed=1), projector(256, 16, 8))
    second = nn.Sequential(build({}, (5,), seed=2), projector(256, 16, 8))
    for network in (first, second):
        initialise(network, generator(7))
    assert same_weights(first, second)


class Prototype(nn.Module):
    """A third party's layer without reset_parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(2))

    def forward(self, samples: Tensor) -> Tensor:
        return samples * self.weight


def test_a_layer_that_cannot_be_drawn_anew_is_named() -> None:
    with pytest.raises(ContractError, match="Prototype has weights but no reset_parameters"):
        initialise(nn.Sequential(nn.Linear(2, 2), Prototype()), generator(0))


def test_a_target_built_from_a_seeded_network_draws_nothing() -> None:
    network = build({}, (5,))
    before = torch.get_rng_state()
    target = TargetNetwork(network)
    assert torch.equal(torch.get_rng_state(), before)
    assert same_weights(target.copies[0], network)


@pytest.mark.parametrize("shape", [(3, 3, 8), (1, 8, 2), (1, 1, 1)])
def test_images_below_four_pixels_are_refused(shape: tuple[int, int, int]) -> None:
    with pytest.raises(ConfigError, match="at least 4x4 pixels"):
        build({}, shape)


@pytest.mark.parametrize("shape", [(8, 8), (1, 2, 8, 8), (3, 0, 8)])
def test_shapes_that_are_neither_image_nor_vector_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match="channels, height, width"):
        build({}, shape)


def test_convolutions_of_vectors_are_refused() -> None:
    with pytest.raises(ConfigError, match="resnet18 takes images"):
        build({"name": "resnet18"}, (5,))


def test_statistics_of_another_number_of_channels_are_refused() -> None:
    with pytest.raises(ConfigError, match="3 channels"):
        build_backbone(BackboneConfig(), (3, 8, 8), [0.5], [0.5], generator(0))


@pytest.mark.parametrize("settings", [{"width": 0.5}, {"normalisation": "none"}])
def test_the_published_network_is_not_changed_silently(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="resnet18 is the published network"):
        BackboneConfig.from_settings({"name": "resnet18", **settings})


@pytest.mark.parametrize("settings", [{"name": "vgg"}, {"width": 0}, {"normalisation": "layer"}])
def test_settings_that_cannot_be_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        BackboneConfig.model_validate(settings)


def test_every_setting_is_documented() -> None:
    assert issubclass(BackboneConfig, Config)
    assert all(field.description for field in BackboneConfig.model_fields.values())
