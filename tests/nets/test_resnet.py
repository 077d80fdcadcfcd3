from collections.abc import Sequence

import pytest
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from onesided.nets.resnet import PreActivationResNet, resnet18, resnet34
from onesided.nets.standardise import Standardise


def standardise(channels: int = 3) -> Standardise:
    return Standardise([0.4] * channels, [0.25] * channels)


def images(channels: int = 3, size: int = 8, *, count: int = 4) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.rand(count, channels, size, size, generator=generator)


def expected_parameters(channels: int, blocks: Sequence[int]) -> int:
    total = 9 * channels * 64 + 2 * 64
    before = 64
    for count, width in zip(blocks, (64, 128, 256, 512), strict=True):
        for block in range(count):
            inputs = before if block == 0 else width
            total += 2 * inputs + 9 * inputs * width + 2 * width + 9 * width * width
            total += inputs * width if inputs != width else 0
        before = width
    return total


def count_parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize("channels", [1, 3, 6])
def test_parameters_are_those_of_the_published_shape(channels: int) -> None:
    with torch.device("meta"):
        network18, network34 = resnet18(standardise(channels)), resnet34(standardise(channels))
    assert count_parameters(network18) == expected_parameters(channels, (2, 2, 2, 2))
    assert count_parameters(network34) == expected_parameters(channels, (3, 4, 6, 3))


def test_resnet18_with_its_classifier_has_eleven_million_parameters() -> None:
    with_classifier = nn.Sequential(resnet18(standardise()), nn.Linear(512, 2))
    assert count_parameters(with_classifier) == 11_166_144 + 512 * 2 + 2


def slow_forward(network: PreActivationResNet, samples: Tensor) -> Float[Tensor, "b 512"]:
    """ResNet-18 in train mode, written out from the tensors of its state."""
    state = network.state_dict()

    def activate(maps: Tensor, name: str) -> Tensor:
        mean = maps.mean(dim=(0, 2, 3), keepdim=True)
        variance = ((maps - mean) ** 2).mean(dim=(0, 2, 3), keepdim=True)
        scale, shift = state[f"{name}.weight"], state[f"{name}.bias"]
        normal = (maps - mean) / (variance + 1e-5).sqrt()
        activated: Tensor = (normal * scale[:, None, None] + shift[:, None, None]).clamp(min=0)
        return activated

    maps = F.conv2d((samples - 0.4) / 0.25, state["stem.0.weight"], padding=1)
    maps = activate(maps, "stem.1")
    for stage in range(4):
        for block in range(2):
            stride = 2 if stage > 0 and block == 0 else 1
            name = f"stages.{stage}.{block}"
            activated = activate(maps, f"{name}.norm1")
            inner = F.conv2d(activated, state[f"{name}.conv1.weight"], stride=stride, padding=1)
            inner = activate(inner, f"{name}.norm2")
            residual = F.conv2d(inner, state[f"{name}.conv2.weight"], padding=1)
            if stride == 2:
                maps = F.conv2d(activated, state[f"{name}.shortcut.weight"], stride=2)
            maps = maps + residual
    return maps.mean(dim=(2, 3))


def test_network_equals_the_written_out_formula() -> None:
    network = resnet18(standardise()).double()
    samples = images().double()
    expected = slow_forward(network, samples)
    # Statistics are float32 numbers, so 0.4 is met to seven digits only.
    torch.testing.assert_close(network(samples), expected, rtol=1e-5, atol=1e-5)


def test_nothing_normalises_or_rectifies_after_the_last_block() -> None:
    network = resnet18(standardise()).double().eval()
    samples = images().double()
    weight = network.get_parameter("stages.3.1.conv2.weight")
    outputs = []
    with torch.no_grad():
        once = weight.clone()
        for factor in (0.0, 1.0, 5.0):
            weight.copy_(factor * once)
            outputs.append(network(samples))
    # Only a sum without BatchNorm and ReLU behind it is linear in this weight.
    torch.testing.assert_close(outputs[2] - outputs[0], 5 * (outputs[1] - outputs[0]))
    assert (outputs[1] < 0).any()


def test_stem_keeps_the_resolution_and_three_stages_halve_it() -> None:
    network = resnet18(standardise()).eval()
    maps = network.stem(images(size=32))
    assert maps.shape[2:] == (32, 32)
    assert (maps >= 0).all()
    sides = []
    for stage in network.stages:
        maps = stage(maps)
        sides.append(maps.shape[2])
    assert sides == [32, 16, 8, 4]


@pytest.mark.parametrize(("channels", "size"), [(1, 8), (3, 32), (6, 128), (3, 4), (1, 9)])
def test_any_channels_and_sizes_give_512_features(channels: int, size: int) -> None:
    network = resnet18(standardise(channels)).eval()
    with torch.no_grad():
        assert network(images(channels, size, count=1)).shape == (1, 512)


def test_convolutions_start_as_kaiming_normal_by_fan_out() -> None:
    torch.manual_seed(0)
    network = resnet18(standardise())
    convolutions = [layer for layer in network.modules() if isinstance(layer, nn.Conv2d)]
    assert len(convolutions) == 1 + 16 + 3
    for layer in convolutions:
        fan_out = layer.out_channels * layer.kernel_size[0] ** 2
        assert layer.weight.std().item() == pytest.approx((2 / fan_out) ** 0.5, rel=0.06)
        assert layer.bias is None


def test_cost_is_what_the_module_says() -> None:
    network = resnet18(standardise()).eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network(images(size=32, count=1))
    assert counter.get_total_flops() / 2e9 == pytest.approx(0.56, abs=0.01)
