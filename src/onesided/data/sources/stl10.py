"""STL-10, in the binary files of its publisher.

Images lie one after the other: red, green, blue plane, each plane **column by column**.
Labels are 1 to 10, one byte each. The 100000 unlabelled images are 2.8 GB, so images are
mapped and not read: a batch touches only its own pages.
"""

from pathlib import Path

import numpy as np

from onesided.core.errors import DataError
from onesided.core.labels import UNKNOWN
from onesided.data.problem.samples import Samples, Source
from onesided.data.sources.download import locate, one_archive

NAME = "stl10"
CLASS_NAMES = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")
POSITIVE_CLASSES = (0, 2, 3, 8, 9)
"""Airplane, car, *cat*, ship, truck: a mistake of vPU, kept so that results are comparable."""
_ADDRESS = "https://ai.stanford.edu/~acoates/stl10"

LAYOUTS = (
    one_archive(
        "stl10_binary",
        (
            *(f"{_ADDRESS}/stl10_binary.tar.gz", 2_640_397_119, "91f7769df0f17e558f3565bffb0c7dfb"),
            "f31fd99273a1acb8609c8db427cebb1de3f71de77758cdc0e22956e1289b9866",
        ),
        ("train_X.bin", 138_240_000, "918c2871b30a85fa023e0c44e0bee87f"),
        ("train_y.bin", 5_000, "5a34089d4802c674881badbb80307741"),
        ("test_X.bin", 221_184_000, "7f263ba9f9e0b06b93213547f721ac82"),
        ("test_y.bin", 8_000, "36f9794fa4beb8a2c72628de14fa638e"),
        ("unlabeled_X.bin", 2_764_800_000, "5242ba1fed5e4be9e1e742405eb56ca4"),
    ),
)
_SHAPE = (3, 96, 96)
_BYTES = 3 * 96 * 96


def load_stl10(root: Path | None) -> Source:
    """Return STL-10 as 3x96x96 images: 5000 to train, 8000 to test, 100000 unlabelled."""
    layout, folder = locate(NAME, LAYOUTS, root)
    paths = tuple(folder / file.name for file in layout.files)
    train_images, train_labels, test_images, test_labels, unlabelled_images = paths
    unlabelled = _map_images(unlabelled_images)
    unknown = np.full(len(unlabelled), UNKNOWN, dtype=np.int64)
    return Source(
        train=_samples("train", _map_images(train_images), _read_labels(train_labels)),
        test=_samples("test", _map_images(test_images), _read_labels(test_labels)),
        unlabelled=_samples("unlabelled", unlabelled, unknown),
        files=paths,
    )


def _map_images(path: Path) -> np.ndarray:
    count, rest = divmod(path.stat().st_size, _BYTES)
    if rest or not count:
        raise DataError(
            f"{path} has {path.stat().st_size} bytes, which is no whole number of images of "
            f"{_BYTES} bytes: it was cut short or is another file. Fetch it again."
        )
    stored = np.memmap(path, dtype=np.uint8, mode="r", shape=(count, *_SHAPE))
    return stored.transpose(0, 1, 3, 2)  # a view: rows and columns change places


def _read_labels(path: Path) -> np.ndarray:
    labels = np.fromfile(path, dtype=np.uint8).astype(np.int64) - 1
    if not np.isin(labels, range(len(CLASS_NAMES))).all():
        raise DataError(f"{path} holds labels outside 1 to 10: it is another file. Fetch it again.")
    return labels


def _samples(part: str, images: np.ndarray, classes: np.ndarray) -> Samples:
    if len(images) != len(classes):
        raise DataError(
            f"STL-10's {part} files hold {len(images)} images and {len(classes)} labels: "
            "they do not belong together. Fetch both again."
        )
    return Samples(
        values=images,
        classes=classes,
        names=tuple(f"{part}/{row:06d}" for row in range(len(images))),
        class_names=CLASS_NAMES,
    )
