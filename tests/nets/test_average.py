"""The averaged network: weights lag behind, buffers do not, and it never trains."""

import torch
from torch import nn

from onesided.nets.average import AveragedNetwork
from onesided.nets.build import seeded

SAMPLES = torch.linspace(-2, 3, 16, dtype=torch.float64).reshape(8, 2)


def online() -> nn.Sequential:
    with seeded(0, "online"):
        return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).double()


def test_weights_are_averaged_over_three_steps() -> None:
    network = online()
    average = AveragedNetwork(network)
    expected = [p.clone() for p in network.parameters()]
    for _ in range(3):
        with torch.no_grad():
            for p in network.parameters():
                p.add_(1.0)
        average.follow(network, momentum=0.9)
        expected = [
            0.9 * e + 0.1 * p.detach() for e, p in zip(expected, network.parameters(), strict=True)
        ]
    for mine, value in zip(average.parameters(), expected, strict=True):
        assert torch.allclose(mine, value)


def test_buffers_are_taken_over_as_they_are() -> None:
    network = online()
    average = AveragedNetwork(network)
    network(SAMPLES)
    average.follow(network, momentum=0.9)
    for mine, theirs in zip(average.buffers(), network.buffers(), strict=True):
        assert torch.equal(mine, theirs)


def test_it_stays_in_evaluation_mode_when_its_owner_trains() -> None:
    owner = nn.ModuleDict({"average": AveragedNetwork(online())})
    owner.train()
    before = [buffer.clone() for buffer in owner.buffers()]
    owner["average"](SAMPLES)
    assert not any(module.training for module in owner["average"].modules())
    for old, new in zip(before, owner.buffers(), strict=True):
        assert torch.equal(old, new)


def test_it_asks_for_no_gradient() -> None:
    average = AveragedNetwork(online())
    assert not any(p.requires_grad for p in average.parameters())
    assert not average(SAMPLES).requires_grad
