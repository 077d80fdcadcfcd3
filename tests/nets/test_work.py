"""The multiplications of a network, beside torch's own counter."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from onesided.nets.build import BackboneConfig, build_backbone
from onesided.nets.work import multiplications


def counted_by_torch(backbone: torch.nn.Module, shape: tuple[int, ...]) -> float:
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        backbone.eval()(torch.zeros(1, *shape))
    operations: int = counter.get_total_flops()
    return operations / 2  # a sum for every product


@pytest.mark.parametrize(
    ("name", "shape"),
    [("mlp", (30,)), ("resnet18", (3, 16, 16)), ("efficientnet_lite0", (3, 32, 32))],
)
def test_torch_counts_the_same(name: str, shape: tuple[int, ...]) -> None:
    settings = BackboneConfig.from_settings({"name": name, "weights": "none"})
    backbone = build_backbone(settings, shape, [0.5] * shape[0], [0.2] * shape[0])
    assert multiplications(backbone, shape) == counted_by_torch(backbone, shape)


def test_only_the_computed_first_layer_of_the_small_network_is_not_counted() -> None:
    shape = (3, 32, 32)
    backbone = build_backbone(BackboneConfig(), shape, [0.5] * 3, [0.2] * 3)
    first = 24 * 3 * 4 * 4 * 16 * 16  # filters, kernels of 4x4, maps of 16x16
    assert multiplications(backbone, shape) == counted_by_torch(backbone, shape) - first


def test_counting_changes_nothing() -> None:
    backbone = build_backbone(BackboneConfig(width=0.125), (3, 8, 8), [0.5] * 3, [0.2] * 3)
    before = {name: value.clone() for name, value in backbone.state_dict().items()}
    random = torch.get_rng_state()
    multiplications(backbone, (3, 8, 8))
    assert backbone.training
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(before[name], value) for name, value in backbone.state_dict().items())
    assert not any(layer._forward_hooks for layer in backbone.modules())
