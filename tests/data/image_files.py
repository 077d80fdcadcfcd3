"""Small image files of every kind, made for a test."""

import struct
from pathlib import Path

import numpy as np
from PIL import Image

from onesided.data.read.files import Found


def gradient(*shape: int) -> np.ndarray:
    """Return uint8 numbers that differ between positions."""
    return (np.arange(np.prod(shape)) * 37 % 251).reshape(shape).astype(np.uint8)


def noise(seed: int, *shape: int) -> np.ndarray:
    """Return random uint8 numbers."""
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def write_png(path: Path, seed: int = 0, shape: tuple[int, ...] = (8, 8, 3)) -> Path:
    """Write random pixels, grey or RGB by shape, with the folders above them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(noise(seed, *shape)).save(path, "PNG")
    return path


def found(*paths: Path) -> list[Found]:
    """Return files by their own names."""
    return [Found(path, path.name) for path in paths]


def tiff_bytes(
    pixels: np.ndarray,
    *,
    photometric: int = 2,
    extra: tuple[int, ...] = (),
    number_format: int | None = None,
    orientation: int = 1,
    planar: bool = False,
    subfiles: tuple[int, ...] = (0,),
    without: tuple[int, ...] = (),
) -> bytes:
    """Return an uncompressed little-endian TIFF of (height, width, samples), once per subfile."""
    height, width, samples = pixels.shape
    kind = {"u": 1, "i": 2, "f": 3}[pixels.dtype.kind] if number_format is None else number_format
    stored = pixels.transpose(2, 0, 1) if planar else pixels
    data = stored.astype(pixels.dtype.newbyteorder("<")).tobytes()
    plane = len(data) // samples
    out = bytearray(struct.pack("<2sHI", b"II", 42, 8))
    for number, subfile in enumerate(subfiles):
        tags: list[tuple[int, str, tuple[int, ...]]] = [
            (254, "I", (subfile,)),
            (256, "I", (width,)),
            (257, "I", (height,)),
            (258, "H", (pixels.dtype.itemsize * 8,) * samples),
            (259, "H", (1,)),
            (262, "H", (photometric,)),
            (273, "I", ()),
            (274, "H", (orientation,)),
            (277, "H", (samples,)),
            (278, "I", (height,)),
            (279, "I", (plane,) * samples if planar else (len(data),)),
            (284, "H", (2 if planar else 1,)),
            *([(338, "H", extra)] if extra else []),
            (339, "H", (kind,) * samples),
        ]
        tags = [entry for entry in tags if entry[0] not in without]
        after = len(out) + 2 + 12 * len(tags) + 4
        # Room for what does not fit into a tag, so that pixels are the last thing in a file.
        room = 1024
        tail, entries = bytearray(), bytearray()
        for tag, code, values in tags:
            if tag == 273:
                values = tuple(after + room + plane * n for n in range(samples if planar else 1))
            packed = struct.pack(f"<{len(values)}{code}", *values)
            if len(packed) > 4:
                tail += packed
                packed = struct.pack("<I", after + len(tail) - len(packed))
            entries += struct.pack("<HHI4s", tag, 3 if code == "H" else 4, len(values), packed)
        tail = tail.ljust(room, b"\0") + data + b"\0" * (len(data) % 2)
        following = 0 if number == len(subfiles) - 1 else after + len(tail)
        out += struct.pack("<H", len(tags)) + entries + struct.pack("<I", following) + tail
    return bytes(out)
