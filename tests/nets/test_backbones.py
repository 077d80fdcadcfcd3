"""What holds for every backbone."""

import jaxtyping
import pytest
import torch
from torch import Tensor, nn

from onesided.core.rng import generator
from onesided.nets.build import BackboneConfig, build_backbone
from onesided.nets.standardise import Backbone

KINDS = [
    ("mlp", "batch"),
    ("mlp", "none"),
    ("small", "batch"),
    ("small", "none"),
    ("resnet18", "batch"),
]
every_backbone = pytest.mark.parametrize(("name", "normalisation"), KINDS)

MANY = 64
"""As many small images as make the wide layers take Winograd's form."""
few_and_many = pytest.mark.parametrize("count", [4, MANY])


def build(name: str, normalisation: str, *, seed: int = 0, mean: float = 0.4) -> Backbone:
    config = BackboneConfig.from_settings({"name": name, "normalisation": normalisation})
    statistics = ([mean] * 3, [0.25] * 3)
    return build_backbone(config, (3, 8, 8), *statistics, generator(seed, "backbone"))


def images(count: int = 4) -> Tensor:
    return torch.rand(count, 3, 8, 8, generator=torch.Generator().manual_seed(1))


@every_backbone
def test_width_is_what_comes_out(name: str, normalisation: str) -> None:
    network = build(name, normalisation)
    assert network(images()).shape == (4, network.width)
    assert network.normalisation == normalisation


@every_backbone
def test_a_saved_model_says_the_same_after_loading(name: str, normalisation: str) -> None:
    network = build(name, normalisation)
    network(images())
    other = build(name, normalisation, seed=1, mean=0.0)
    other.load_state_dict(network.state_dict())
    assert "standardise.mean" in network.state_dict()
    assert "standardise.std" in network.state_dict()
    assert torch.equal(network.eval()(images()), other.eval()(images()))


@every_backbone
def test_preprocessing_is_part_of_the_network(name: str, normalisation: str) -> None:
    network = build(name, normalisation).eval()
    shifted = build(name, normalisation, mean=0.5).eval()
    torch.testing.assert_close(network(images()), shifted(images() + 0.1), rtol=1e-3, atol=1e-3)
    assert not torch.allclose(network(images()), shifted(images()), rtol=1e-3, atol=1e-3)


@every_backbone
def test_inference_of_a_sample_ignores_its_batch(name: str, normalisation: str) -> None:
    network = build(name, normalisation).double()
    samples = images().double()
    network(samples)
    network.eval()
    together = network(samples)
    alone = torch.cat([network(samples[row : row + 1]) for row in range(len(samples))])
    torch.testing.assert_close(together, alone)
    assert torch.equal(network(samples), together)


@every_backbone
def test_double_precision_stays_double(name: str, normalisation: str) -> None:
    network = build(name, normalisation).double()
    assert network(images()).dtype == torch.float64


@every_backbone
def test_channels_last_changes_the_layout_and_not_the_result(name: str, normalisation: str) -> None:
    network = build(name, normalisation).double().eval()
    expected = network(images().double())
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    samples = images().double().to(memory_format=torch.channels_last)
    torch.testing.assert_close(network(samples), expected)


@pytest.mark.parametrize("name", ["small", "resnet18"])
def test_many_images_reach_the_form_of_wide_layers(
    name: str, in_winograds_form: list[torch.Size]
) -> None:
    build(name, "batch")(images(MANY))
    assert in_winograds_form


@few_and_many
@pytest.mark.parametrize("name", ["small", "resnet18"])
def test_no_layer_falls_out_of_channels_last(name: str, count: int) -> None:
    network = build(name, "batch")
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    lost: list[str] = []

    def watch(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        if output.ndim == 4 and not output.is_contiguous(memory_format=torch.channels_last):
            lost.append(type(layer).__name__)

    for layer in network.modules():
        layer.register_forward_hook(watch)
    network(images(count).to(memory_format=torch.channels_last))
    assert lost == []


@every_backbone
def test_half_precision_trains(name: str, normalisation: str) -> None:
    network = build(name, normalisation)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        features = network(images())
    features.float().square().mean().backward()
    gradients = [parameter.grad for parameter in network.parameters()]
    assert all(gradient is not None and gradient.isfinite().all() for gradient in gradients)
    exact = build(name, normalisation)(images())
    torch.testing.assert_close(features.float(), exact, rtol=0.1, atol=0.1)


@few_and_many
@pytest.mark.parametrize("name", ["small", "resnet18"])
def test_compilation_traces_one_graph(
    name: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Checks of shapes at run time are Python that no compiler can follow.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    network = build(name, "batch").eval()
    compiled = torch.compile(network, backend="eager", fullgraph=True)
    seen = compiled(images(count))
    monkeypatch.setenv("ONESIDED_CONVOLUTIONS", "direct")  # what the compiler saw of them
    torch.testing.assert_close(seen, network(images(count)))
