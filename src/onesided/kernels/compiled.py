"""Compiled functions: numba without the interpreter's lock, and a cache that sees every edit."""

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function, *, parallel: bool = False, fused: bool = False) -> Function:
    """Compile a function when it is first called; later processes load it from the cache.

    Compiling a tree takes three seconds per type of number, loading it a fraction of one.
    numba looks for changes only in the file of the function that is called, so that an edit
    of `impurity` would go unnoticed by `grow`; therefore the cache's folder is named after
    the sources of the function's whole package.

    Args:
        function: What to compile.
        parallel: Whether its `prange` loops run on several threads.
        fused: Whether it becomes part of the loop that calls it, and a product and a sum may be
            rounded once instead of twice, in one instruction of the processor.
    """
    options: dict[str, Any] = {"nogil": True, "parallel": parallel}
    if fused:
        options["fastmath"] = {"contract"}
        options["forceinline"] = True
    settings: Any = numba.config  # numba fills it at run time, out of sight of type checkers
    given = settings.CACHE_DIR
    folder = _cache_of(Path(function.__code__.co_filename).parent, given)
    settings.CACHE_DIR = str(folder or given)
    made: Any
    try:
        made = numba.njit(cache=folder is not None, **options)(function)
    except RuntimeError:  # of no file: compile in every process
        made = numba.njit(**options)(function)
    finally:
        settings.CACHE_DIR = given
    return cast("Function", made)


@cache
def _cache_of(package: Path, given: str) -> Path | None:
    """Return the first folder that can be written to, named after the package's sources.

    numba would fall back to folders of its own, whose names say nothing of the sources: after
    an upgrade it would run what was compiled before it.
    """
    sources = b"\0".join(path.read_bytes() for path in sorted(package.glob("*.py")))
    digest = hashlib.sha256(sources).hexdigest()[:12]
    people = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    beside = Path(given) if given else package / "__pycache__"
    folders = (
        beside / f"compiled-{digest}",
        Path(people) / "onesided" / f"compiled-{package.name}-{digest}",
    )
    return next(filter(_can_be_written, folders), None)


def _can_be_written(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
