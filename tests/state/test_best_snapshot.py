"""The best snapshot: kept, given back, in the checkpoint."""

import math

import pytest
import torch
from torch import nn

from onesided.core.errors import ContractError
from onesided.state.best_snapshot import BestSnapshot


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


def become(module: nn.Module, value: float) -> None:
    with torch.no_grad():
        for tensor in module.state_dict().values():
            tensor.fill_(value)


def values(module: nn.Module) -> set[float]:
    return {number for t in module.state_dict().values() for number in t.flatten().tolist()}


def offered(losses: list[float]) -> tuple[BestSnapshot, nn.Sequential]:
    """Offer a network that is filled with 1, then 2, and so on."""
    module = network()
    best = BestSnapshot(module)
    for number, loss in enumerate(losses, start=1):
        become(module, number)
        best.offer(module, loss=torch.tensor(loss))
    return best, module


@pytest.mark.parametrize(
    ("losses", "chosen"),
    [
        ([3.0, 1.0, 2.0], 2),
        ([1.0, 2.0, 3.0], 1),
        ([3.0, 2.0, 1.0], 3),
        ([1.0, 1.0, 1.0], 1),
        ([math.nan, 5.0, math.nan], 2),
        ([-0.5, -0.9, -0.7], 2),
    ],
)
def test_the_network_of_the_lowest_loss_comes_back_whole(losses: list[float], chosen: int) -> None:
    best, module = offered(losses)
    best.restore(module)
    assert values(module) == {chosen}


def test_what_goes_on_learning_does_not_change_what_is_kept() -> None:
    best, module = offered([1.0])
    become(module, 7)
    assert values(module) == {7}
    best.restore(module)
    assert values(module) == {1}


def test_restoring_twice_is_restoring_once() -> None:
    best, module = offered([2.0, 1.0, 3.0])
    best.restore(module)
    best.offer(module, loss=torch.tensor(1.0))
    best.restore(module)
    assert values(module) == {2}


def test_without_an_offer_the_network_stays_as_it_is() -> None:
    module = network()
    best = BestSnapshot(module)
    become(module, 4)
    best.restore(module)
    assert values(module) == {4}


def test_the_latest_loss_is_stored_beside_the_lowest() -> None:
    best, _ = offered([2.0, 1.0, 3.0])
    assert (float(best.lowest), float(best.latest)) == (1.0, 3.0)


def test_copies_learn_nothing_and_are_in_the_checkpoint() -> None:
    best, _ = offered([1.0])
    assert not any(parameter.requires_grad for parameter in best.parameters())
    resumed = BestSnapshot(network())
    resumed.load_state_dict(best.state_dict())
    module = network()
    resumed.restore(module)
    assert values(module) == {1}


def test_nothing_to_copy_is_refused() -> None:
    with pytest.raises(ContractError, match="at least one module"):
        BestSnapshot()
