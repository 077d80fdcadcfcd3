"""One image file to one array `(channels, height, width)` of uint8, whatever its kind.

| file | array |
|---|---|
| grey, black and white | 1 channel |
| colour, palette, CMYK, YCbCr | 3 channels, RGB |
| transparent parts | black, and the alpha channel is gone: empty parts of maps are black too |
| 16 bits per value | 8 bits, divided by 257: the format's range, not the file's |
| floating-point TIFF | refused: there is no agreed black and white |
| TIFF of other channel counts | all its channels, by tifffile; never silently as RGB |
| animation | its first frame; a TIFF of several pages is refused |

The orientation that a camera wrote into EXIF is applied.
"""

import math
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, UInt8
from PIL import ExifTags, Image, UnidentifiedImageError

# Imported here, before threads start: Pillow would load them on first use, in any thread.
from PIL import MpoImagePlugin as MpoImagePlugin
from PIL import WebPImagePlugin as WebPImagePlugin

from onesided.core.errors import ConfigError
from onesided.data.read.files import Unreadable
from onesided.data.read.tiff import TiffFacts, eight_bits, read_bands, read_tiff_facts

MAXIMUM_PIXELS = 64_000_000
"""Larger images are refused unless `reading_up_to` allows them: a file of a few bytes can claim any
size and eat all memory."""

MOST_CHANNELS = 4
"""Numbers per pixel of the largest image, for the same reason."""

MOST_MEGAPIXELS = 10_000
"""The most that can be allowed: ten thousand million numbers fill a large machine."""

# Pillow's other formats stay closed: its EPS reader, for example, starts another program.
_FORMATS = ("PNG", "JPEG", "BMP", "TIFF", "WEBP", "GIF", "PPM")
_GREY_MODES = ("1", "L", "LA")
_DEEP_MODES = ("I", "I;16", "I;16B", "I;16L", "I;16N")
_COLOUR_MODES = ("P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


@dataclass(frozen=True, slots=True)
class Header:
    """What is known of an image before its pixels are read.

    Attributes:
        channels: Of the decoded array.
        is_deep: Whether its values, grey or of many channels, have 16 bits.
        has_alpha: Whether parts of it may be transparent.
    """

    height: int
    width: int
    channels: int
    is_deep: bool
    has_alpha: bool = False


@contextmanager
def reading_up_to(megapixels: float | None) -> Iterator[None]:
    """Allow larger images in this process meanwhile; None leaves the limit as it is.

    The limit is one for the process and not an argument of every reader: it guards the memory
    that all of them share.
    """
    global MAXIMUM_PIXELS
    if megapixels is None:
        yield
        return
    if not 0 < megapixels <= MOST_MEGAPIXELS:
        raise ConfigError(
            f"The largest image is given in millions of pixels, from 1 to {MOST_MEGAPIXELS}, such "
            f"as 108; got {str(megapixels)[:20]}."
        )
    before = MAXIMUM_PIXELS, Image.MAX_IMAGE_PIXELS
    MAXIMUM_PIXELS = math.ceil(megapixels * 1e6)
    # Pillow refuses by itself what is more than twice its own limit, and warns from there on.
    Image.MAX_IMAGE_PIXELS = max(before[1] or 0, MAXIMUM_PIXELS)
    try:
        yield
    finally:
        MAXIMUM_PIXELS, Image.MAX_IMAGE_PIXELS = before


def read_header(path: Path, *, upright: bool = True) -> Header:
    """Return size and channels of an image file, for a fraction of the cost of decoding it.

    Without `upright` they are those of the pixels as stored; see `decode`.
    """
    bands = _bands_of_other_counts(path)
    if bands is not None:
        return Header(bands.height, bands.width, bands.samples, max(bands.bits) > 8)
    with _open(path) as image:
        width, height = image.size
        # Without EXIF at hand Pillow would read a whole PNG in search of it; TIFF is
        # turned already.
        turned = "exif" in image.info and image.format != "TIFF" and _orientation(image) >= 5
        if upright and turned:
            width, height = height, width
        is_grey = image.mode in _GREY_MODES + _DEEP_MODES
        deep, alpha = image.mode in _DEEP_MODES, bool(image.has_transparency_data)
        return Header(height, width, 1 if is_grey else 3, deep, alpha)


def decode(
    path: Path,
    *,
    channels: int | None = None,
    size: tuple[int, int] | None = None,
    upright: bool = True,
) -> UInt8[np.ndarray, "channels height width"]:
    """Return one image file as an array, or raise `Unreadable` with the reason.

    Args:
        path: The file.
        channels: Wanted number of channels; grey is repeated where three are wanted.
            None takes the file's own.
        size: Wanted height and width; the image is stretched to it, averaging where it
            shrinks. None keeps the file's own.
        upright: Whether the camera's orientation in EXIF is applied; False leaves the pixels
            as they are stored.
    """
    bands = _bands_of_other_counts(path)
    if bands is not None:
        _check_channels(path, bands.samples, channels)  # before any memory is taken
        planes = [Image.fromarray(band) for band in read_bands(path, bands)]
        orientation = bands.orientation
    else:
        planes, orientation = _read_picture(path, size)
    turned = orientation if upright else 1
    pixels = np.concatenate([_pixels(plane, turned, size) for plane in planes])
    if channels == 1 and is_grey(pixels):
        pixels = pixels[:1]
    _check_channels(path, len(pixels), channels)
    return pixels if channels in (None, len(pixels)) else np.repeat(pixels, 3, axis=0)


def _check_channels(path: Path, found: int, wanted: int | None) -> None:
    """Refuse another number of channels than wanted; grey is accepted for colour."""
    if wanted not in (None, found) and (found, wanted) != (1, 3):
        raise Unreadable(path, f"has {channels_phrase(found)} where {wanted} were expected")


def is_grey(pixels: UInt8[np.ndarray, "channels height width"]) -> bool:
    """Return whether an image of three channels is grey everywhere: all of them are equal."""
    return len(pixels) == 3 and bool((pixels == pixels[:1]).all())


def opaque_parts(path: Path) -> Bool[np.ndarray, "height width"]:
    """Return where a picture is not transparent, with its pixels as they are stored."""
    if _bands_of_other_counts(path) is not None:
        header = read_header(path, upright=False)
        return np.ones((header.height, header.width), bool)
    with _open(path) as image:
        if not image.has_transparency_data:
            return np.ones((image.height, image.width), bool)
        try:
            return np.asarray(image.convert("RGBA").getchannel("A")) > 0
        except Exception as error:  # as in _open
            raise Unreadable(path, f"is damaged ({_text_of(error)})") from error


def channels_phrase(count: int) -> str:
    """Return `1 channel (grey)`, `3 channels (colour)` or `6 channels`."""
    known = {1: "1 channel (grey)", 3: "3 channels (colour)"}
    return known.get(count, f"{count} channels")


def shown_channels(count: int) -> slice:
    """Return which channels of an image are shown: the first three, of two the first.

    Six are an image before an event and one after it; the one after it is shown.
    """
    if count == 6:
        return slice(3, 6)
    return slice(0, 3 if count >= 3 else 1)


def _bands_of_other_counts(path: Path) -> TiffFacts | None:
    """Check the file itself; return the facts of a TIFF that Pillow would not read in full."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable(path, "is not a file")
        if status.st_size == 0:
            raise Unreadable(path, "is empty (0 bytes)")
        facts = read_tiff_facts(path)
    except FileNotFoundError as error:
        is_link = os.path.islink(path)
        reason = "is a link to a file that is not there" if is_link else "does not exist"
        raise Unreadable(path, reason) from error
    except OSError as error:
        raise Unreadable(path, f"cannot be opened: {error.strerror or error}") from error
    if facts is None or facts.is_picture:
        return None
    _check_pixels(path, facts.width, facts.height)
    if facts.width * facts.height * facts.samples > MOST_CHANNELS * MAXIMUM_PIXELS:
        raise Unreadable(
            path,
            f"is too large ({facts.width} x {facts.height} pixels of {facts.samples} channels); "
            "cut it into smaller images, or allow it with --largest-image "
            f"{math.ceil(facts.width * facts.height * facts.samples / MOST_CHANNELS / 1e6)}",
        )
    return facts


def _open(path: Path) -> Image.Image:
    try:
        image = Image.open(path, formats=_FORMATS)
    except UnidentifiedImageError as error:
        raise Unreadable(path, "is not an image, or of an unknown kind") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        # Pillow calls it an attack; a large photograph is none.
        raise Unreadable(path, "is too large: it has more pixels than Pillow decodes") from error
    # A damaged or hostile file can make a decoder raise nearly anything; all of it becomes
    # a reason that people see. Only calls into Pillow are guarded in this way.
    except Exception as error:
        raise Unreadable(path, f"is damaged ({_text_of(error)})") from error
    _check_pixels(path, *image.size)
    if image.mode not in _GREY_MODES + _DEEP_MODES + _COLOUR_MODES:
        raise Unreadable(path, f"has pixels of kind {image.mode}; save it as 8-bit grey or RGB")
    return image


def _check_pixels(path: Path, width: int, height: int) -> None:
    if width * height > MAXIMUM_PIXELS:
        raise Unreadable(
            path,
            f"is too large ({width} x {height}, more than {MAXIMUM_PIXELS / 1e6:g} million "
            "pixels); cut it into smaller images, or allow it with --largest-image "
            f"{math.ceil(width * height / 1e6)}",
        )


def _read_picture(path: Path, size: tuple[int, int] | None) -> tuple[list[Image.Image], int]:
    with _open(path) as image:
        try:
            if size is not None:
                # JPEG decodes at a half, a quarter or an eighth for a part of the cost; twice
                # the wanted size is left for the resize to average.
                image.draft(None, (2 * max(size), 2 * max(size)))
            image.load()
            flat = _flattened(image)
        except Exception as error:  # as in _open
            raise Unreadable(path, f"is damaged ({_text_of(error)})") from error
        if image.mode in _DEEP_MODES:
            flat = _shallow(path, image)
        return [flat], _orientation(image)


def _flattened(image: Image.Image) -> Image.Image:
    """Return grey or RGB on black, without alpha."""
    if image.mode in _DEEP_MODES:
        return image
    mode = "L" if image.mode in _GREY_MODES else "RGB"
    if not image.has_transparency_data:
        return image.convert(mode)
    layered = image.convert(f"{mode}A")
    black = Image.new(mode, image.size)
    return Image.composite(layered.convert(mode), black, layered.getchannel("A"))


def _shallow(path: Path, image: Image.Image) -> Image.Image:
    # Mode I has room for 32 bits, but without TIFF, refused above 16, nothing fills it.
    facts = read_tiff_facts(path)
    bits = 16 if facts is None else max(facts.bits)
    return Image.fromarray(eight_bits(np.asarray(image), bits))


def _orientation(image: Image.Image) -> int:
    try:
        return int(image.getexif().get(ExifTags.Base.Orientation, 1))
    # Damaged EXIF is common in sound photographs; viewers show those as stored, and so do we.
    except Exception:
        return 1


def _pixels(
    plane: Image.Image, orientation: int, size: tuple[int, int] | None
) -> UInt8[np.ndarray, "channels height width"]:
    if orientation in _UPRIGHT:
        plane = plane.transpose(_UPRIGHT[orientation])
    if size is not None and plane.size != (size[1], size[0]):
        plane = plane.resize((size[1], size[0]), Image.Resampling.BILINEAR)
    pixels = np.asarray(plane)
    return pixels[None] if pixels.ndim == 2 else np.ascontiguousarray(pixels.transpose(2, 0, 1))


def _text_of(error: Exception) -> str:
    return str(error) or type(error).__name__
