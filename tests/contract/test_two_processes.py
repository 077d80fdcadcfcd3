"""Two processes train as one: networks on shards, the loss on the whole batch."""

import os
import socket
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import spawn

from onesided.methods.base import GradientMethod
from tests.contract.cases import CASES, Case, build, toy_split, train

CLOSE = 1e-8


def _worker(rank: int, port: int, cases: list[Case], folder: str) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    for case in cases:
        torch.save(_trained(case), Path(folder) / f"{case}-{rank}.pt")
    dist.destroy_process_group()


def _trained(case: Case) -> dict[str, torch.Tensor]:
    split = toy_split()
    # In double precision and without BatchNorm, whose statistics are those of a shard.
    method = build(case, split, normalisation="none")
    assert isinstance(method, GradientMethod)
    train(method.double(), split, learning_rate=0.01)
    return method.state_dict()


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    spawn(_worker, (port, GRADIENT_CASES, str(folder)), nprocs=2)  # type: ignore[no-untyped-call]
    return folder


GRADIENT_CASES = [
    case
    for case in CASES
    if isinstance(build(case, toy_split(), normalisation="none"), GradientMethod)
]


@pytest.mark.ddp
@pytest.mark.parametrize("case", GRADIENT_CASES, ids=str)
def test_two_processes_equal_one(case: Case, two_processes: Path) -> None:
    alone = _trained(case)
    for rank in (0, 1):
        together = torch.load(two_processes / f"{case}-{rank}.pt", weights_only=True)
        assert alone.keys() == together.keys()
        for name, value in alone.items():
            assert torch.allclose(value, together[name], rtol=0, atol=CLOSE), (rank, name)
