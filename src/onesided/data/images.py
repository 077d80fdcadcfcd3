"""Many image files to one array, in bounded memory, whatever the number of workers."""

import hashlib
import math
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from onesided.core.errors import ConfigError, DataError, DataNotFound
from onesided.data.files import (
    ACCEPTED_ENDINGS,
    Found,
    Unreadable,
    find_images,
    original_name,
    printable,
)
from onesided.data.picture import Header, channels_phrase, decode, read_header

__all__ = [
    "ACCEPTED_ENDINGS",
    "Decoded",
    "Found",
    "Unreadable",
    "check_readable",
    "choose_size",
    "decode",
    "decode_all",
    "find_images",
    "original_name",
    "printable",
]

SIDES = (32, 48, 64, 96, 128)
"""Sides that are chosen from when nobody gives one."""

Progress = Callable[[int, int], None]
"""Called with how much is done and how much there is."""
Allocate = Callable[[tuple[int, ...]], np.ndarray]
"""Gives a writable uint8 array of a shape, in memory or in a file."""

# Decoded images that may wait beside the array: enough to keep the threads busy.
_CHUNK = 128
# A fourth of the range: what reflectances of 0..10000 leave of 16 bits, and 12-bit data.
_DARK = 64
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Decoded:
    """Images in the order in which they were asked for, without those that were unreadable.

    Attributes:
        kept: Name of each image.
        digests: SHA-256 of the bytes of each file, to find the same content twice.
        skipped: Name of each unreadable file, and why.
        notices: What a person should know, in sentences.
    """

    values: UInt8[np.ndarray, "n channels height width"]
    kept: tuple[str, ...]
    digests: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...]
    notices: tuple[str, ...]


def decode_all(
    found: Sequence[Found],
    *,
    channels: int | None = None,
    size: tuple[int, int] | None = None,
    tolerate: float = 0.05,
    what: str = "the list of images",
    progress: Progress | None = None,
    into: Allocate | None = None,
    workers: int | None = None,
) -> Decoded:
    """Decode files to one array of equal size and channels, skipping a few unreadable ones.

    Every file is opened twice: for its header, from which size and channels are chosen
    where they are not given, and for its pixels.

    Args:
        found: The files, each with a name of its own.
        channels: Wanted channels; None takes what the files agree on.
        size: Wanted height and width; None chooses by `choose_size`.
        tolerate: Share of the files that may be unreadable.
        what: What to call these files in messages, for example their folder.
        progress: Called with how much is done and how much there is.
        into: Provides the array, for example a memory map; called once. The images are
            its first rows; a row is left over for each file whose pixels are damaged.
        workers: Threads, since Pillow decodes outside Python's lock.
    """
    _check_share(tolerate)
    with _strict_about_bombs(), ThreadPoolExecutor(workers or _usual_workers()) as pool:
        each = _Each(pool, progress, 2 * len(found))
        headers, reasons = _survey(found, each)
        check_readable(what, len(found), _named(found, reasons), tolerate)
        count, notices = _agree_on_channels(found, headers, channels, what)
        height, width = size or choose_size([(h.height, h.width) for h in headers.values()])
        values = (into or _in_memory)((len(headers), count, height, width))
        digests, damaged = _fill(values, found, list(headers), each)
    skipped = _named(found, reasons | damaged)
    check_readable(what, len(found), skipped, tolerate)
    values = values[: len(digests)]
    return Decoded(
        values=values,
        kept=tuple(found[row].name for row in digests),
        digests=tuple(digests.values()),
        skipped=skipped,
        notices=notices + _notice_of_darkness(values, [headers[row] for row in digests]),
    )


def choose_size(shapes: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the height and width for images of these heights and widths.

    Small images of one size keep it, since resampling only loses. Otherwise the median
    side decides, taken to the nearest of `SIDES`; the smaller of two equally near.
    """
    if len(set(shapes)) == 1 and max(shapes[0]) <= SIDES[-1]:
        return shapes[0]
    middle = median(side for shape in shapes for side in shape)
    side = min(SIDES, key=lambda candidate: abs(candidate - middle))
    return side, side


def check_readable(
    what: str, total: int, skipped: Sequence[tuple[str, str]], tolerate: float
) -> None:
    """Raise if no file, or too small a share of the files, could be read."""
    first = "" if not skipped else f"{printable(skipped[0][0])} {skipped[0][1]}"
    if len(skipped) == total:
        detail = (
            f"none of {total} files can be read; the first: {first}" if first else "it is empty"
        )
        endings = ", ".join(ACCEPTED_ENDINGS)
        raise DataNotFound(f"No readable image in {what}: {detail}. Accepted are {endings}.")
    # The quotient is the double nearest to the true share, as the setting's literal is.
    share = len(skipped) / total
    if share > tolerate:
        enough = math.ceil(100 * share) / 100
        raise DataError(
            f"{len(skipped)} of {total} images in {what} cannot be read, more than the "
            f"{100 * tolerate:.3g} % that are tolerated. The first: {first}. "
            f"Repair or remove them, or go on without them by --tolerate {enough:g}."
        )


class _Each:
    """Applies a function to files by a pool, in order, and tells the progress."""

    def __init__(self, pool: Executor, progress: Progress | None, total: int) -> None:
        self.pool, self.progress, self.total, self.done = pool, progress, total, 0

    def __call__(
        self, files: Mapping[int, Found], function: Callable[[Found], _Result]
    ) -> Iterator[tuple[int, _Result | Unreadable]]:
        def attempt(file: Found) -> _Result | Unreadable:
            try:
                return function(file)
            except Unreadable as error:
                return error

        rows = list(files)
        # Executor.map alone would take all files at once and pile up what they decode to.
        for start in range(0, len(rows), _CHUNK):
            chunk = rows[start : start + _CHUNK]
            yield from zip(
                chunk, self.pool.map(attempt, [files[row] for row in chunk]), strict=True
            )
            self.done += len(chunk)
            if self.progress is not None:
                self.progress(self.done, self.total)


def _survey(found: Sequence[Found], each: _Each) -> tuple[dict[int, Header], dict[int, str]]:
    headers: dict[int, Header] = {}
    reasons: dict[int, str] = {}
    for row, header in each(dict(enumerate(found)), lambda file: read_header(file.path)):
        if isinstance(header, Unreadable):
            reasons[row] = header.reason
        else:
            headers[row] = header
    return headers, reasons


def _fill(
    values: np.ndarray, found: Sequence[Found], rows: Sequence[int], each: _Each
) -> tuple[dict[int, str], dict[int, str]]:
    """Write the images to the first rows of `values`; return digests, and reasons of damage."""
    channels, height, width = values.shape[1:]

    def load(file: Found) -> tuple[np.ndarray, str]:
        pixels = decode(file.path, channels=channels, size=(height, width))
        with file.path.open("rb") as opened:
            return pixels, hashlib.file_digest(opened, "sha256").hexdigest()

    digests: dict[int, str] = {}
    damaged: dict[int, str] = {}
    for row, loaded in each({row: found[row] for row in rows}, load):
        if isinstance(loaded, Unreadable):
            damaged[row] = loaded.reason
        else:
            values[len(digests)], digests[row] = loaded
    return digests, damaged


def _agree_on_channels(
    found: Sequence[Found], headers: Mapping[int, Header], wanted: int | None, what: str
) -> tuple[int, tuple[str, ...]]:
    """Return the channels of the array, or name the first file that does not fit."""
    counts = Counter(header.channels for header in headers.values())
    most = max(counts, key=lambda channels: counts[channels])
    agreed = wanted or (3 if most == 1 and 3 in counts else most)
    # Grey is a colour; any other change of channels would invent or lose something.
    fitting = {1, 3} if agreed == 3 else {agreed}
    for row, header in headers.items():
        if header.channels not in fitting:
            raise DataError(
                f"{printable(found[row].name)} has {channels_phrase(header.channels)}, but "
                f"{channels_phrase(agreed)} are needed to go with the others in {what}. "
                "Convert it, or move it away."
            )
    if agreed != 3 or not counts[1]:
        return agreed, ()
    first = next(found[row].name for row, header in headers.items() if header.channels == 1)
    return agreed, (
        f"{counts[1]} of {len(headers)} images are grey and were repeated to three channels, "
        f"to go with colour; the first is {printable(first)}.",
    )


def _notice_of_darkness(values: np.ndarray, headers: Sequence[Header]) -> tuple[str, ...]:
    deep = [place for place, header in enumerate(headers) if header.is_deep]
    brightest = max((int(values[place].max()) for place in deep), default=_DARK)
    if brightest >= _DARK:
        return ()
    return (
        f"{len(deep)} images have 16 bits per value but use only the dark end: their highest "
        f"value is about {brightest * 257} of 65535, {brightest} of 255 after scaling to 8 bits. "
        "Stretch them all by one factor beforehand to keep fine differences.",
    )


def _named(found: Sequence[Found], reasons: Mapping[int, str]) -> tuple[tuple[str, str], ...]:
    return tuple((found[row].name, reasons[row]) for row in sorted(reasons))


def _check_share(tolerate: float) -> None:
    if not 0 <= tolerate <= 1:
        raise ConfigError(
            f"tolerate is the share of files that may be unreadable, from 0 to 1; got {tolerate}."
        )


def _usual_workers() -> int:
    return min(8, os.cpu_count() or 1)


def _in_memory(shape: tuple[int, ...]) -> np.ndarray:
    return np.empty(shape, np.uint8)


@contextmanager
def _strict_about_bombs() -> Iterator[None]:
    # Filters belong to the process, so they are set before threads start, not in them.
    with warnings.catch_warnings():
        # What Pillow grumbles about (odd EXIF) is no news, and what it refuses is listed.
        warnings.filterwarnings("ignore", module=r"PIL\.")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        yield
