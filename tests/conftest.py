"""What every test shares: checked shapes, one thread, a quick disk, no stopwatch."""

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from unittest.mock import patch

import jaxtyping

# Beartype looks at one item of a list, chosen at random by the function it finds when it is
# imported. Python's own would make every checked call look like one that draws globally.
with patch("random.getrandbits", random.Random(0).getrandbits):
    import beartype  # noqa: F401

# Before anything of ours is imported: modules that are loaded already stay unchecked.
jaxtyping.install_import_hook(
    # Of the trees only the forest: what numba compiles cannot be wrapped.
    [f"onesided.{part}" for part in ("losses", "state", "priors", "nets", "metrics")]
    + ["onesided.trees.forest"],
    "beartype.beartype",
)

import pytest  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from hypothesis import settings  # noqa: E402
from torch import Tensor  # noqa: E402
from torch.multiprocessing.spawn import spawn  # noqa: E402

# No deadline: a shared machine is slow at times, which says nothing about the code.
settings.register_profile("local", deadline=None)
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable" if os.environ.get("CI") else "local")

# Test processes run side by side, and threads of several would fight over the cores.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Give every test one thread: starting numba sets those of torch to all cores."""
    torch.set_num_threads(1)


# Every file of ours is flushed to the disk, and so is its folder; hundreds of tests would wait for
# that. Their folders are in memory where there is enough; what is flushed, and when, is the same.
IN_MEMORY, ENOUGH = Path("/dev/shm"), 3 * 2**30

if (
    "TMPDIR" not in os.environ
    and os.access(IN_MEMORY, os.W_OK)
    and shutil.disk_usage(IN_MEMORY).free > ENOUGH
):
    os.environ["TMPDIR"] = tempfile.tempdir = str(IN_MEMORY)


Worker = Callable[[], Mapping[str, Tensor]]
"""What each process does; a function of a module, so that a new process can import it."""


def _join_and_work(rank: int, worker: Worker, folder: Path) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=(folder / "meeting").as_uri(), rank=rank, world_size=2
    )
    try:
        torch.save(dict(worker()), folder / f"{rank}.pt")
        # Together: gloo may abort in a process whose partner left while it was still at work.
        dist.barrier()
    finally:
        dist.destroy_process_group()


@pytest.fixture(scope="session")
def in_two_processes(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[Worker], tuple[Mapping[str, Tensor], Mapping[str, Tensor]]]:
    """Run a worker in two gloo processes and return what each of them found."""

    def run(worker: Worker) -> tuple[Mapping[str, Tensor], Mapping[str, Tensor]]:
        folder = tmp_path_factory.mktemp("two")
        spawn(_join_and_work, (worker, folder), nprocs=2)  # type: ignore[no-untyped-call]
        first, second = (torch.load(folder / f"{rank}.pt", weights_only=True) for rank in (0, 1))
        return first, second

    return run
