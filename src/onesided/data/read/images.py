"""Many image files to one array, in bounded memory, whatever the number of workers."""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from jaxtyping import UInt8

from onesided.core.errors import DataError
from onesided.data.read import cache as caches
from onesided.data.read.agreement import (
    SIDES,
    Size,
    agree_on_channels,
    check_channels,
    check_readable,
    check_tolerance,
    choose_size,
    notice_of_darkness,
    size_for,
)
from onesided.data.read.cache import CacheEntry, DecodeCache, Outcome, Stored
from onesided.data.read.files import ACCEPTED_ENDINGS, Found, Unreadable, find_images
from onesided.data.read.picture import Header, decode, read_header
from onesided.data.read.threads import Each, reading_each
from onesided.storage.names import original_name, printable
from onesided.storage.progress import Progress

__all__ = [
    "ACCEPTED_ENDINGS",
    "SIDES",
    "Decoded",
    "Found",
    "Unreadable",
    "check_readable",
    "choose_size",
    "decode",
    "decode_all",
    "decode_chunk",
    "find_images",
    "original_name",
    "printable",
]


@dataclass(frozen=True)
class Decoded:
    """Images in the order in which they were asked for, without those that were unreadable.

    Attributes:
        values: The pixels, in memory or in a file; see `DecodeCache`.
        kept: Name of each image.
        digests: SHA-256 of the bytes of each file, to find the same content twice.
        skipped: Name of each unreadable file, and why.
        notices: What a person should know, in sentences.
        copies: Name and digest of each file that was left out as a copy of a known one.
    """

    values: UInt8[np.ndarray, "n channels height width"]
    kept: tuple[str, ...]
    digests: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...]
    notices: tuple[str, ...]
    copies: tuple[tuple[str, str], ...] = ()


def decode_all(
    found: Sequence[Found],
    *,
    channels: int | None = None,
    size: Size = None,
    known: Sequence[bool] | None = None,
    tolerate: float = 0.05,
    what: str = "the list of images",
    progress: Progress | None = None,
    cache: DecodeCache | None = None,
    workers: int | None = None,
) -> Decoded:
    """Decode files to one array of equal size and channels, skipping a few unreadable ones.

    Every file is opened twice: for its header, from which size and channels are chosen
    where they are not given, and for its pixels.

    Args:
        found: The files, each with a name of its own.
        channels: Wanted channels; None takes what the files agree on.
        size: Wanted height and width; else chosen by `choose_size`.
        known: Which files are known: the others are left out where they have the content
            of one of these. None leaves nothing out.
        tolerate: Share of the files that may be unreadable.
        what: What to call these files in messages, for example their folder.
        progress: Called with how much is done and how much there is.
        cache: Keeps the pixels, if they are many, in a file for this start and the next.
            None keeps them in memory.
        workers: Threads, since Pillow decodes outside Python's lock.
    """
    check_tolerance(tolerate)
    entry = None
    if cache is not None:
        wanted = {"channels": channels, "size": size, "known": known and _bits(known)}
        entry = cache.entry(found, wanted)
    stored = entry.load() if entry else None
    if stored is None:
        with reading_each(2 * len(found) + sum(known or ()), progress, workers) as each:
            headers, reasons = _survey(found, each)
            check_readable(what, len(found), _named(found, reasons), tolerate)
            count, notices = agree_on_channels(found, headers, channels, what)
            side = size_for(size, [(h.height, h.width) for h in headers.values()])
            job = _Job(found, known, headers, reasons, (len(headers), count, *side), notices)
            stored = job.store(each, entry)
    decoded = _decoded(found, stored)
    check_readable(what, len(found), decoded.skipped, tolerate)
    return decoded


def decode_chunk(
    found: Sequence[Found], *, channels: int, size: tuple[int, int], what: str
) -> tuple[UInt8[np.ndarray, "n channels height width"], dict[int, str]]:
    """Return the pixels of the readable files, and why others, by place, are not readable.

    For a model that is there: size and channels are its own, so no header is read first.
    A file whose channels do not fit is no accident like a damaged one, and is refused.
    """
    values = np.empty((len(found), channels, *size), np.uint8)
    reasons: dict[int, str] = {}
    with reading_each(len(found)) as each:
        places = range(len(found))
        for place, pixels in each(
            found, places, lambda file: decode(file.path, channels=channels, size=size)
        ):
            if isinstance(pixels, Unreadable):
                _check_fits(found[place], channels, what)
                reasons[place] = pixels.reason
            else:
                values[place - len(reasons)] = pixels
    return values[: len(found) - len(reasons)], reasons


def _check_fits(file: Found, channels: int, what: str) -> None:
    try:
        header = read_header(file.path)
    except Unreadable:
        return
    check_channels(file, header, channels, what)


class _Store(Protocol):
    """What takes the pixels: memory, or a file of the cache."""

    outcomes: list[Outcome]

    def add(self, outcome: Outcome, pixels: np.ndarray | None) -> None: ...


class _Memory:
    def __init__(self, shape: tuple[int, ...]) -> None:
        self.values, self.rows = np.empty(shape, np.uint8), 0
        self.outcomes: list[Outcome] = []

    def add(self, outcome: Outcome, pixels: np.ndarray | None) -> None:
        self.outcomes.append(outcome)
        if pixels is not None:
            self.values[self.rows] = pixels
            self.rows += 1


@dataclass(frozen=True)
class _Job:
    """Files whose headers were read, and the array that is made of them."""

    found: Sequence[Found]
    known: Sequence[bool] | None
    headers: Mapping[int, Header]
    unreadable: Mapping[int, str]
    shape: tuple[int, ...]
    notices: tuple[str, ...]

    def store(self, each: Each, entry: CacheEntry | None) -> Stored:
        """Decode into memory, or into the cache where that is worth a file."""
        if entry is None or math.prod(self.shape) < caches.WORTH_A_FILE:
            memory = _Memory(self.shape)
            notices = self._fill(memory, each)
            return Stored(memory.values[: memory.rows], self._all(memory.outcomes), notices)
        self._write(entry, each)
        stored = entry.load()
        if stored is None:
            raise DataError("Decoded images vanished while they were read. Start again.")
        return stored

    def _write(self, entry: CacheEntry, each: Each) -> None:
        with entry.writing(self.shape, self.unreadable) as writer:
            if writer is not None:
                writer.conclude(self._fill(writer, each))

    def _fill(self, store: _Store, each: Each) -> tuple[str, ...]:
        """Decode what is not stored yet; return what should be told about all of it."""
        channels, height, width = self.shape[1:]
        digests = self._known_digests(each)

        def load(file: Found) -> tuple[np.ndarray, str]:
            pixels = decode(file.path, channels=channels, size=(height, width))
            return pixels, _digest(file.path)

        done = len(store.outcomes)
        each.done += done
        for row, loaded in each(self.found, [*self.headers][done:], load):
            if isinstance(loaded, Unreadable):
                store.add(Outcome(reason=loaded.reason), None)
                continue
            pixels, digest = loaded
            is_copy = digest in digests and self.known is not None and not self.known[row]
            outcome = Outcome(digest, is_copy=is_copy, brightest=int(pixels.max()))
            store.add(outcome, None if is_copy else pixels)
        judged = zip(self.headers.values(), store.outcomes, strict=True)
        deep = [one.brightest for header, one in judged if header.is_deep and not one.reason]
        return self.notices + notice_of_darkness(deep)

    def _known_digests(self, each: Each) -> set[str]:
        """Read the known files once more, and first: copies of them may come before them."""
        if self.known is None:
            return set()
        rows = [row for row in self.headers if self.known[row]]
        digests = (digest for _, digest in each(self.found, rows, lambda file: _digest(file.path)))
        return {digest for digest in digests if isinstance(digest, str)}

    def _all(self, outcomes: Sequence[Outcome]) -> list[Outcome]:
        """Return the outcome of every file, with those that could not be opened."""
        judged = dict(zip(self.headers, outcomes, strict=True))
        judged |= {row: Outcome(reason=reason) for row, reason in self.unreadable.items()}
        return [judged[row] for row in range(len(self.found))]


def _decoded(found: Sequence[Found], stored: Stored) -> Decoded:
    def judged() -> Iterator[tuple[str, Outcome]]:
        return zip((file.name for file in found), stored.outcomes, strict=True)

    return Decoded(
        values=stored.values,
        kept=tuple(name for name, outcome in judged() if outcome.has_pixels),
        digests=tuple(outcome.digest for _, outcome in judged() if outcome.has_pixels),
        skipped=tuple((name, outcome.reason) for name, outcome in judged() if outcome.reason),
        notices=stored.notices,
        copies=tuple((name, outcome.digest) for name, outcome in judged() if outcome.is_copy),
    )


def _survey(found: Sequence[Found], each: Each) -> tuple[dict[int, Header], dict[int, str]]:
    headers: dict[int, Header] = {}
    reasons: dict[int, str] = {}
    kinds: dict[Header, Header] = {}  # a folder's images are mostly alike: each kind is kept once
    for row, header in each(found, range(len(found)), lambda file: read_header(file.path)):
        if isinstance(header, Unreadable):
            reasons[row] = header.reason
        else:
            headers[row] = kinds.setdefault(header, header)
    return headers, reasons


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise Unreadable(path, f"cannot be opened: {error.strerror or error}") from error


def _bits(flags: Sequence[bool]) -> str:
    return np.packbits(np.array(flags, bool)).tobytes().hex()


def _named(found: Sequence[Found], reasons: Mapping[int, str]) -> tuple[tuple[str, str], ...]:
    return tuple((found[row].name, reasons[row]) for row in sorted(reasons))
