"""Two processes train as one: networks on shards, the loss on the whole batch."""

from collections.abc import Callable, Mapping

import pytest
import torch
from torch import Tensor

from onesided.methods.base import GradientMethod
from tests.contract.cases import CASES, Case, build, toy_split, train

CLOSE = 1e-8
Found = tuple[Mapping[str, Tensor], Mapping[str, Tensor]]
TwoProcesses = Callable[[Callable[[], Mapping[str, Tensor]]], Found]


def trained(case: Case) -> dict[str, Tensor]:
    """Return the state of a method after a short training, as one of several processes or alone."""
    split = toy_split()
    # In double precision and without BatchNorm, whose statistics are those of a shard.
    method = build(case, split, normalisation="none")
    assert isinstance(method, GradientMethod)
    train(method.double(), split, learning_rate=0.01)
    return method.state_dict()


GRADIENT_CASES = [
    case
    for case in CASES
    if isinstance(build(case, toy_split(), normalisation="none"), GradientMethod)
]


def _train_all() -> dict[str, Tensor]:
    """Train every case, one after the other: two new processes cost more than a training."""
    return {
        f"{case} {name}": value for case in GRADIENT_CASES for name, value in trained(case).items()
    }


@pytest.fixture(scope="module")
def together(in_two_processes: TwoProcesses) -> Found:
    return in_two_processes(_train_all)


@pytest.mark.ddp
@pytest.mark.parametrize("case", GRADIENT_CASES, ids=str)
@pytest.mark.slow
def test_two_processes_equal_one(case: Case, together: Found) -> None:
    alone = trained(case)
    for rank, everything in enumerate(together):
        own = [name for name in everything if name.startswith(f"{case} ")]
        assert own == [f"{case} {name}" for name in alone]
        for name, value in alone.items():
            there = everything[f"{case} {name}"]
            assert torch.allclose(value, there, rtol=0, atol=CLOSE), (rank, name)
