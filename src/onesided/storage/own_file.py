"""The one door through which files that onesided wrote are read back.

A file of ours may have been cut off, changed by a person, or damaged by a disk: one flipped
bit in a model changes its ranking, and no library says so. Here it is refused with one sentence
if it is no ordinary file (a pipe would be waited for for ever), or if its checksum differs. There
are two checksums, both SHA-256, which is the fastest of the standard library where the processor
helps: 0.7 GB a second on one core.

    checksums.txt   of the files in its folder that belong together; `sha256sum -c` reads it too
    the seal        last line of a file that stands alone: a checkpoint, the scores of a fold

Files of earlier versions have neither, and are read without this check.
"""

import errno
import hashlib
import io
import os
import re
import stat
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from onesided.core.errors import CheckpointError, first_line
from onesided.storage.arrays import NoArrays, arrays_in

CHECKSUMS = "checksums.txt"
AGAIN = "Restore it from a copy, or train again with --overwrite."
MOST_BYTES = 2**31
"""Most bytes of a file that is read as a whole, packed and unpacked."""
SEAL = b"\nsha256 "
SEAL_BYTES = len(SEAL) + 64 + 1
_ZIP_ENDS, _ZIP_END_BYTES = b"PK\5\6", 22
_LINE = re.compile(r"([0-9a-f]{64})  ([^\n]+)\n")
_OWN_LINE = "# lines above: "
_KINDS = (
    (stat.S_ISDIR, "folder"),
    (stat.S_ISFIFO, "pipe"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
)


def damaged(path: Path, reason: object, remedy: str = AGAIN) -> CheckpointError:
    """Return the error that refuses a file of ours: the reason, and what to do."""
    return CheckpointError(f"{path} is damaged ({reason}). {remedy}")


def open_own(path: Path) -> io.BufferedReader:
    """Open a file to read; raise OSError for a folder, pipe or device, and never wait for one."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "thing")
    raise OSError(errno.EINVAL, f"it is a {kind}, where a file was written", str(path))


def why(error: BaseException) -> str:
    """Return the reason of a refusal in its first line, without the path again."""
    named = isinstance(error, OSError) and error.strerror
    return named if named else first_line(error)


def read_own(path: Path, remedy: str = AGAIN) -> bytes:
    """Return the content of a small file; raise where it is missing, no file, or changed.

    Raises:
        FileNotFoundError: It is not there; what that means is known to the caller.
        CheckpointError: It is there and cannot be trusted.
    """
    try:
        with open_own(path) as file:
            size = os.fstat(file.fileno()).st_size
            content = file.read(MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except (OSError, MemoryError) as error:
        raise damaged(path, why(error), remedy) from None
    if len(content) > MOST_BYTES:
        raise damaged(path, f"it has {size} bytes, where at most {MOST_BYTES} are read", remedy)
    check(path, hashlib.sha256(content).hexdigest(), remedy)
    return content


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file of any size."""
    with open_own(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check(path: Path, digest: str, remedy: str = AGAIN) -> None:
    """Raise where the folder's checksums name this file with another digest."""
    listed = read_checksums(path.parent).get(path.name, digest)
    if listed != digest:
        raise CheckpointError(
            f"{path} does not have the checksum that {CHECKSUMS} beside it names, so one of its "
            f"bits changed since it was written, or it belongs to other files. {remedy}"
        )


def check_all(folder: Path, *, but: Collection[str] = (), remedy: str = AGAIN) -> None:
    """Raise where a file that the folder's checksums name is missing or changed."""
    for name in read_checksums(folder):
        if name in but:
            continue
        path = folder / name
        try:
            check(path, digest_of(path), remedy)
        except FileNotFoundError:
            raise CheckpointError(
                f"{path} is missing, and {CHECKSUMS} beside it names it. {remedy}"
            ) from None
        except OSError as error:
            raise damaged(path, why(error), remedy) from None


def read_checksums(folder: Path) -> dict[str, str]:
    """Return digest by file name; {} for a folder of a version that kept none."""
    path = folder / CHECKSUMS
    remedy = "Restore it from a copy; where all other files are sound, delete it."
    try:
        with open_own(path) as file:
            text = file.read(2**20).decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise damaged(path, why(error), remedy) from None
    *lines, last = text.splitlines(keepends=True) or [""]
    found = [_LINE.fullmatch(line) for line in lines]
    if last != _own_line("".join(lines)) or None in found:
        raise damaged(path, "its last line does not fit the lines above", remedy)
    return {match[2]: match[1] for match in found if match}


def checksums_text(digests: Mapping[str, str]) -> str:
    """Return the content of `checksums.txt`; its last line makes it notice its own damage."""
    lines = "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))
    return lines + _own_line(lines)


def _own_line(lines: str) -> str:
    return f"{_OWN_LINE}{hashlib.sha256(lines.encode()).hexdigest()}\n"


def seal_of(digest: str) -> bytes:
    """Return the last line of a file that stands alone."""
    return SEAL + digest.encode() + b"\n"


def check_seal(path: Path, file: BinaryIO, remedy: str = AGAIN) -> int:
    """Return the length of a file without its seal; raise where the seal does not fit.

    A file without a seal is of an earlier version, and has its whole length. It is a zip archive
    without a comment: one that ends otherwise has lost a part of its seal.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    first = file.read(2)
    file.seek(max(0, size - SEAL_BYTES))
    last = file.read()
    file.seek(0)
    if not last.startswith(SEAL):
        if first == _ZIP_ENDS[:2] and last[-_ZIP_END_BYTES:][:4] != _ZIP_ENDS:
            raise damaged(path, "its end is missing or changed", remedy)
        return size
    digest, left = hashlib.sha256(), size - SEAL_BYTES
    while left:
        block = file.read(min(left, 2**20))
        digest.update(block)
        left -= len(block)
    file.seek(0)
    if last != seal_of(digest.hexdigest()):
        raise damaged(path, "it does not have its checksum", remedy)
    return size - SEAL_BYTES


def read_arrays(path: Path, remedy: str = AGAIN) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file; raise where it is missing or damaged."""
    content = read_own(path, remedy)
    length = check_seal(path, io.BytesIO(content), remedy)
    try:
        found = arrays_in(content[:length])
    except NoArrays as error:
        raise CheckpointError(f"{path} cannot be read ({error}). {remedy}") from None
    if "" in found:
        raise damaged(
            path, "it holds a single array, where an archive of arrays was written", remedy
        )
    return found
