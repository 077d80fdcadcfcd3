"""What many image files agree on: size, channels, and that enough of them can be read."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median

from onesided.core.errors import ConfigError, DataError, DataNotFound
from onesided.data.read.files import ACCEPTED_ENDINGS, Found
from onesided.data.read.picture import Header, channels_phrase
from onesided.storage.names import printable

SIDES = (32, 48, 64, 96, 128)
"""Sides that are chosen from when nobody gives one."""

# A fourth of the range: what reflectances of 0..10000 leave of 16 bits, and 12-bit data.
DARK = 64


Size = tuple[int, int] | int | None
"""Height and width, or the largest side that may be chosen, or the largest of `SIDES`."""


def choose_size(shapes: Sequence[tuple[int, int]], largest: int = SIDES[-1]) -> tuple[int, int]:
    """Return the height and width for images of these heights and widths.

    Small images of one size keep it, since resampling only loses. Otherwise the median
    side decides, taken to the nearest of `SIDES`; the smaller of two equally near.

    Args:
        shapes: Height and width of every image.
        largest: Side that is not exceeded.
    """
    if len(set(shapes)) == 1 and max(shapes[0]) <= largest:
        return shapes[0]
    middle = median(side for shape in shapes for side in shape)
    allowed = [side for side in SIDES if side <= largest] or [largest]
    side = min(allowed, key=lambda candidate: abs(candidate - middle))
    return side, side


def size_for(wanted: Size, shapes: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the height and width that was asked for, or choose one."""
    if isinstance(wanted, tuple):
        return wanted
    return choose_size(shapes, SIDES[-1] if wanted is None else wanted)


def check_readable(
    what: str, total: int, skipped: Sequence[tuple[str, str]], tolerate: float
) -> None:
    """Raise if no file, or too small a share of the files, could be read."""
    first = skipped[0] if skipped else ("", "")
    check_share_readable(what, total, len(skipped), first, tolerate)


def check_share_readable(
    what: str, total: int, unreadable: int, first: tuple[str, str], tolerate: float
) -> None:
    """Raise as `check_readable` does, knowing of the unreadable files the first alone."""
    told = f"{printable(first[0])} {first[1]}".replace("\n", "\\n")  # one line, whatever the name
    if unreadable == total:
        detail = f"none of {total} files can be read; the first: {told}" if total else "it is empty"
        endings = ", ".join(ACCEPTED_ENDINGS)
        raise DataNotFound(f"No readable image in {what}: {detail}. Accepted are {endings}.")
    # The quotient is the double nearest to the true share, as the setting's literal is.
    share = unreadable / total
    if share > tolerate:
        enough = math.ceil(100 * share) / 100
        raise DataError(
            f"{unreadable} of {total} images in {what} cannot be read, more than the "
            f"{100 * tolerate:.3g} % that are tolerated. The first: {told}. "
            f"Repair or remove them, or go on without them by --tolerate {enough:g}."
        )


def check_tolerance(tolerate: float) -> None:
    """Raise if this is no share."""
    if not 0 <= tolerate <= 1:
        raise ConfigError(
            f"tolerate is the share of files that may be unreadable, from 0 to 1; got {tolerate}."
        )


def agree_on_channels(
    found: Sequence[Found], headers: Mapping[int, Header], wanted: int | None, what: str
) -> tuple[int, tuple[str, ...]]:
    """Return the channels of the array, or name the first file that does not fit."""
    counts = Counter(header.channels for header in headers.values())
    most = max(counts, key=lambda channels: counts[channels])
    agreed = wanted or (3 if most == 1 and 3 in counts else most)
    for row, header in headers.items():
        check_channels(found[row], header, agreed, what)
    if agreed != 3 or not counts[1]:
        return agreed, ()
    first = next(found[row].name for row, header in headers.items() if header.channels == 1)
    return agreed, (
        f"{counts[1]} of {len(headers)} images are grey and were repeated to three channels, "
        f"to go with colour; the first is {printable(first)}.",
    )


def check_channels(file: Found, header: Header, agreed: int, what: str) -> None:
    """Raise if a file cannot have the agreed channels.

    Grey is a colour; any other change of channels would invent or lose something.
    """
    if header.channels not in ({1, 3} if agreed == 3 else {agreed}):
        raise DataError(
            f"{printable(file.name)} has {channels_phrase(header.channels)}, but "
            f"{channels_phrase(agreed)} are needed to go with the others in {what}. "
            "Convert it, or move it away."
        )


def notice_of_darkness(brightest_of_deep: Sequence[int]) -> tuple[str, ...]:
    """Return a sentence where 16-bit images, each with its highest value of 255, are all dark."""
    brightest = max(brightest_of_deep, default=DARK)
    if brightest >= DARK:
        return ()
    return (
        f"{len(brightest_of_deep)} images have 16 bits per value but use only the dark end: their "
        f"highest value is about {brightest * 257} of 65535, {brightest} of 255 after scaling to "
        "8 bits. Stretch them all by one factor beforehand to keep fine differences.",
    )
