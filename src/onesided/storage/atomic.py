"""Files that are complete or not there, also after a kill or a power cut.

A file is written under a temporary name, `.NAME.PID.part`, flushed to the disk and renamed
over the old one. Then the folder, which holds the name, is flushed too. `half_written` finds
by that name what a killed process left.
"""

import errno
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from onesided.core.errors import CheckpointError, DataNotFound, OnesidedError, first_line

NO_FOLDER_SYNC = (errno.EBADF, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
"""Errors of network disks that cannot flush a folder; they order renames by themselves."""


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
    except OSError as error:
        reason = error.strerror or first_line(error)
        raise OnesidedError(
            f"Cannot write {path}: {reason}. What was there before is intact; make room or "
            "choose another folder, and give the same command again."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def publish(part: Path, path: Path) -> None:
    """Give a complete file its name; content and name are on disk when this returns."""
    with part.open("r+b") as file:
        os.fsync(file.fileno())
    rename(part, path)


def rename(part: Path, path: Path) -> None:
    """Rename a file or folder that is on disk; the new name is on disk when this returns."""
    os.replace(part, path)
    if sys.platform == "win32":  # folders cannot be opened there
        return
    folder = os.open(path.parent, os.O_RDONLY)
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
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        lacks = f"{path.name} in {path.parent}" if path.parent.is_dir() else f"folder {path.parent}"
        raise DataNotFound(
            f"There is no {lacks}: this is not the folder of a finished run. Give the folder that "
            "onesided fit wrote, or finish it with the same fit command."
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error)
    else:
        if isinstance(content, dict):
            return content
        reason = "it holds no JSON object"
    raise CheckpointError(
        f"{path} is damaged ({reason}). Restore it from a copy, or train again with --overwrite."
    )


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write an .npz file that holds arrays and can hold no pickled object."""
    with replacing(path) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def half_written(folder: Path, names: Iterable[str]) -> list[Path]:
    """Return the temporary files that killed processes left of these names."""
    return [part for name in names for part in folder.glob(f".{name}.*.part")]
