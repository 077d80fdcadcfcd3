"""Files that are called images and cannot be read, in a folder to rank and in one to learn from."""

import io
import os
import struct
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from onesided.data.read.files import ACCEPTED_ENDINGS
from tests.cli.bad_input.refusals import assert_refused_untouched, each, write
from tests.cli.command import TINY
from tests.cli.pictures import draw_data, picture
from tests.data.image_files import gradient, tiff_bytes

Put = Callable[[Path], object]
"""Makes the bad file in a folder."""

FORMATS = {"png": "PNG", "jpg": "JPEG", "bmp": "BMP", "tif": "TIFF", "webp": "WEBP", "gif": "GIF"}


def encoded(name: str) -> bytes:
    stream = io.BytesIO()
    picture(1, side=48).save(stream, FORMATS[name])
    return stream.getvalue()


def named(name: str, content: bytes | str) -> Put:
    return lambda folder: write(content)(folder / name)


def chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )


def png(width: int, height: int, depth: int = 8, colour: int = 2, data: bytes = b"") -> bytes:
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    parts = (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(data)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def spoiled(content: bytes, places: range) -> bytes:
    raw = bytearray(content)
    for place in places:
        raw[place] ^= 0x55
    return bytes(raw)


CUT: dict[str, Put] = {
    f"{name} cut after {share} of it": named(
        f"x.{name}", encoded(name)[: int(share * len(encoded(name)))]
    )
    for name in FORMATS
    for share in (0.01, 0.3, 0.7)
}
EMPTY: dict[str, Put] = {f"no bytes in {end}": named(f"x{end}", b"") for end in ACCEPTED_ENDINGS}
TEXT: dict[str, Put] = {f"text in {end}": named(f"x{end}", "a diary") for end in ACCEPTED_ENDINGS}
ODD: dict[str, Put] = {
    "zero bytes": named("x.png", bytes(4096)),
    "a page": named("x.jpg", "<html><title>404</title></html>"),
    "a vector drawing": named("x.png", '<svg xmlns="http://www.w3.org/2000/svg"/>'),
    "a program": named("x.png", b"\x7fELF" + bytes(200)),
    "an archive": named("x.png", b"PK\x03\x04" + bytes(200)),
    "only a signature": named("x.png", b"\x89PNG\r\n\x1a\n"),
    "no width": named("x.png", png(0, 8)),
    "no height": named("x.png", png(8, 0)),
    "60 000 pixels a side": named("x.png", png(60_000, 60_000)),
    "two billion pixels in a row": named("x.png", png(2**31 - 1, 1)),
    "no pixels": named("x.png", png(8, 8)),
    "an unknown depth": named("x.png", png(8, 8, depth=7, data=bytes(400))),
    "an unknown colour": named("x.png", png(8, 8, colour=5, data=bytes(400))),
    "pixels spoiled": named("x.png", spoiled(encoded("png"), range(60, 90))),
    "a heading spoiled": named("x.png", spoiled(encoded("png"), range(8, 30))),
    "a JPEG heading spoiled": named("x.jpg", spoiled(encoded("jpg"), range(2, 40))),
    "a huge bitmap": named("x.bmp", spoiled(encoded("bmp"), range(18, 26))),
    "a grey map without pixels": named("x.pgm", b"P5 8 8 255\n"),
    "a map without end": named("x.ppm", b"P6 99999999 99999999 255\n"),
    "a map of negative size": named("x.ppm", b"P6 -8 8 255\n" + bytes(200)),
    "a map without numbers": named("x.ppm", b"P6 a b c\n" + bytes(200)),
    "a TIFF that points nowhere": named("x.tif", b"II*\0\xff\xff\xff\xff"),
    "a TIFF that points to itself": named("x.tif", b"II*\0\x08\0\0\0\0\0\x08\0\0\0"),
    "a TIFF without a width": named("x.tif", tiff_bytes(gradient(8, 8, 3), without=(256,))),
    "a TIFF without strips": named("x.tif", tiff_bytes(gradient(8, 8, 3), without=(273,))),
    "a TIFF of 6 channels": named("x.tif", tiff_bytes(gradient(8, 8, 6))),
    "a TIFF of 5 channels": named("x.tif", tiff_bytes(gradient(8, 8, 5))),
    "a TIFF of numbers that are none": named(
        "x.tif", tiff_bytes(np.full((8, 8, 3), np.nan, np.float32))
    ),
    "a folder": lambda folder: (folder / "x.png").mkdir(),
    "a link to nothing": lambda folder: (folder / "x.png").symlink_to("gone.png"),
    "a link to itself": lambda folder: (folder / "x.png").symlink_to("x.png"),
}
SPECIAL: dict[str, Put] = {
    # Opening a pipe waits for a writer for ever, and zeros never end.
    "a pipe": lambda folder: os.mkfifo(folder / "x.png"),
    "zeros without end": lambda folder: (folder / "x.png").symlink_to("/dev/zero"),
}


@each({**CUT, **EMPTY, **TEXT, **ODD})
def test_what_is_no_image_is_not_ranked(trained: Path, tmp_path: Path, case: Put) -> None:
    (tmp_path / "pool").mkdir()
    case(tmp_path / "pool")
    not_ranked(trained, tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither pipes nor /dev/zero")
@each(SPECIAL)
def test_what_never_ends_is_not_waited_for(trained: Path, tmp_path: Path, case: Put) -> None:
    (tmp_path / "pool").mkdir()
    case(tmp_path / "pool")
    not_ranked(trained, tmp_path)


def not_ranked(run: Path, place: Path) -> None:
    """Rank the pool, which must be refused; what was found out stays for another --tolerate."""
    words = ("rank", run, place / "pool", "-o", place / "ranked.csv", "--quiet")
    assert_refused_untouched(place / "pool", *words)
    assert not (place / "ranked.csv").exists()


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """So few images that a single bad one is more than what is tolerated."""
    return draw_data(tmp_path_factory.mktemp("few"), positives=10, unlabelled=10)


TO_LEARN_FROM = {
    name: ODD[name]
    for name in (
        "zero bytes",
        "60 000 pixels a side",
        "a link to nothing",
        "a TIFF of 6 channels",
        "pixels spoiled",
    )
} | {"no bytes in .webp": EMPTY["no bytes in .webp"], "text in .gif": TEXT["text in .gif"]}


@pytest.mark.parametrize("role", ["P", "U"])
@each(TO_LEARN_FROM)
def test_what_is_no_image_is_not_learnt_from(
    few: Path, tmp_path: Path, role: str, case: Put
) -> None:
    for path in few.rglob("*.png"):
        copy = tmp_path / path.relative_to(few)
        copy.parent.mkdir(exist_ok=True)
        copy.hardlink_to(path)
    case(tmp_path / role)
    words = ("-p", tmp_path / "P", "-u", tmp_path / "U", "-o", tmp_path / "run", *TINY, "--quiet")
    assert_refused_untouched(tmp_path, "fit", *words, said=f"{role}/x.")
