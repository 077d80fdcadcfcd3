"""Many image files to one array, in bounded memory, whatever the number of threads."""

import hashlib
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from onesided.core.errors import ConfigError, DataError, DataNotFound
from onesided.core.threads import available_cores
from onesided.data.problem.samples import are_nearly_black
from onesided.data.read import cache as caches
from onesided.data.read.cache import CacheEntry, DecodeCache, Outcome, Stored, Writer
from onesided.data.read.files import ACCEPTED_ENDINGS, Found, Unreadable
from onesided.data.read.picture import Header, channels_phrase, decode, is_grey, read_header
from onesided.storage.names import printable
from onesided.storage.progress import Progress

SIDES = (32, 48, 64, 96, 128, 160, 192, 224)
"""Sides to choose from where none is given."""
LARGEST_SIDE = 128
"""The largest that is chosen for a network from scratch, whose cost grows with the area."""
Size = tuple[int, int] | int | None
"""Height and width; or the largest side to choose; or None for `LARGEST_SIDE`."""
DARK = 64
"""A quarter of the range: what reflectances of 0..10000 leave of 16 bits, and 12-bit data."""
RARE = 0.1
"""Share of colour files up to which it is worth a look whether they are grey in truth."""
CHUNK = 128
"""Decoded images that may wait for their turn: enough to keep the threads busy."""
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Decoded:
    """Images in the order of the files, without the unreadable ones.

    Attributes:
        values: The pixels, in memory or in a file; see `DecodeCache`.
        kept: Name of each image.
        digests: SHA-256 of each image's pixels, to find the same content twice, however its file
            was written.
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


@dataclass(frozen=True)
class Survey:
    """What the headers of some files say.

    Attributes:
        headers: By row, of the files that can be opened.
        unreadable: By row, why the others cannot.
        shape: Of the array of all that can be opened.
        notices: What a person should know, in sentences.
    """

    headers: Mapping[int, Header]
    unreadable: Mapping[int, str]
    shape: tuple[int, int, int, int]
    notices: tuple[str, ...]

    def all(self, outcomes: Sequence[Outcome]) -> list[Outcome]:
        """Return the outcome of every file from those of the files that can be opened."""
        read = dict(zip(self.headers, outcomes, strict=True))
        read |= {row: Outcome(reason=reason) for row, reason in self.unreadable.items()}
        return [read[row] for row in range(len(read))]

    def notices_after(self, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
        """Return all notices once the files that can be opened are decoded.

        Files of which all are nearly black are refused.
        """
        _check_brightness([one.brightest for one in outcomes if not one.reason])
        read = [
            (header, one)
            for header, one in zip(self.headers.values(), outcomes, strict=True)
            if not one.reason
        ]
        deep = [one.brightest for header, one in read if header.is_deep]
        alpha = sum(header.has_alpha for header, _ in read)
        return (
            *self.notices,
            *_notice_of_depth(deep, len(read)),
            *_notice_of_transparency(alpha, len(read)),
        )


def survey_images(
    found: Sequence[Found],
    *,
    size: Size = None,
    tolerate: float = 0.05,
    what: str = "the list of images",
    progress: Progress | None = None,
) -> Survey:
    """Read the headers of files, and choose the size and channels of their array from them.

    The arguments are those of `decode_all`, which does the same and decodes.
    """
    with _reading(len(found), progress=progress) as each:
        return _surveyed(found, each, channels=None, size=size, tolerate=tolerate, what=what)


def decode_surveyed(
    files: Sequence[Path], shape: Sequence[int]
) -> tuple[UInt8[np.ndarray, "n channels height width"], list[Outcome]]:
    """Return the pixels of those files that can be read, and the outcome of every file.

    They are some of the files of a survey, and `shape` is that of one image. One thread decodes:
    several processes do this at a time.
    """
    channels, height, width = shape
    found = [Found(file, "") for file in files]
    outcomes, pixels = list[Outcome](), list[np.ndarray]()
    with _reading(len(files), workers=1) as each:
        loaded = each(
            found,
            range(len(found)),
            lambda file: decode(file.path, channels=channels, size=(height, width)),
        )
        for _, one in loaded:
            if isinstance(one, Unreadable):
                outcomes.append(Outcome(reason=one.reason))
            else:
                outcomes.append(Outcome(brightest=int(one.max())))
                pixels.append(one)
    values = np.stack(pixels) if pixels else np.empty((0, *shape), np.uint8)
    return values, outcomes


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
        channels: Wanted channels; None takes what most files have.
        size: Wanted height and width; else chosen by `choose_size`.
        known: Which files have a known label. Other files with the same content as one of
            these are left out. None leaves nothing out.
        tolerate: Share of the files that may be unreadable.
        what: What messages call these files, for example their folder.
        progress: Called with how many files' worth of reading is done, and how many files there
            are; half of the work is half of the files.
        cache: Keeps many pixels in a file, for this start and the next; None keeps them in
            memory.
        workers: Threads; None takes the usual number.
    """
    if not 0 <= tolerate <= 1:
        raise ConfigError(
            f"tolerate is the share of files that may be unreadable, from 0 to 1; got {tolerate}."
        )
    entry = None
    if cache is not None:
        flags = known and np.packbits(np.array(known, bool)).tobytes().hex()
        entry = cache.entry(found, {"channels": channels, "size": size, "known": flags})
    stored = entry.load() if entry else None
    if stored is None:
        openings = 2 * len(found) + len(_after_others(known))
        with _reading(len(found), openings, progress, workers) as each:
            survey = _surveyed(
                found, each, channels=channels, size=size, tolerate=tolerate, what=what
            )
            job = _Job(found, known, survey)
            stored = job.store(each, entry)
    decoded = _decoded(found, stored)
    check_readable(what, len(found), decoded.skipped, tolerate)
    return decoded


def decode_chunk(
    found: Sequence[Found], *, channels: int, size: tuple[int, int], what: str
) -> tuple[UInt8[np.ndarray, "n channels height width"], dict[int, str]]:
    """Return the pixels of the readable files, and by index why the others are unreadable.

    This is for a trained model: size and channels are its own, so no header is read first.
    A file with other channels is no accident like a damaged one. It raises `DataError`.
    """
    values = np.empty((len(found), channels, *size), np.uint8)
    reasons: dict[int, str] = {}
    with _reading(len(found)) as each:
        loaded = each(
            found, range(len(found)), lambda file: decode(file.path, channels=channels, size=size)
        )
        for index, pixels in loaded:
            if isinstance(pixels, Unreadable):
                reasons[index] = pixels.reason
                with suppress(Unreadable):
                    _check_channels(found[index], read_header(found[index].path), channels, what)
            else:
                values[index - len(reasons)] = pixels
    return values[: len(found) - len(reasons)], reasons


def choose_size(shapes: Sequence[tuple[int, int]], largest: int = LARGEST_SIDE) -> tuple[int, int]:
    """Return the height and width for images of these heights and widths.

    Small images of one size keep it, since resampling only loses. Otherwise the median
    side decides, rounded to the nearest of `SIDES`; the smaller of two equally near.
    No side is longer than `largest`.
    """
    if len(set(shapes)) == 1 and max(shapes[0]) <= largest:
        return shapes[0]
    middle = median(side for shape in shapes for side in shape)
    allowed = [side for side in SIDES if side <= largest] or [largest]
    side = min(allowed, key=lambda candidate: abs(candidate - middle))
    return side, side


def check_readable(
    what: str,
    total: int,
    skipped: Sequence[tuple[str, str]],
    tolerate: float,
    *,
    unreadable: int | None = None,
    noun: str = "image",
) -> None:
    """Raise if no file, or too small a share of the files, could be read.

    Args:
        what: What the message calls the files.
        total: How many files there are.
        skipped: Name and reason of each unreadable file.
        tolerate: Share that may be unreadable.
        unreadable: How many are unreadable, where `skipped` holds the first alone.
        noun: What one of them is called.
    """
    unreadable = len(skipped) if unreadable is None else unreadable
    name, reason = skipped[0] if skipped else ("", "")
    first = f"{printable(name)} {reason}".replace("\n", "\\n")  # one line, whatever the name
    if unreadable == total:
        files = "files" if noun == "image" else f"{noun}s"
        found = f"none of {total} {files} can be read; the first: {first}"
        endings = f" Accepted are {', '.join(ACCEPTED_ENDINGS)}." if noun == "image" else ""
        raise DataNotFound(
            f"No readable {noun} in {what}: {found if total else 'it is empty'}.{endings}"
        )
    # The quotient is the double nearest to the true share, as the setting's literal is.
    share = unreadable / total
    if share > tolerate:
        enough = math.ceil(100 * share) / 100
        raise DataError(
            f"{unreadable} of {total} {noun}s in {what} cannot be read, more than the "
            f"{100 * tolerate:.3g} % that are tolerated. The first: {first}. "
            f"Repair or remove them, or go on without them by --tolerate {enough:g}."
        )


def _agree_on_channels(
    found: Sequence[Found], headers: Mapping[int, Header], wanted: int | None, what: str
) -> tuple[int, tuple[str, ...]]:
    """Return the channels of the array, or name the first file that does not fit."""
    counts = Counter(header.channels for header in headers.values())
    most = max(counts, key=lambda channels: counts[channels])
    agreed = wanted or (3 if most == 1 and 3 in counts else most)
    rare = set(counts) == {1, 3} and counts[3] <= RARE * len(headers)
    if most == 1 and rare and wanted in (None, 1):
        # Programs save grey images as colour; a few of them must not triple all the others.
        coloured = [found[row] for row, header in headers.items() if header.channels == 3]
        if all(map(_is_grey, coloured)):
            return 1, ()
    for row, header in headers.items():
        _check_channels(found[row], header, agreed, what)
    if agreed != 3 or not counts[1]:
        return agreed, ()
    first = next(found[row].name for row, header in headers.items() if header.channels == 1)
    return agreed, (
        f"{counts[1]} of {len(headers)} images are grey and were repeated to three channels, "
        f"to go with colour; the first is {printable(first)}.",
    )


def _is_grey(file: Found) -> bool:
    try:
        return is_grey(decode(file.path))
    except Unreadable:
        return True  # it is counted and told as unreadable, whatever the others are


def _check_channels(file: Found, header: Header, agreed: int, what: str) -> None:
    """Raise if a file cannot have the agreed channels.

    Grey is a colour; any other change of channels would invent or lose something.
    """
    if header.channels not in ({1, 3} if agreed == 3 else {agreed}):
        raise DataError(
            f"{printable(file.name)} has {channels_phrase(header.channels)}, but "
            f"{channels_phrase(agreed)} are needed to go with the others in {what}. "
            "Convert it, or move it away."
        )


def _check_brightness(brightest: Sequence[int]) -> None:
    """Refuse files of which all are nearly black, each with its highest value of 255.

    Masks and drawings are often stored as 0 and 1, or 0 to 15, meant as black to white.
    """
    highest = max(brightest, default=0)
    if are_nearly_black(highest, len(brightest)):
        raise DataError(
            f"No value in {len(brightest)} images is above {highest} of 255, so all of them are "
            f"nearly black. If {highest} means white, multiply all values by {255 // highest}."
        )


def _notice_of_depth(brightest_of_deep: Sequence[int], images: int) -> tuple[str, ...]:
    """Return what is done with 16-bit images, each with its highest value of 255."""
    if not brightest_of_deep:
        return ()
    brightest = max(brightest_of_deep)
    if brightest >= DARK:
        return (
            f"{len(brightest_of_deep)} of {images} images have 16 bits per value and are scaled to "
            "8 bits, divided by 257.",
        )
    return (
        f"{len(brightest_of_deep)} images have 16 bits per value but use only the dark end: their "
        f"highest value is about {brightest * 257} of 65535, {brightest} of 255 after scaling to "
        "8 bits. Stretch them all by one factor beforehand to keep fine differences.",
    )


def _notice_of_transparency(transparent: int, images: int) -> tuple[str, ...]:
    """Return what is done with images that have an alpha channel."""
    if not transparent:
        return ()
    return (
        f"{transparent} of {images} images have an alpha channel; their transparent parts count as "
        "black.",
    )


class _Each:
    """Applies a function to files by a pool of threads, in order, and reports the progress.

    Pillow decodes outside Python's global lock, so threads are enough.
    """

    def __init__(
        self, pool: Executor, progress: Progress | None, *, files: int, openings: int
    ) -> None:
        self.pool, self.progress, self.files = pool, progress, files
        self.openings, self.done = openings, 0

    def __call__(
        self, found: Sequence[Found], rows: Sequence[int], function: Callable[[Found], _Result]
    ) -> Iterator[tuple[int, _Result | Unreadable]]:
        """Yield each of these rows with the function's result, or why the file is unreadable."""

        def attempt(file: Found) -> _Result | Unreadable:
            try:
                return function(file)
            except Unreadable as error:
                return error

        # Executor.map alone would take all files at once and pile up their pixels.
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            results = self.pool.map(attempt, [found[row] for row in chunk])
            yield from zip(chunk, results, strict=True)
            self.done += len(chunk)
            if self.progress is not None:
                # A file is opened more than once, but a person counts files.
                self.progress(self.done * self.files // self.openings, self.files)


@contextmanager
def _reading(
    files: int,
    openings: int | None = None,
    progress: Progress | None = None,
    workers: int | None = None,
) -> Iterator[_Each]:
    # Filters belong to the process, so they are set before threads start, not in them.
    with warnings.catch_warnings():
        # Pillow's warnings (odd EXIF) are no news, and what it refuses is listed.
        warnings.filterwarnings("ignore", module=r"PIL\.")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with ThreadPoolExecutor(workers or min(8, available_cores())) as pool:
            yield _Each(pool, progress, files=files, openings=openings or files)


class _Memory:
    """Takes the pixels where they are too few for a file; see `Writer`."""

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
    """Files whose headers were read, and the shape of their array."""

    found: Sequence[Found]
    known: Sequence[bool] | None
    survey: Survey

    def store(self, each: _Each, entry: CacheEntry | None) -> Stored:
        """Decode into memory, or into the cache where that is worth a file."""
        survey = self.survey
        if entry is None or math.prod(survey.shape) < caches.WORTH_A_FILE:
            memory = _Memory(survey.shape)
            notices = self._fill(memory, each)
            return Stored(memory.values[: memory.rows], survey.all(memory.outcomes), notices)
        with entry.writing(survey.shape, survey.unreadable) as writer:
            if writer is not None:
                writer.conclude(self._fill(writer, each))
        stored = entry.load()
        if stored is None:
            raise DataError("Decoded images vanished while they were read. Start again.")
        return stored

    def _fill(self, store: _Memory | Writer, each: _Each) -> tuple[str, ...]:
        """Decode what is not stored yet; return notices about all of it."""
        channels, height, width = self.survey.shape[1:]

        def load(file: Found) -> tuple[np.ndarray, str]:
            pixels = decode(file.path, channels=channels, size=(height, width))
            return pixels, hashlib.sha256(pixels.tobytes()).hexdigest()

        done, rows = len(store.outcomes), [*self.survey.headers]
        each.done += done
        digests = self._later_digests(each, load)
        for row, outcome in zip(rows, store.outcomes[:done], strict=False):
            if self._is_known(row):
                digests.add(outcome.digest)
        for row, loaded in each(self.found, rows[done:], load):
            if isinstance(loaded, Unreadable):
                store.add(Outcome(reason=loaded.reason), None)
                continue
            pixels, digest = loaded
            if self._is_known(row):
                digests.add(digest)
            is_copy = digest in digests and not self._is_known(row)
            outcome = Outcome(digest, is_copy=is_copy, brightest=int(pixels.max()))
            store.add(outcome, None if is_copy else pixels)
        return self.survey.notices_after(store.outcomes)

    def _is_known(self, row: int) -> bool:
        """Whether a file counts as known; where nobody said, all do, and none is a copy."""
        return self.known is None or self.known[row]

    def _later_digests(
        self, each: _Each, load: Callable[[Found], tuple[np.ndarray, str]]
    ) -> set[str]:
        """Decode known files that come after others, once more: copies of them come before them."""
        rows = [row for row in _after_others(self.known) if row in self.survey.headers]
        loads = (loaded for _, loaded in each(self.found, rows, load))
        return {loaded[1] for loaded in loads if not isinstance(loaded, Unreadable)}


def _after_others(known: Sequence[bool] | None) -> list[int]:
    """Return the rows of known files that come after one that is not known."""
    if known is None or all(known):
        return []
    first = [*known].index(False)
    return [row for row, is_known in enumerate(known) if is_known and row > first]


def _decoded(found: Sequence[Found], stored: Stored) -> Decoded:
    def read() -> Iterator[tuple[str, Outcome]]:
        return zip((file.name for file in found), stored.outcomes, strict=True)

    return Decoded(
        values=stored.values,
        kept=tuple(name for name, outcome in read() if outcome.has_pixels),
        digests=tuple(outcome.digest for _, outcome in read() if outcome.has_pixels),
        skipped=tuple((name, outcome.reason) for name, outcome in read() if outcome.reason),
        notices=stored.notices,
        copies=tuple((name, outcome.digest) for name, outcome in read() if outcome.is_copy),
    )


def _surveyed(
    found: Sequence[Found],
    each: _Each,
    *,
    channels: int | None,
    size: Size,
    tolerate: float,
    what: str,
) -> Survey:
    headers, reasons = _read_headers(found, each)
    check_readable(what, len(found), [(found[row].name, reasons[row]) for row in reasons], tolerate)
    count, notices = _agree_on_channels(found, headers, channels, what)
    if not isinstance(size, tuple):
        shapes = [(header.height, header.width) for header in headers.values()]
        size = choose_size(shapes, LARGEST_SIDE if size is None else size)
    return Survey(headers, reasons, (len(headers), count, *size), notices)


def _read_headers(found: Sequence[Found], each: _Each) -> tuple[dict[int, Header], dict[int, str]]:
    headers: dict[int, Header] = {}
    reasons: dict[int, str] = {}
    kinds: dict[Header, Header] = {}  # a folder's images are mostly alike: each kind is kept once
    for row, header in each(found, range(len(found)), lambda file: read_header(file.path)):
        if isinstance(header, Unreadable):
            reasons[row] = header.reason
        else:
            headers[row] = kinds.setdefault(header, header)
    return headers, reasons
