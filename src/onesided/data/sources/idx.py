"""Fashion-MNIST, in the idx files of its publisher, with or without .gz.

An idx file: two zero bytes, one for the type of number (8 = unsigned byte), one for the
number of dimensions, each dimension as four bytes with the highest first, then the
numbers with the last dimension running fastest.
"""

import gzip
import math
import zlib
from pathlib import Path
from typing import IO

import numpy as np

from onesided.core.errors import DataError
from onesided.data.problem.samples import Samples, Source
from onesided.data.sources.download import Archive, ExpectedFile, Layout, locate

NAME = "fashion-mnist"
CLASS_NAMES = (
    *("T-shirt/top", "trouser", "pullover", "dress", "coat"),
    *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
)
_ADDRESS = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion"
"""The publisher's repository; its older address has no https."""
LAYOUTS = (
    Layout(
        folders=("fashion-mnist", "FashionMNIST/raw", "."),
        archives=tuple(
            Archive(f"{_ADDRESS}/{name}-ubyte.gz", size, md5, sha256, folder="fashion-mnist")
            for name, size, md5, sha256 in (
                (
                    *("train-images-idx3", 26_421_880, "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
                    "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                ),
                (
                    *("train-labels-idx1", 29_515, "25c81989df183df01b3e8a0aad5dffbe"),
                    "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                ),
                (
                    *("t10k-images-idx3", 4_422_102, "bef4ecab320f06d8554ea6380940ec79"),
                    "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                ),
                (
                    *("t10k-labels-idx1", 5_148, "bb300cfdad3c16e7a12a480ee83cd310"),
                    "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
                ),
            )
        ),
        files=tuple(
            ExpectedFile(f"{name}-ubyte", size, md5, may_be_gzipped=True)
            for name, size, md5 in (
                ("train-images-idx3", 47_040_016, "f4a8712d7a061bf5bd6d2ca38dc4d50a"),
                ("train-labels-idx1", 60_008, "9018921c3c673c538a1fc5bad174d6f9"),
                ("t10k-images-idx3", 7_840_016, "8181f5470baa50b63fa0f6fddb340f0a"),
                ("t10k-labels-idx1", 10_008, "15d484375f8d13e6eb1aabb0c3f46965"),
            )
        ),
    ),
)
_UNSIGNED_BYTE = 8
MOST_PACKED = 1100
"""Bytes that gzip can pack into one; its format allows 1032."""


def load_fashion_mnist(root: Path | None) -> Source:
    """Return Fashion-MNIST as 1x28x28 images, 60000 to train and 10000 to test."""
    layout, folder = locate(NAME, LAYOUTS, root)
    paths = tuple(path for file in layout.files if (path := file.find(folder)))
    train_images, train_labels, test_images, test_labels = paths
    return Source(
        train=_read_part("train", train_images, train_labels),
        test=_read_part("test", test_images, test_labels),
        files=paths,
    )


def read_idx(path: Path, *, dimensions: int) -> np.ndarray:
    """Return the bytes of an idx file, plain or .gz, as an array of these dimensions."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return _parse_idx(file, path, dimensions)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{path} is damaged or cut short ({error}). Delete it and fetch it again."
        ) from error


def _parse_idx(file: IO[bytes] | gzip.GzipFile, path: Path, dimensions: int) -> np.ndarray:
    header = file.read(4 + 4 * dimensions)
    if len(header) < 4 + 4 * dimensions or header[:4] != bytes([0, 0, _UNSIGNED_BYTE, dimensions]):
        raise DataError(
            f"{path} is not an idx file of bytes in {dimensions} dimensions: it starts with "
            f"{header[:4].hex()} instead of 000008{dimensions:02x}. Fetch it again."
        )
    shape = tuple(int(size) for size in np.frombuffer(header, dtype=">u4", offset=4))
    expected = math.prod(shape)
    if expected > MOST_PACKED * path.stat().st_size:  # before memory is taken for it
        raise DataError(
            f"{path} announces {expected} bytes, more than a file of its size can hold. Fetch it "
            "again."
        )
    contents = file.read(expected + 1)  # one more, to notice a file that goes on
    if len(contents) != expected or expected == 0:
        found = "more" if len(contents) > expected else str(len(contents))
        raise DataError(
            f"{path} announces {' x '.join(map(str, shape))} = {expected} bytes and holds {found}. "
            "Fetch it again."
        )
    return np.frombuffer(contents, dtype=np.uint8).reshape(shape)


def _read_part(part: str, images_path: Path, labels_path: Path) -> Samples:
    images = read_idx(images_path, dimensions=3)
    labels = read_idx(labels_path, dimensions=1)
    if len(images) != len(labels):
        raise DataError(
            f"{images_path} holds {len(images)} images and {labels_path} {len(labels)} labels: "
            "they do not belong together. Fetch both again."
        )
    if labels.max() >= len(CLASS_NAMES):
        raise DataError(f"{labels_path} holds label {labels.max()}; expected 0 to 9.")
    return Samples(
        values=images[:, None],
        classes=labels.astype(np.int64),
        names=tuple(f"{part}/{row:05d}" for row in range(len(images))),
        class_names=CLASS_NAMES,
        kind="digit",
    )
