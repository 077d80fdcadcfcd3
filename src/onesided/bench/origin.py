"""Where a number comes from: machine, commit, versions, date."""

import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import torch

from onesided.run.folder import environment

Origin = dict[str, Any]

# What can change a number; the result files themselves change with every run.
CODE = (":/src", ":/benchmarks", ":/pyproject.toml", ":/constraints.txt")
NOT_CODE = (":!/benchmarks/results", ":!/benchmarks/README.md", ":!/benchmarks/paper.toml")


def origin() -> Origin:
    """Return what a reader needs to trust, or repeat, what is measured now."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **code_in_memory(),
        "machine": machine(),
        "versions": environment()["versions"],
    }


def origin_of_run() -> Origin:
    """Return the part that may differ from run to run of one benchmark.

    The load is the number of processes that waited for a core when the run began. If it is above
    the number of cores, `seconds` says little about the method.
    """
    now, here = origin(), machine()
    return {
        **{key: now[key] for key in ("date", "commit", "dirty")},
        **{key: here[key] for key in ("cpu", "cores", "threads")},
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
    }


@cache
def code_in_memory() -> Mapping[str, Any]:
    """Return the commit of the code that runs, read at the first call.

    A benchmark takes hours. Later commits do not change the code that was imported.
    """
    return commit(Path(__file__).parents[1])


def commit(folder: Path) -> dict[str, Any]:
    """Return the commit of the folder's checkout, and whether its code was changed since.

    Both are None if the folder is no checkout or git is missing: unknown is not clean.
    """
    head = _git(folder, "rev-parse", "HEAD")
    status = _git(folder, "status", "--porcelain", "--", *CODE, *NOT_CODE)
    return {"commit": head, "dirty": None if head is None or status is None else bool(status)}


def machine() -> dict[str, Any]:
    """Return the parts of the machine that decide how long a run takes."""
    return {
        "cpu": cpu_model(),
        "cores": _cores(),
        "threads": torch.get_num_threads(),
        "memory_gb": _memory(),
        "platform": platform.platform(),
    }


def cpu_model() -> str:
    """Return the CPU's name: on Linux from a file, elsewhere from Python."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


def _cores() -> int:
    """Return the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory() -> float | None:
    """Return gigabytes of memory; None on systems that do not tell."""
    if not hasattr(os, "sysconf"):
        return None
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
