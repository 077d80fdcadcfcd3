"""Functions compiled by numba, without the interpreter's lock, with a cache that is never stale."""

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
    numba looks for changes only in the file of the called function, so `grow` would miss an
    edit of `impurity`. Therefore the name of the cache's folder depends on the sources of the
    function's whole package.

    Args:
        function: What to compile.
        parallel: Whether its `prange` loops run on several threads.
        fused: Whether it is inlined into the loop that calls it, and a product and a sum may be
            one CPU instruction, rounded once instead of twice.
    """
    options: dict[str, Any] = {"nogil": True, "parallel": parallel}
    if fused:
        options["fastmath"] = {"contract"}
        options["forceinline"] = True
    settings: Any = numba.config  # filled at run time, so type checkers do not know it
    given = settings.CACHE_DIR
    folder = _cache_of(Path(function.__code__.co_filename).parent, given)
    settings.CACHE_DIR = str(folder or given)
    made: Any
    try:
        made = numba.njit(cache=folder is not None, **options)(function)
    except RuntimeError:  # the function is in no file: compile it in every process
        made = numba.njit(**options)(function)
    finally:
        settings.CACHE_DIR = given
    return cast("Function", made)


@cache
def _cache_of(package: Path, given: str) -> Path | None:
    """Return the first writable folder, named after the package's sources.

    numba's own folders have names that do not depend on the sources: after an upgrade it would
    run code compiled before it.
    """
    sources = b"\0".join(path.read_bytes() for path in sorted(package.glob("*.py")))
    digest = hashlib.sha256(sources).hexdigest()[:12]
    people = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    beside = Path(given) if given else package / "__pycache__"
    folders = (
        beside / f"compiled-{digest}",
        Path(people) / "onesided" / f"compiled-{package.name}-{digest}",
    )
    return next(filter(_is_writable, folders), None)


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
