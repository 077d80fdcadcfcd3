"""Compiled functions: numba without the interpreter's lock, and a cache that sees every edit."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def _digest_of_sources() -> str:
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()[:12]


CACHE = Path(__file__).parent / "__pycache__" / f"compiled-{_digest_of_sources()}"


def compiled(function: Function) -> Function:
    """Compile a function when it is first called; later processes load it from the cache.

    Compiling a tree takes three seconds per type of number, loading it a fraction of one.
    numba looks for changes only in the file of the function that is called, so that an edit
    of `impurity` would go unnoticed by `grow`; therefore the cache's folder is named after
    the sources of the whole package.
    """
    settings: Any = numba.config  # numba fills it at run time, out of sight of type checkers
    given = settings.CACHE_DIR
    settings.CACHE_DIR = str(Path(given) / CACHE.name if given else CACHE)
    made: Any
    try:
        made = numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:  # no folder that can be written to: compile in every process
        made = numba.njit(nogil=True)(function)
    finally:
        settings.CACHE_DIR = given
    return cast("Function", made)
