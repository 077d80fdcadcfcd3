"""Shapes in signatures, checked while tests run: each combination of arguments once.

jaxtyping and beartype look at every call for a tenth of a millisecond, which is most of the time of
functions that are called in loops. Of an array they look at the class, the type of its numbers and
the shape. So a function that was called with these before, and returned the same again, need not be
looked at again.
"""

import functools
import threading
from collections.abc import Callable, Hashable, Mapping
from dataclasses import is_dataclass
from enum import Enum
from types import CodeType, FunctionType
from typing import Any

import jaxtyping
import numpy as np
import torch
from torch import Tensor
from torch.nn import Parameter

CHECKED = [f"onesided.{part}" for part in ("losses", "state", "priors", "nets", "metrics")] + [
    "onesided.trees.forest"  # of the trees only this: what numba compiles cannot be wrapped
]
EVERY_CALL = jaxtyping.jaxtyped
ARRAYS = frozenset({np.ndarray, Tensor, Parameter})
LONGEST = 64
"""A longer list is looked at every time."""
Function = Callable[..., Any]
_seen: dict[CodeType, set[Hashable]] = {}
"""By function: looks of arguments, and of arguments with a result."""


class Strange(Exception):
    """A value of which a look does not tell all that its check would look at."""


def install() -> None:
    """Check what is imported of ours from now on."""
    jaxtyping.jaxtyped = once  # type: ignore[assignment]
    jaxtyping.install_import_hook(CHECKED, "beartype.beartype")


def once(function: Any = None, *, typechecker: Function) -> Any:  # noqa: ANN401
    """Return a function that is checked for every new combination of arguments and result."""
    if function is None:
        return functools.partial(once, typechecker=typechecker)
    if isinstance(function, type):
        init = vars(function).get("__init__")  # else it is that of a base class
        if is_dataclass(function) and isinstance(init, FunctionType):
            function.__init__ = once(init, typechecker=typechecker)  # type: ignore[method-assign]
        return function
    if not isinstance(function, FunctionType):
        return EVERY_CALL(function, typechecker=typechecker)
    seen = _seen.setdefault(function.__code__, set())
    check = functools.cache(functools.partial(_checked, function, typechecker))

    @functools.wraps(function)
    def called(*args: object, **kwargs: object) -> object:
        __tracebackhide__ = True
        try:
            given = (look(args), look(kwargs))
        except Strange:
            return check()[0](*args, **kwargs)
        if given not in seen:
            result = check()[0](*args, **kwargs)
            seen.update((given, (given, look(result))))
            return result
        result = function(*args, **kwargs)
        return _again(seen, given, result, check, args, kwargs)

    return called


def _again(
    seen: set[Hashable],
    given: Hashable,
    result: object,
    check: Callable[[], tuple[Function, threading.local]],
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> object:
    """Return a result after checking it, unless the same came of these arguments before."""
    __tracebackhide__ = True
    try:
        both = (given, look(result))
    except Strange:
        both = None
    if both is None or both not in seen:
        checked, known = check()
        known.result = result
        try:
            checked(*args, **kwargs)
        finally:
            del known.result
        if both is not None:
            seen.add(both)
    return result


def _checked(function: FunctionType, typechecker: Function) -> tuple[Function, threading.local]:
    """Return a function that is checked at every call, and where to put a result known before."""
    known = threading.local()

    def called(*args: object, **kwargs: object) -> object:
        return known.result if hasattr(known, "result") else function(*args, **kwargs)

    # Names in its annotations are those of the function's own module.
    relay = FunctionType(called.__code__, function.__globals__, closure=called.__closure__)
    functools.update_wrapper(relay, function)
    return EVERY_CALL(relay, typechecker=typechecker), known


def look(value: object) -> Hashable:
    """Return what a check looks at: classes, types of numbers and shapes; of texts all."""
    kind = type(value)
    if kind in ARRAYS:
        if torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
            raise Strange  # sizes are no plain numbers
        return kind, value.dtype, tuple(value.shape)  # type: ignore[attr-defined]
    if kind is str or kind is bool or isinstance(value, Enum):
        return kind, value
    if isinstance(value, Tensor | np.ndarray):
        raise Strange
    if isinstance(value, list | tuple):
        if len(value) > LONGEST:
            raise Strange
        return kind, tuple(map(look, value))
    if isinstance(value, Mapping):
        if len(value) > LONGEST:
            raise Strange
        return kind, tuple((look(name), look(one)) for name, one in value.items())
    return (kind,)
