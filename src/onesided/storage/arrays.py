"""Arrays in .npy and .npz files, whoever wrote them: one reader with one set of limits.

numpy alone trusts what a file says of itself. A header of a few bytes can ask for more memory than
there is, an archive can unpack to a thousand times its size, and a damaged file raises whatever the
parser under it raises. Here every claim is checked before memory is taken, and every failure is
`NoArrays`.
"""

import io
import stat
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from onesided.core.errors import first_line

NPY, ZIP = npy.MAGIC_PREFIX, b"PK"
KINDS = "biufUS"
"""Truth values, whole numbers, floats and texts; an array of objects would be a pickle."""
MOST_MEMBERS = 1000
MOST_AXES = 32
MOST_ENTRIES = 2**48
LONGEST_HEADER = 10_000
"""Characters; numpy's own limit."""
UNPACKED = 2**26
"""Bytes that any archive may unpack to."""
RATIO = 200
"""Beyond them, bytes for each byte of the file: scores and features shrink to a half or a third."""

_RAISED = (
    *(OSError, ValueError, TypeError, EOFError, AttributeError, KeyError, IndexError),
    *(SyntaxError, tokenize.TokenError, RecursionError, MemoryError, OverflowError),
    *(RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error),
)
"""What numpy, Python's parser and the readers of archives raise for a damaged file."""


class NoArrays(ValueError):
    """A file that holds no arrays to be used; the message continues a sentence about it."""


@dataclass(frozen=True)
class _Header:
    dtype: np.dtype
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file by name; that of an .npy file has the name "".

    Raises:
        FileNotFoundError: There is no such file.
        NoArrays: It is damaged, hostile or something else.
    """
    with _opened(path) as (file, size):
        return _arrays(file, size)


def arrays_in(content: bytes) -> dict[str, np.ndarray]:
    """Return the arrays of a file whose content is known; otherwise as `read_arrays`."""
    with _refusing():
        return _arrays(io.BytesIO(content), len(content))


def _arrays(file: IO[bytes], size: int) -> dict[str, np.ndarray]:
    start = file.read(len(NPY))
    file.seek(0)
    if start == NPY:
        return {"": _read(file, size)}
    if not start.startswith(ZIP):
        raise NoArrays("it is neither an .npy nor an .npz file")
    with zipfile.ZipFile(file) as archive:
        members = _members(archive, size)
        return {name: _member(archive, info) for name, info in members.items()}


def map_array(path: Path) -> np.ndarray:
    """Return the array of an .npy file without reading it; otherwise as `read_arrays`."""
    with _opened(path) as (file, size):
        _check_size(file, size)
        mapped: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
        return mapped


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], int]]:
    """Give a file and its size; everything that its content makes a reader raise is `NoArrays`."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):  # a pipe would wait for ever
        raise NoArrays("it is not a file")
    with _refusing(), path.open("rb") as file:
        yield file, status.st_size


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except NoArrays:
        raise
    except _RAISED as error:
        raise NoArrays(first_line(error)) from None


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the arrays of an archive by name, after what it says of them was checked."""
    listed = archive.infolist()
    if len(listed) > MOST_MEMBERS:
        raise NoArrays(f"it holds {len(listed)} members, more than {MOST_MEMBERS}")
    unpacked, allowed = sum(info.file_size for info in listed), max(UNPACKED, RATIO * size)
    if unpacked > allowed:
        raise NoArrays(
            f"its {size} bytes unpack to {unpacked}, more than arrays do; save it without "
            "compression if that is right"
        )
    members: dict[str, zipfile.ZipInfo] = {}
    for info in listed:
        name = info.filename.removesuffix(".npy")
        if name == info.filename:
            raise NoArrays(f"its member '{name}' is no array")
        if name in members:
            raise NoArrays(f"two of its members are called '{name}'")
        if info.flag_bits & 1:
            raise NoArrays(f"its member '{name}' is encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise NoArrays(f"its member '{name}' is packed in a way that numpy does not write")
        members[name] = info
    return members


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    try:
        with archive.open(info) as file:
            return _read(file, info.file_size)
    except NoArrays as error:
        raise NoArrays(f"in its member '{info.filename}' {error}") from None


def _read(file: IO[bytes], size: int) -> np.ndarray:
    """Return the one array of a file of this size."""
    _check_size(file, size)
    file.seek(0)
    array: np.ndarray = npy.read_array(file, allow_pickle=False, max_header_size=LONGEST_HEADER)
    if file.read(1):  # at the end of a member, zipfile compares its checksum
        raise NoArrays("something follows the array")
    return array


def _check_size(file: IO[bytes], size: int) -> None:
    """Refuse an array that is not of the file's own size, before any memory is taken for it."""
    header = _header(file)
    if header.bytes != size - file.tell():
        raise NoArrays(
            f"an array of {header.bytes} bytes is announced, and there are {size - file.tell()}"
        )


def _header(file: IO[bytes]) -> _Header:
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise NoArrays(f"it has the unknown version {version}")
    # Version 3 differs from 2 in the names of fields, and no array here has fields.
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(file, max_header_size=LONGEST_HEADER)
    if dtype.kind not in KINDS or not dtype.itemsize:
        raise NoArrays(f"an array holds {dtype.str}; expected numbers or texts, and no objects")
    if len(shape) > MOST_AXES or not all(0 <= side <= MOST_ENTRIES for side in shape):
        raise NoArrays("an array has an absurd shape")
    return _Header(dtype, shape)
