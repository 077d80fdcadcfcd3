"""Compiled functions: numba without the interpreter's lock, and a cache that sees every edit."""

import hashlib
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
    folder = _cache_of(Path(function.__code__.co_filename).parent)
    settings.CACHE_DIR = str(Path(given) / folder.name if given else folder)
    made: Any
    try:
        made = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder that can be written to: compile in every process
        made = numba.njit(**options)(function)
    finally:
        settings.CACHE_DIR = given
    return cast("Function", made)


@cache
def _cache_of(package: Path) -> Path:
    sources = b"\0".join(path.read_bytes() for path in sorted(package.glob("*.py")))
    digest = hashlib.sha256(sources).hexdigest()[:12]
    return package / "__pycache__" / f"compiled-{digest}"
