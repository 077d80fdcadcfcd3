"""Files that are complete or not there, also after a kill or a power cut.

A file is written under a temporary name, `.NAME.PID.part`, flushed to the disk and renamed
over the old one. Then the folder, which holds the name, is flushed too. `half_written` finds
by that name what a killed process left.
"""

import errno
import hashlib
import io
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from onesided.core.errors import DataNotFound, OnesidedError
from onesided.storage.json_files import parsed
from onesided.storage.own_file import damaged, read_own, seal_of, why

NO_FOLDER_SYNC = (errno.EBADF, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
"""Errors of network disks that cannot flush a folder; they order renames by themselves."""
FULL = (errno.ENOSPC, errno.EDQUOT)
FULL_WORDS = ("no space left", "disk is full", "disk full", "quota exceeded")
"""A full disk in the words of C libraries, SQLite's and GDAL's among them."""
LEAST_ROOM = 2**16
"""Below so many free bytes a writer that failed in other words failed for want of room."""


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Give a file under a temporary name; it replaces the old one only when it is complete."""
    with replacing_by_name(path) as temporary, temporary.open("wb") as file:
        yield file


@contextmanager
def replacing_by_name(path: Path, ending: str = "") -> Iterator[Path]:
    """Give the temporary name, with this ending, for a library that opens files by name."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part{ending}")
    try:
        yield temporary
        publish(temporary, path)
    except OnesidedError:
        raise
    except Exception as error:
        full = is_full(error, path.parent)
        if not full and not isinstance(error, OSError):
            raise
        reason = os.strerror(errno.ENOSPC) if full else why(error)
        raise OnesidedError(
            f"Cannot write {path}: {reason}. What was there before is intact; make room or "
            "choose another folder, and give the same command again."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def is_full(error: BaseException, folder: Path) -> bool:
    """Return whether an error means a full disk, in whose words ever a library tells it."""
    told: BaseException | None = error
    while told is not None:
        if isinstance(told, OSError) and told.errno in FULL:
            return True
        if any(words in str(told).lower() for words in FULL_WORDS):
            return True
        told = told.__cause__ or told.__context__
    if isinstance(error, OSError):
        return False
    try:
        return shutil.disk_usage(folder).free < LEAST_ROOM
    except OSError:
        return False  # the disk does not tell


def publish(part: Path, path: Path) -> None:
    """Give a complete file its name; content and name are on disk when this returns."""
    with part.open("r+b") as file:
        os.fsync(file.fileno())
    rename(part, path)


def rename(part: Path, path: Path) -> None:
    """Rename a file or folder that is on disk; the new name is on disk when this returns."""
    os.replace(part, path)
    flush_folder(path.parent)


def flush_folder(path: Path) -> None:
    """Flush the names in a folder to the disk."""
    if sys.platform == "win32":  # folders cannot be opened there
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in NO_FOLDER_SYNC:
            raise
    finally:
        os.close(folder)


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, complete or not at all."""
    with replacing(path) as file:
        file.write(text.encode())


def write_json(path: Path, content: object) -> None:
    """Write a JSON file; numbers that are not finite are our own mistake and raise."""
    write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """Return a JSON file of a run folder."""
    try:
        content = parsed(read_own(path))
    except (FileNotFoundError, NotADirectoryError):
        lacks = f"{path.name} in {path.parent}" if path.parent.is_dir() else f"folder {path.parent}"
        raise DataNotFound(
            f"There is no {lacks}: this is not the folder of a finished run. Give the folder that "
            "onesided fit wrote, or finish it with the same fit command."
        ) from None
    except ValueError as error:
        raise damaged(path, error) from None
    if not isinstance(content, dict):
        raise damaged(path, "it holds no JSON object")
    return content


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write an .npz file with a seal, which holds arrays and can hold no pickled object."""
    packed = io.BytesIO()
    np.savez_compressed(packed, allow_pickle=False, **arrays)
    with replacing_sealed(path) as file:
        file.write(packed.getvalue())


class Sealing:
    """A file to write to that computes the checksum of what it gets.

    Attributes:
        refusal: The system's first error: torch reports a full disk in words of its own.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.digest = file, hashlib.sha256()
        self.refusal: OSError | None = None

    def write(self, content: Any) -> int:  # noqa: ANN401 - whatever has bytes
        """Write, and remember."""
        try:
            written = self.file.write(content)
        except OSError as error:
            self.refusal = self.refusal or error
            raise
        self.digest.update(content)
        return written

    def flush(self) -> None:
        """Do nothing: the file is flushed when it is complete."""


@contextmanager
def replacing_sealed(path: Path) -> Iterator[Sealing]:
    """Give a file as `replacing` does; its last line is the seal that `own_file` checks."""
    with replacing(path) as file:
        sealing = Sealing(file)
        try:
            yield sealing
        except RuntimeError as error:
            if sealing.refusal is None:
                raise
            raise sealing.refusal from error
        file.write(seal_of(sealing.digest.hexdigest()))


def half_written(folder: Path, names: Iterable[str]) -> list[Path]:
    """Return the temporary files that killed processes left of these names."""
    # Libraries that open files by name want their ending, after .part too.
    return [part for name in names for part in folder.glob(f".{name}.*.part*")]


def remove_half_written(folder: Path, names: Iterable[str] = ("*",)) -> None:
    """Remove what killed processes left of files that no other process writes now."""
    for part in half_written(folder, names):
        part.unlink(missing_ok=True)
