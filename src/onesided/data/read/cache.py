"""Decoded images in a file, so that folders larger than memory are decoded once.

An entry of the cache is a folder named by a hash of its content: every file's path, size
and time of change, the wanted size and channels, and the version of the decoder.

    <key>.lock      held by the writer; beside the folders, which are renamed
    <key>.part/     being written; `journal` counts the files, and the next start resumes there
    <key>/          complete: `pixels` (rows of bytes), `journal` (outcome of each file),
                    `index.json` (shape, files that cannot be opened, sentences)

The folder is renamed when it is complete, so a folder with the final name is complete.
"""

import hashlib
import json
import math
import mmap
import os
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import PIL

from onesided.core.errors import CheckpointError, OnesidedError
from onesided.data.read.files import Found, stamp
from onesided.storage.atomic import rename, write_text
from onesided.storage.journal import Journal
from onesided.storage.lock import alone
from onesided.storage.names import shown_path
from onesided.storage.own_file import CHECKSUMS, checksums_text, open_own, read_own

FORMAT = 2
WORTH_A_FILE = 256 * 2**20
"""From this many decoded bytes a file is written; fewer stay in memory."""
SYNC_BYTES = 32 * 2**20
"""Decoded bytes that a kill may cost."""
FORGET_BYTES = 32 * 2**20
"""Bytes of a mapped file that may count as this process's memory."""

README = """\
Images that onesided decoded, so that the next start need not do it again.
This folder may be deleted at any time when no training runs; nothing else is lost.
"""
# Linux maps sixteen pages around the one that was touched.
_TOUCHED = 16 * mmap.PAGESIZE


class MappedImages(np.ndarray):
    """Images in a file, of which memory holds little more than the rows just asked for.

    Pages that were read count as memory of this process until the system takes them back.
    We return them after each read; the system may still keep them in its own cache.
    """

    mapping: mmap.mmap | None = None
    checksums: np.ndarray | None = None
    path = Path()
    touched = 0

    @classmethod
    def open(cls, path: Path, shape: tuple[int, ...], checksums: Sequence[int]) -> "MappedImages":
        """Return the file's bytes as an array that cannot be written.

        `checksums` holds the CRC-32 of each row. A row is checked whenever it is copied, not all
        of them now: the file may be larger than memory.
        """
        with open_own(path) as file:
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        images = np.frombuffer(mapping, np.uint8).reshape(shape).view(cls)
        images.mapping, images.path = mapping, path
        images.checksums = np.array(checksums, np.int64)
        return images

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - as numpy declares it
        if not isinstance(index, np.ndarray) or index.ndim != 1 or index.dtype == bool:
            return super().__getitem__(index)
        # Indexing by an array copies, so the pages behind it are needed for a moment only.
        copy = np.empty((len(index), *self.shape[1:]), self.dtype)
        row_bytes = math.prod(self.shape[1:]) + _TOUCHED
        block = max(1, FORGET_BYTES // row_bytes)
        for start in range(0, len(index), block):
            copy[start : start + block] = super().__getitem__(index[start : start + block])
            self._check(index[start : start + block], copy[start : start + block])
            self.touched += min(block, len(index) - start) * row_bytes
            if self.touched >= FORGET_BYTES and self.mapping is not None:
                self.touched = 0
                if hasattr(mmap, "MADV_DONTNEED"):
                    self.mapping.madvise(mmap.MADV_DONTNEED)
        return copy

    def _check(self, index: np.ndarray, rows: np.ndarray) -> None:
        """Raise where a row has other bits than were written."""
        if self.checksums is None:
            return
        for row, wanted in zip(rows, self.checksums[index].tolist(), strict=True):
            if zlib.crc32(row.data) != wanted:
                raise CheckpointError(
                    f"The decoded images in {shown_path(self.path.parent)} are damaged (a row does "
                    "not have its checksum). Delete that folder, and give the same command again: "
                    "they are then decoded again."
                )


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of decoding one file.

    Attributes:
        digest: SHA-256 of its pixels; empty where it cannot be read.
        reason: Why it cannot be read; empty where it can.
        is_copy: Its content is known from another file, so its pixels were left out.
        brightest: Highest value of its pixels.
        checksum: CRC-32 of its pixels.
    """

    digest: str = ""
    reason: str = ""
    is_copy: bool = False
    brightest: int = 0
    checksum: int = 0

    @property
    def has_pixels(self) -> bool:
        """Whether a row of the array is this file."""
        return not (self.reason or self.is_copy)


@dataclass(frozen=True)
class Stored:
    """Pixels of the files that have some, in order, and the outcome of every file."""

    values: np.ndarray
    outcomes: Sequence[Outcome]
    notices: tuple[str, ...]


@dataclass(frozen=True)
class DecodeCache:
    """A folder of decoded images, which several runs may share."""

    folder: Path

    def entry(self, found: Sequence[Found], settings: Mapping[str, object]) -> "CacheEntry":
        """Return the entry for these files decoded with these settings."""
        about = {"format": FORMAT, "pillow": PIL.__version__, **settings}
        digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
        for file in found:
            name = os.fsencode(f"{os.path.abspath(file.location)}\0{file.name}\0")
            digest.update(name + stamp(file) + b"\0")
        return CacheEntry(self.folder, digest.hexdigest()[:32], len(found))


@dataclass(frozen=True)
class CacheEntry:
    """A set of so many files in the cache folder; `key` is a hash of what is decoded."""

    folder: Path
    key: str
    files: int

    def load(self) -> Stored | None:
        """Return what is stored, or None where it is missing or damaged."""
        path = self.folder / self.key
        if not path.is_dir():
            return None
        try:
            index = json.loads(read_own(path / "index.json"))
            return self._stored(path, index)
        except (
            *(OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError),
            CheckpointError,
        ):
            # A damaged entry is decoded again, and nothing is lost. A second process may have
            # found the same damage, and may be removing the same files.
            shutil.rmtree(path, ignore_errors=True)
            return None

    def _stored(self, path: Path, index: Mapping[str, Any]) -> Stored:
        shape = tuple(index["shape"])
        if (path / "pixels").stat().st_size != math.prod(shape):
            raise ValueError("the file of pixels is of another length")
        outcomes: list[Outcome] = [Outcome()] * self.files
        unreadable = {int(row): reason for row, reason in index["unreadable"].items()}
        for row, reason in unreadable.items():
            outcomes[row] = Outcome(reason=reason)
        rows = (row for row in range(self.files) if row not in unreadable)
        entries = Journal(path / "journal", index["plan"]).entries()
        written = (Outcome(*fields) for entry in entries for fields in entry)
        for row, outcome in zip(rows, written, strict=True):
            outcomes[row] = outcome
        checksums = [outcome.checksum for outcome in outcomes if outcome.has_pixels]
        images = MappedImages.open(path / "pixels", shape, checksums)
        return Stored(images, outcomes, tuple(index["notices"]))

    @contextmanager
    def writing(
        self, shape: tuple[int, ...], unreadable: Mapping[int, str]
    ) -> "Iterator[Writer | None]":
        """Give a writer of pixels, or None where another process has just stored them.

        The entry is complete at the end of the block.

        Args:
            shape: Of the array if no pixels are damaged.
            unreadable: Files that cannot be opened, by row; the writer does not get them.
        """
        part = self.folder / f"{self.key}.part"
        with _explaining_refusals(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / "README.txt").write_text(README, encoding="utf-8")
        with alone(self.folder / f"{self.key}.lock"):
            if (self.folder / self.key).is_dir():
                yield None
                return
            with _explaining_refusals(self.folder):
                part.mkdir(exist_ok=True)
            self._check_room(part, math.prod(shape))
            with Writer.opened(part, shape, unreadable) as writer:
                yield writer
            rename(part, self.folder / self.key)

    def _check_room(self, part: Path, wanted: int) -> None:
        pixels = part / "pixels"
        already = pixels.stat().st_size if pixels.exists() else 0
        free = shutil.disk_usage(part).free
        if free + already < wanted:
            raise OnesidedError(
                f"{shown_path(self.folder)} has room for {free / 1e9:.1f} GB, but the decoded "
                f"images need {(wanted - already) / 1e9:.1f} GB. Make room, choose another folder "
                "with --cache, or smaller images with --set data.image_size=32."
            )


class Writer:
    """Takes pixels file by file; resumes where a killed process stopped.

    Attributes:
        outcomes: Of the files so far, also in an earlier process.
    """

    append: Callable[[object], None]

    def __init__(
        self, part: Path, shape: tuple[int, ...], unreadable: Mapping[int, str], pixels: BinaryIO
    ) -> None:
        self.part, self.sample_shape, self.pixels = part, shape[1:], pixels
        self.unreadable = {str(row): reason for row, reason in unreadable.items()}
        # Other files may be unreadable after a failing disk was repaired.
        self.plan = {"shape": list(shape), "unreadable": self.unreadable}
        self.journal = Journal(part / "journal", self.plan)
        entries = self.journal.entries()
        try:
            self.outcomes = [Outcome(*fields) for entry in entries for fields in entry]
        except TypeError as error:
            raise self.journal.damaged(str(error)) from None
        self.saved, self.unsaved_bytes = len(self.outcomes), 0

    @classmethod
    @contextmanager
    def opened(
        cls, part: Path, shape: tuple[int, ...], unreadable: Mapping[int, str]
    ) -> Iterator["Writer"]:
        """Resume a part, or begin it."""
        path = part / "pixels"
        path.touch()
        with path.open("r+b") as pixels:
            writer = cls(part, shape, unreadable, pixels)
            length = writer.rows * math.prod(writer.sample_shape)
            if path.stat().st_size < length:  # shorter than the journal says: start again
                writer.journal.path.unlink()
                writer.outcomes, writer.saved, length = [], 0, 0
            pixels.truncate(length)
            pixels.seek(length)
            with writer.journal.writing() as writer.append:
                yield writer

    @property
    def rows(self) -> int:
        """Images written so far."""
        return sum(outcome.has_pixels for outcome in self.outcomes)

    def add(self, outcome: Outcome, pixels: np.ndarray | None) -> None:
        """Take the next file, with its pixels if it has any."""
        if pixels is not None:
            outcome = replace(outcome, checksum=zlib.crc32(pixels.tobytes()))
        self.outcomes.append(outcome)
        with _explaining_refusals(self.part.parent):
            if pixels is not None:
                self.unsaved_bytes += self.pixels.write(pixels.tobytes())
            if self.unsaved_bytes >= SYNC_BYTES:
                self._save()

    def conclude(self, notices: Sequence[str]) -> None:
        """Write the index of the complete entry."""
        index = {
            "shape": [self.rows, *self.sample_shape],
            "plan": self.plan,
            "unreadable": self.unreadable,
            "notices": list(notices),
        }
        with _explaining_refusals(self.part.parent):
            self._save()
            text = json.dumps(index)
            write_text(self.part / "index.json", text)
            digest = hashlib.sha256(text.encode()).hexdigest()
            write_text(self.part / CHECKSUMS, checksums_text({"index.json": digest}))

    def _save(self) -> None:
        # Pixels first: the journal must not list what is not on the disk yet.
        self.pixels.flush()
        os.fsync(self.pixels.fileno())
        self.append([astuple(outcome) for outcome in self.outcomes[self.saved :]])
        self.saved, self.unsaved_bytes = len(self.outcomes), 0


@contextmanager
def _explaining_refusals(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OnesidedError(
            f"Cannot write decoded images to {shown_path(folder)}: {error.strerror}. Make room, or "
            "choose another folder with --cache; the same command resumes."
        ) from None
