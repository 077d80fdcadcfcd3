"""How many threads a run has, and how they wait for each other.

Several threads share every single operation of a network, and each operation ends when the last
of them has finished. On a busy machine the last one waits for a core, and by default the others
keep theirs busy meanwhile: a small network then took ten times as long on two threads as on one.
So threads wait passively (`wait_passively`), and a run has only as many as its operations are worth
and as the machine has idle cores (`choose_threads`).

By a rule, never by a stopwatch: on a busy machine a second of timing is mostly noise. The number
is chosen before anything is computed, and recorded: sums depend on it in their last bits.
"""

import math
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

WORK_PER_THREAD = 2 * 10**8
"""Multiplications that a batch must have in the backbone, for each thread. With fewer, starting
and ending the threads of an operation takes longer than they save: of the preset `quick`, digits
of 8x8 pixels have 0.6 and photographs of 32x32 pixels have 8 of these 10^8."""
MOST_THREADS = 1024
WAITING: Mapping[str, str] = {"OMP_WAIT_POLICY": "PASSIVE", "OPENBLAS_THREAD_TIMEOUT": "4"}
"""Variables that make idle threads sleep: of OpenMP (torch, numba, scikit-learn), and of OpenBLAS
(numpy, scipy; the number is the smallest exponent of clock ticks that it accepts)."""
CHOSEN_BY_USERS = (*WAITING, "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY")
"""Variables by which users set the same; then nothing is changed."""
MINUTE = 60.0
_BEGAN = (time.monotonic(), time.process_time())


def wait_passively() -> bool:
    """Make threads that wait for others sleep; return whether that was possible.

    The libraries read the variables when they are loaded, so this comes before the first import
    of torch or numpy. It is for the whole process and those it starts, so only our commands do
    it, never the library in another program.
    """
    loaded = any(name in sys.modules for name in ("torch", "numpy"))
    if loaded or any(name in os.environ for name in CHOSEN_BY_USERS):
        return False
    os.environ.update(WAITING)
    return True


def choose_threads(work: float = math.inf) -> int:
    """Return how many threads to compute with.

    At most as many as torch has now: that is what users set by OMP_NUM_THREADS, torchrun or
    `torch.set_num_threads`, and all cores otherwise.

    Args:
        work: Multiplications of a batch in the backbone; infinite where threads share nothing.
    """
    import torch

    worth = int(min(work / WORK_PER_THREAD, MOST_THREADS))
    return max(1, min(torch.get_num_threads(), idle_cores(), worth))


@contextmanager
def using_threads(threads: int | None) -> Iterator[None]:
    """Compute with so many threads, also in BLAS; then restore the numbers. None changes nothing.

    The compiled loops take torch's number (`nets/convolution.py`).
    """
    if threads is None:
        yield
        return
    import torch
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with threadpool_limits(limits=threads):
            yield
    finally:
        torch.set_num_threads(before)


def idle_cores() -> int:
    """Return how many cores this process may use and others do not; at least one.

    Processes that torchrun started on this machine share them equally.
    """
    idle = round((os.cpu_count() or 1) - load_of_others())
    own = available_cores() // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return max(1, min(own, idle))


def available_cores() -> int:
    """Return how many cores this process may use, whoever else is using them."""
    cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    return max(1, math.ceil(min(cores, cpu_quota())))


def load_of_others() -> float:
    """Return how many threads of other processes ran, or waited for a core, in the last minute.

    The system's average counts this process too: its own share is subtracted, as if it had
    computed evenly since this module was imported. Without that, the second of two runs would
    take the first for somebody else.
    """
    if not hasattr(os, "getloadavg"):  # Windows
        return 0.0
    began, computed = _BEGAN
    elapsed = max(time.monotonic() - began, 1e-3)
    rate = (time.process_time() - computed) / elapsed
    return max(0.0, os.getloadavg()[0] - rate * -math.expm1(-elapsed / MINUTE))


def cpu_quota(
    groups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> float:
    """Return the cores that Linux's control groups allow this process; infinite without a limit.

    Containers and systemd limit time by quotas, which the number of cores does not show.
    """
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:  # no Linux
        return math.inf
    paths = [line.removeprefix("0::").strip("/") for line in lines if line.startswith("0::")]
    places = [groups / path for path in paths]
    above = [parent for place in places for parent in place.parents if groups in parent.parents]
    quotas = [_quota(place / "cpu.max") for place in {groups, *places, *above}]
    return min(quotas)


def _quota(file: Path) -> float:
    """Return the cores of a file such as `150000 100000`: microseconds, of each so many."""
    try:
        allowed, period = file.read_text(encoding="utf-8").split()
    except (OSError, ValueError):  # the group has no such limit
        return math.inf
    return math.inf if allowed == "max" else int(allowed) / int(period)
