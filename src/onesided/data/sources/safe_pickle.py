"""Reads the pickles in which CIFAR is published, and executes nothing that is in them.

A pickle is a program: "import this, call it with that". CIFAR's pickles need three of
numpy's names to rebuild one array. This reader has stand-ins for exactly these and refuses
every other name. The stand-ins check what the file says before they pass it to numpy: a
data type of objects, or a forged flag in its state, would let a file reach memory that is
not its own. A hostile file can still ask for much memory.
"""

import math
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from onesided.core.errors import DataError

_PLAIN_NUMBERS = re.compile(r"[biuf][1248]")
_MOST_DIMENSIONS = 8


class _Refused(Exception):
    """The file holds something else than arrays, text and containers; the message says what."""


class _StandIn:
    """Replaces one of numpy's names; can be called, but not changed.

    An instance and not a function: a pickle may set attributes of all that it holds, and a
    function's defaults are attributes.
    """

    __slots__ = ("_build",)

    def __init__(self, build: Callable[..., object]) -> None:
        self._build = build

    def __call__(self, *arguments: object) -> object:
        return self._build(*arguments)

    def __setstate__(self, state: object) -> None:
        raise _Refused("a changed copy of a numpy function")


class _Numbers:
    """A numpy data type before it is built: its code and byte order, both checked."""

    __slots__ = ("code", "order")

    def __init__(self, code: object, *flags: object) -> None:
        if not isinstance(code, str) or not _PLAIN_NUMBERS.fullmatch(code):
            raise _Refused(f"an array of type {code!r} instead of plain numbers")
        self.code = code
        self.order = "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _version, order, *structure = state
        if order not in ("|", "<", ">", "=") or any(part is not None for part in structure[:3]):
            raise _Refused("an array of structured type instead of plain numbers")
        self.order = order

    def resolve(self) -> np.dtype[Any]:
        """Return numpy's data type."""
        return np.dtype(self.order + self.code)


class _PickledArray(np.ndarray):
    """An array that checks its state before numpy reads it."""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _version, shape, numbers, column_major, contents = state
        if not isinstance(numbers, _Numbers):
            raise _Refused(f"an array of type {numbers!r} instead of plain numbers")
        if isinstance(contents, str):  # Python 2 wrote its bytes as text
            contents = contents.encode("latin-1")
        if not isinstance(contents, bytes):
            raise _Refused(f"an array out of a {type(contents).__name__} instead of bytes")
        if len(shape) > _MOST_DIMENSIONS or any(
            type(size) is not int or size < 0 for size in shape
        ):
            raise _Refused(f"an array of shape {shape!r}")
        dtype = numbers.resolve()
        if math.prod(shape) * dtype.itemsize != len(contents):
            raise _Refused(f"an array of shape {shape} out of {len(contents)} bytes")
        checked = (1, tuple(shape), dtype, bool(column_major), contents)
        super().__setstate__(checked)  # type: ignore[arg-type]  # stubs ask for numpy.bool


def _refuse_to_build(*arguments: object) -> object:
    raise _Refused("a bare numpy.ndarray")


_NDARRAY = _StandIn(_refuse_to_build)


def _empty_array(kind: object, shape: object, code: object) -> _PickledArray:
    if kind is not _NDARRAY:
        raise _Refused(f"an array of class {kind!r}")
    return _PickledArray((0,), dtype=np.uint8)


def _bytes_of(text: object, encoding: object) -> bytes:
    """Read bytes as Python 3 writes them into old pickle protocols."""
    if not isinstance(text, str) or encoding != "latin1":
        raise _Refused(f"bytes by the codec {encoding!r}")
    return text.encode("latin-1")


_STAND_INS = {
    ("numpy.core.multiarray", "_reconstruct"): _StandIn(_empty_array),
    ("numpy._core.multiarray", "_reconstruct"): _StandIn(_empty_array),
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy", "dtype"): _StandIn(_Numbers),
    ("_codecs", "encode"): _StandIn(_bytes_of),
}


class _PlainUnpickler(pickle.Unpickler):
    """An unpickler that imports nothing."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401, the base class's type
        stand_in = _STAND_INS.get((module, name))
        if stand_in is None:
            raise _Refused(repr(f"{module}.{name}"))
        return stand_in

    def persistent_load(self, pid: object) -> Any:  # noqa: ANN401, the base class's type
        raise _Refused(f"an object from outside the file, {pid!r}")


def read_pickle(path: Path) -> object:
    """Return the content of a pickle of arrays of numbers, text and containers.

    Text of Python 2 comes back as `str` (latin-1). Anything else in the file, and a file
    that is cut short or no pickle, raises DataError; nothing of it was executed.
    """
    try:
        with path.open("rb") as file:
            return _PlainUnpickler(file, encoding="latin1").load()
    except _Refused as refused:
        raise DataError(
            f"{path} asks for {str(refused)[:200]}, which no data file needs: it was not executed. "
            "Delete the file and fetch the data set from its official address."
        ) from None
    except OSError:
        raise
    except Exception as error:  # garbage can end an unpickler in a dozen ways
        raise DataError(
            f"{path} is not a complete pickle ({type(error).__name__}: {str(error)[:200]!r}): "
            "it was cut short or is another file. Fetch it again."
        ) from error
