"""Where a number comes from: the machine, the commit of the code, the versions, the day."""

import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import torch

import onesided
from onesided.run.folder import environment

Origin = dict[str, Any]

# What can change a number; the result files themselves change with every run.
CODE = (":/src", ":/benchmarks", ":/pyproject.toml", ":/constraints.txt")
NOT_CODE = (":!/benchmarks/results", ":!/benchmarks/README.md", ":!/benchmarks/paper.toml")


def origin() -> Origin:
    """Return everything a reader needs to judge, or repeat, what is measured now."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **code_in_memory(),
        "machine": machine(),
        "versions": environment()["versions"],
    }


def same_place(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two origins tell of the same committed code on the same machine.

    Only then may times or memory of the one stand beside those of the other. Uncommitted code has
    no name by which to tell it from other uncommitted code.
    """
    committed = one["dirty"] is False and other["dirty"] is False
    return committed and all(one[key] == other[key] for key in ("commit", "machine", "versions"))


def origin_of_run() -> Origin:
    """Return the part that may differ from run to run of one benchmark.

    The load is the number of processes that wanted a core when the run began: above the
    number of cores, `seconds` says little about the method.
    """
    now, here = origin(), machine()
    return {
        **{key: now[key] for key in ("date", "commit", "dirty")},
        **{key: here[key] for key in ("cpu", "cores", "threads")},
        "load": round(os.getloadavg()[0], 1),
    }


@cache
def code_in_memory() -> Mapping[str, Any]:
    """Return the commit of the code that runs, as found at the first call.

    A benchmark takes an hour, in which people commit; what was imported stays what it was.
    """
    return commit(Path(onesided.__file__).parent)


def commit(folder: Path) -> dict[str, Any]:
    """Return the commit the folder is checked out at, and whether its code was changed since.

    Both are None where the folder is no checkout, or git is missing: unknown is not clean.
    """
    head = _git(folder, "rev-parse", "HEAD")
    status = _git(folder, "status", "--porcelain", "--", *CODE, *NOT_CODE)
    return {"commit": head, "dirty": None if head is None or status is None else bool(status)}


def machine() -> dict[str, Any]:
    """Return the parts of the machine that decide how long a run takes."""
    return {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "threads": torch.get_num_threads(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "platform": platform.platform(),
    }


def cpu_model() -> str:
    """Return the processor's name; Linux tells it in a file, other systems by Python."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
