from copy import deepcopy
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from onesided.core.errors import ContractError
from onesided.nets.build import seeded
from onesided.nets.heads import projector
from onesided.nets.mlp import MLP
from onesided.nets.momentum import AveragedNetwork, TargetNetwork
from onesided.nets.standardise import Standardise


def online_modules(seed: int = 0) -> tuple[MLP, nn.Sequential]:
    torch.manual_seed(seed)
    backbone = MLP(Standardise([0.0] * 3, [1.0] * 3), hidden=16)
    return backbone, projector(16, 12, 8)


def vectors(count: int = 6) -> Tensor:
    return torch.randn(count, 3, generator=torch.Generator().manual_seed(1))


class Learner(nn.Module):
    """Online backbone and projector beside their target, as a method holds them."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone, self.projector = online_modules()
        self.target = TargetNetwork(self.backbone, self.projector)

    def forward(self, samples: Tensor) -> Tensor:
        query: Tensor = self.projector(self.backbone(samples))
        self.target.follow(self.backbone, self.projector, momentum=0.9)
        loss: Tensor = (query - self.target(samples)).square().mean()
        return loss


def test_the_copy_starts_equal_and_is_not_the_same() -> None:
    backbone, head = online_modules()
    target = TargetNetwork(backbone, head)
    expected = deepcopy(nn.Sequential(backbone, head))(vectors())
    torch.testing.assert_close(target(vectors()), expected)
    with torch.no_grad():
        next(backbone.parameters()).zero_()
    assert next(target.parameters()).abs().sum() > 0


@pytest.mark.parametrize("momentum", [0.0, 0.3, 0.99, 1.0])
def test_following_equals_the_average_tensor_by_tensor(momentum: float) -> None:
    target = TargetNetwork(*online_modules(0)).double()
    others = [module.double() for module in online_modules(1)]
    before = [parameter.clone() for parameter in target.parameters()]
    target.follow(*others, momentum=momentum)
    theirs = [parameter for module in others for parameter in module.parameters()]
    for mine, old, new in zip(target.parameters(), before, theirs, strict=True):
        torch.testing.assert_close(mine, momentum * old + (1 - momentum) * new)


def test_repeated_following_comes_closer_at_the_pace_of_the_momentum() -> None:
    target = TargetNetwork(*online_modules(0)).double()
    others = [module.double() for module in online_modules(1)]
    weight = target.get_parameter("copies.0.layers.0.weight")
    goal = others[0].get_parameter("layers.0.weight")
    distance = (weight - goal).norm().item()
    for _ in range(10):
        target.follow(*others, momentum=0.9)
    assert (weight - goal).norm().item() == pytest.approx(distance * 0.9**10)


def test_running_statistics_come_from_the_targets_own_passes() -> None:
    backbone, head = online_modules()
    target = TargetNetwork(backbone, head)
    for _ in range(5):
        backbone(vectors() + 10.0)
    target.follow(backbone, head, momentum=0.0)
    assert target.get_buffer("copies.0.layers.1.num_batches_tracked").item() == 0
    assert not target.get_buffer("copies.0.layers.1.running_mean").any()
    target.train()(vectors())
    assert target.get_buffer("copies.0.layers.1.num_batches_tracked").item() == 1
    assert target.get_buffer("copies.0.layers.1.running_mean").any()


def test_the_target_has_no_gradient_and_is_not_optimised() -> None:
    learner = Learner()
    loss = learner(vectors())
    loss.backward()
    assert all(parameter.grad is None for parameter in learner.target.parameters())
    assert not learner.target(vectors()).requires_grad
    learned = [name for name, value in learner.named_parameters() if value.requires_grad]
    assert learned
    assert not any(name.startswith("target.") for name in learned)


def test_gradients_of_the_online_side_survive_following() -> None:
    learner = Learner()
    learner(vectors()).backward()
    gradients = [p.grad for p in learner.parameters() if p.requires_grad]
    assert all(gradient is not None for gradient in gradients)


def test_the_target_is_in_the_saved_state_and_stays_frozen_when_loaded() -> None:
    learner, other = Learner(), Learner()
    with torch.no_grad():
        for parameter in learner.target.parameters():
            parameter.add_(1.0)
    other.load_state_dict(learner.state_dict())
    for mine, loaded in zip(learner.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, loaded)
    assert not any(parameter.requires_grad for parameter in other.target.parameters())


def test_distributed_training_does_not_wait_for_the_target(tmp_path: Path) -> None:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    try:
        network = DistributedDataParallel(Learner())
        # A parameter that never gets its gradient makes the second pass fail.
        for _ in range(3):
            network(vectors()).backward()
    finally:
        dist.destroy_process_group()


def test_following_another_network_is_refused() -> None:
    backbone, head = online_modules()
    target = TargetNetwork(backbone, head)
    with pytest.raises(ContractError, match="copied from"):
        target.follow(backbone, momentum=0.9)
    with pytest.raises(ContractError, match="same order"):
        target.follow(head, backbone, momentum=0.9)


@pytest.mark.parametrize("momentum", [-0.1, 1.1, float("nan")])
def test_a_momentum_outside_zero_and_one_is_refused(momentum: float) -> None:
    backbone, head = online_modules()
    with pytest.raises(ContractError, match="between 0 and 1"):
        TargetNetwork(backbone, head).follow(backbone, head, momentum=momentum)


def test_a_target_of_nothing_is_refused() -> None:
    with pytest.raises(ContractError, match="at least one module"):
        TargetNetwork()


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
