"""Where a number comes from: machine, commit, versions, date.

`filled` measures the rows of a result file one by one, and keeps earlier rows of the same origin.
"""

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import torch

import onesided
from onesided.run.folder import environment
from onesided.storage.atomic import read_json, write_json

Origin = dict[str, Any]
Content = dict[str, Any]
Row = dict[str, Any]
Asked = TypeVar("Asked", str, int)

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


def same_origin(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two origins have the same committed code on the same machine.

    Only then are their times and memory comparable. Uncommitted code never is: it has no name to
    compare by.
    """
    committed = one["dirty"] is False and other["dirty"] is False
    return committed and all(one[key] == other[key] for key in ("commit", "machine", "versions"))


def origin_of_run() -> Origin:
    """Return the part that may differ from run to run of one benchmark.

    The load is the number of processes that waited for a core when the run began. If it is above
    the number of cores, `seconds` says little about the method.
    """
    now, here = origin(), machine()
    return {
        **{key: now[key] for key in ("date", "commit", "dirty")},
        **{key: here[key] for key in ("cpu", "cores", "threads")},
        "load": round(os.getloadavg()[0], 1),
    }


@cache
def code_in_memory() -> Mapping[str, Any]:
    """Return the commit of the code that runs, read at the first call.

    A benchmark takes hours. Later commits do not change the code that was imported.
    """
    return commit(Path(onesided.__file__).parent)


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
        "cores": len(os.sched_getaffinity(0)),
        "threads": torch.get_num_threads(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
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


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def filled(
    path: Path,
    head: Mapping[str, Any],
    *,
    key: str,
    asked: Sequence[Asked],
    measure: Callable[[Asked], Row],
    code: Path = Path(onesided.__file__).parent,
) -> Content:
    """Return the content of a result file with all rows; measure those that are missing.

    The file is written after each row, so a later start resumes. Rows of another commit, machine,
    version or setting are measured again. An interrupted row starts again: peak memory is that of
    a whole process. The earlier file stays until the first new row is measured.

    Args:
        path: The result file.
        head: Its content without the rows: `origin` and the settings.
        key: The column that names a row.
        asked: Names of the rows, in order.
        measure: Returns the row of a name.
        code: A folder of the checkout whose code is measured.
    """
    content = _begun(path, head)
    rows: dict[Asked, Row] = {row[key]: row for row in content["rows"]}
    for one in asked:
        if one in rows:
            print(f"{key} {one}: kept, measured earlier at this commit", file=sys.stderr)
        else:
            rows[one] = measure(one)
            # New processes are measured. They run the code as it is on disk now.
            if content["origin"]["dirty"] is False:
                content["origin"]["dirty"] = commit(code)["dirty"]
        content["rows"] = [rows[other] for other in asked if other in rows]
        write_json(path, content)
    return content


def _begun(path: Path, head: Mapping[str, Any]) -> Content:
    """Return the file's content if origin and settings are the same, else the head alone."""
    if path.exists():
        before = read_json(path)
        comparable = same_origin(before["origin"], head["origin"])
        if comparable and _settings(before) == _settings(head):
            return before
    return {**head, "origin": dict(head["origin"]), "rows": []}


def _settings(content: Mapping[str, Any]) -> Content:
    return {key: value for key, value in content.items() if key not in ("rows", "origin")}
