"""TIFF files that hold more than a picture: many channels, many pages, odd numbers.

Pillow opens a file of six channels as RGB without a warning, and reads the first of many
pages only. So the tags are read first. What Pillow would not read in full is read by
tifffile, or refused.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from jaxtyping import UInt8
from PIL import TiffImagePlugin

from onesided.core.errors import MissingLibrary
from onesided.data.read.files import Unreadable
from onesided.storage.optional import library

_WIDTH, _HEIGHT, _BITS, _PHOTOMETRIC, _ORIENTATION = 256, 257, 258, 262, 274
_SAMPLES, _EXTRA, _FORMAT, _SUBFILE = 277, 338, 339, 254
_UNSIGNED, _FLOAT = 1, 3
_GREY, _COLOUR, _CMYK = (0, 1, 3), (2, 6, 8), 5  # photometric interpretations; 3 is a palette
_ALPHA = ((1,), (2,))
_PREVIEW_OR_MASK = 0b101


@dataclass(frozen=True)
class TiffFacts:
    """The tags of the first page.

    Attributes:
        samples: Numbers per pixel, alpha among them.
        extra: What the samples beyond grey or colour mean; 1 and 2 mean alpha.
        bits: Bits of each number.
        numbers: 1 unsigned, 2 signed, 3 floating point.
        pages: 1, or 2 for several; previews and masks do not count.
    """

    width: int
    height: int
    samples: int
    extra: tuple[int, ...]
    photometric: int
    bits: tuple[int, ...]
    numbers: int
    orientation: int
    pages: int

    @property
    def is_picture(self) -> bool:
        """Whether it has grey, colour and alpha alone, so that Pillow reads it in full."""
        colours = self.samples - len(self.extra)
        if self.extra and self.extra not in _ALPHA:
            return False
        if colours == 1:
            return self.photometric in _GREY
        if colours == 3:
            return self.photometric in _COLOUR
        return colours == 4 and self.photometric == _CMYK and not self.extra


def read_tiff_facts(path: Path) -> TiffFacts | None:
    """Return the facts in the tags, or None if the file is not a TIFF."""
    with path.open("rb") as file:
        head = file.read(16)
        if head[:4] not in TiffImagePlugin.PREFIXES:
            return None
        try:
            facts = _parse(file, head)
        # A hostile file can make Pillow's parser raise nearly anything; each becomes a reason.
        except Exception as error:
            raise Unreadable(path, f"is damaged: its TIFF tags cannot be read ({error})") from error
    _refuse_what_has_no_8_bit_meaning(path, facts)
    return facts


def _parse(file: BinaryIO, head: bytes) -> TiffFacts:
    is_big = head[2] == 43
    tags = TiffImagePlugin.ImageFileDirectory_v2(head if is_big else head[:8])
    file.seek(tags.next)
    tags.load(file)
    photometric = int(tags.get(_PHOTOMETRIC, 1))
    bits = tuple(int(value) for value in tags.get(_BITS, (1,)))
    return TiffFacts(
        width=int(tags[_WIDTH]),
        height=int(tags[_HEIGHT]),
        samples=int(tags.get(_SAMPLES, max(len(bits), 3 if photometric in _COLOUR else 1))),
        extra=tuple(int(value) for value in tags.get(_EXTRA, ())),
        photometric=photometric,
        bits=bits,
        numbers=max(int(value) for value in tags.get(_FORMAT, (_UNSIGNED,))),
        orientation=int(tags.get(_ORIENTATION, 1)),
        pages=2 if _has_further_page(file, tags) else 1,
    )


def _has_further_page(file: BinaryIO, tags: TiffImagePlugin.ImageFileDirectory_v2) -> bool:
    visited: set[int] = set()
    while tags.next and tags.next not in visited:
        visited.add(tags.next)
        file.seek(tags.next)
        tags.load(file)
        if _WIDTH in tags and not int(tags.get(_SUBFILE, 0)) & _PREVIEW_OR_MASK:
            return True
    return False


def _refuse_what_has_no_8_bit_meaning(path: Path, facts: TiffFacts) -> None:
    if facts.pages > 1:
        raise Unreadable(
            path, "has several pages; save one page per file, or its bands as channels of one page"
        )
    if facts.numbers == _FLOAT:
        raise Unreadable(
            path,
            "holds floating-point values, for which there is no agreed black and white; "
            "scale it to 8 or 16 bits",
        )
    if facts.numbers != _UNSIGNED or max(facts.bits) > 16:
        raise Unreadable(path, "holds signed or 32-bit numbers; scale it to 8 or 16 bits, unsigned")


def read_bands(path: Path, facts: TiffFacts) -> UInt8[np.ndarray, "channels height width"]:
    """Return every channel of a TIFF, 16 bits scaled to 8."""
    try:
        tifffile = library("tifffile", "Reading many channels")
    except MissingLibrary as error:
        raise Unreadable(
            path, f"has {facts.samples} channels, which takes tifffile to read: {error.remedy}"
        ) from error
    try:
        with tifffile.TiffFile(path) as file:
            page = file.pages[0]
            values, axes = np.asarray(page.asarray()), str(page.axes)
    # As above: all that a hostile file makes the parser raise is a reason to skip it.
    except Exception as error:
        raise Unreadable(path, f"is damaged or of an unknown kind ({error})") from error
    if sorted(axes) != ["S", "X", "Y"] or values.dtype not in (np.uint8, np.uint16):
        raise Unreadable(path, f"has axes {axes} of {values.dtype}; expected 8- or 16-bit channels")
    if values.shape[axes.index("S")] != facts.samples:
        raise Unreadable(path, "is damaged: its TIFF tags contradict each other")
    values = values.transpose([axes.index(axis) for axis in "SYX"])
    return eight_bits(values, max(facts.bits))


def eight_bits(values: np.ndarray, bits: int) -> UInt8[np.ndarray, "..."]:
    """Scale the full range of so many bits to 0..255; 16 bits are divided by 257.

    The range is the format's, not the file's: two files with the same numbers must look
    the same, which stretching each file by its own range would undo.
    """
    if bits == 8:
        return values.astype(np.uint8, copy=False)
    top = 2**bits - 1
    scaled: np.ndarray = (values.astype(np.uint32) * 255 + top // 2) // top
    return scaled.astype(np.uint8)
