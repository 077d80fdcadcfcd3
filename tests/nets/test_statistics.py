"""A glance: the features of train mode, and a network that is none the wiser."""

import pytest
import torch

from onesided.nets.build import BackboneConfig, build_backbone
from onesided.nets.standardise import Backbone
from onesided.nets.statistics import glance


def network(shape: tuple[int, ...]) -> Backbone:
    config = BackboneConfig(width=0.125)
    return build_backbone(config, shape, [0.5] * shape[0], [0.25] * shape[0])


@pytest.mark.parametrize("shape", [(3, 8, 8), (5,)], ids=["images", "vectors"])
def test_a_glance_changes_nothing_and_sees_what_training_sees(shape: tuple[int, ...]) -> None:
    backbone = network(shape).train()
    samples = torch.rand(6, *shape, generator=torch.Generator().manual_seed(0))
    before = {name: value.clone() for name, value in backbone.state_dict().items()}
    seen = glance(backbone, samples)
    assert all(torch.equal(value, before[name]) for name, value in backbone.state_dict().items())
    assert not seen.requires_grad
    assert torch.equal(seen, backbone(samples).detach())
    after = backbone.state_dict()
    assert any(not torch.equal(after[name], before[name]) for name in after), "training remembers"
