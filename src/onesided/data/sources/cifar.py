"""CIFAR-10 and CIFAR-100, in the binary or the python files of their publisher.

Binary: records of one label byte (CIFAR-100: coarse, then fine) and 3072 bytes of image.
Python: a pickled dictionary with the same images as rows and the labels as a list; it is
read by `safe_pickle`, which executes nothing. An image is the red, the green and the
blue plane, each row by row. Both layouts hold the same images in the same order.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onesided.core.errors import DataError
from onesided.data.problem.samples import Samples, Source
from onesided.data.sources.download import Layout, locate, one_archive
from onesided.data.sources.safe_pickle import read_pickle

_ADDRESS = "https://www.cs.toronto.edu/~kriz"
_SHAPE = (3, 32, 32)
_PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class Variant:
    """What differs between CIFAR-10 and CIFAR-100.

    Attributes:
        train: Names of the training files, without the .bin of the binary layout.
        label_bytes: Label bytes of a binary record; the last one is the class.
        label_key: Key of the classes in a python file.
        names_text: File with the names of the classes, binary layout.
        names_pickle: The same, python layout, with the names under `names_key`.
    """

    name: str
    train: tuple[str, ...]
    test: str
    label_bytes: int
    label_key: str
    names_text: str
    names_pickle: str
    names_key: str
    class_names: tuple[str, ...]
    binary: Layout
    python: Layout

    @property
    def layouts(self) -> tuple[Layout, Layout]:
        """Both layouts, the one without pickles first."""
        return self.binary, self.python


CIFAR10 = Variant(
    name="cifar10",
    train=tuple(f"data_batch_{number}" for number in range(1, 6)),
    test="test_batch",
    label_bytes=1,
    label_key="labels",
    names_text="batches.meta.txt",
    names_pickle="batches.meta",
    names_key="label_names",
    class_names=(
        *("airplane", "automobile", "bird", "cat", "deer"),
        *("dog", "frog", "horse", "ship", "truck"),
    ),
    binary=one_archive(
        "cifar-10-batches-bin",
        (
            *(
                f"{_ADDRESS}/cifar-10-binary.tar.gz",
                170_052_171,
                "c32a1d4ab5d03f1284b67883e8d87530",
            ),
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        ),
        (
            *("data_batch_1.bin", 30_730_000, "5dd7e06a14cb22eb9f671a540d1b7c25"),
            "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        ),
        (
            *("data_batch_2.bin", 30_730_000, "5ea93a67294ea407fff1d09f752e9692"),
            "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        ),
        (
            *("data_batch_3.bin", 30_730_000, "942cd6a4bcdd0dd3c604fbe906cb4421"),
            "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        ),
        (
            *("data_batch_4.bin", 30_730_000, "ae636b3ba5c66a11e91e8cb52e771fcb"),
            "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        ),
        (
            *("data_batch_5.bin", 30_730_000, "53f37980c15c3d472c316c40844f3f0d"),
            "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        ),
        (
            *("test_batch.bin", 30_730_000, "803d5f7f4d78ea53de84dbe85f74fb6d"),
            "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
        ),
    ),
    python=one_archive(
        "cifar-10-batches-py",
        (
            *(
                f"{_ADDRESS}/cifar-10-python.tar.gz",
                170_498_071,
                "c58f30108f718f92721af3b95e74349a",
            ),
            "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
        ),
        ("data_batch_1", 31_035_704, "c99cafc152244af753f735de768cd75f"),
        ("data_batch_2", 31_035_320, "d4bba439e000b95fd0a9bffe97cbabec"),
        ("data_batch_3", 31_035_999, "54ebc095f3ab1f0389bbae665268c751"),
        ("data_batch_4", 31_035_696, "634d18415352ddfa80567beed471001a"),
        ("data_batch_5", 31_035_623, "482c414d41f54cd18b22e5b47cb7c3cb"),
        ("test_batch", 31_035_526, "40351d587109b95175f43aff81a1287e"),
    ),
)

CIFAR100 = Variant(
    name="cifar100",
    train=("train",),
    test="test",
    label_bytes=2,
    label_key="fine_labels",
    names_text="fine_label_names.txt",
    names_pickle="meta",
    names_key="fine_label_names",
    class_names=tuple(
        """
        apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle
        bowl boy bridge bus butterfly camel can castle caterpillar cattle
        chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur
        dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard
        lamp lawn_mower leopard lion lizard lobster man maple_tree motorcycle mountain
        mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree
        plain plate poppy porcupine possum rabbit raccoon ray road rocket
        rose sea seal shark shrew skunk skyscraper snail snake spider
        squirrel streetcar sunflower sweet_pepper table tank telephone television tiger tractor
        train trout tulip turtle wardrobe whale willow_tree wolf woman worm
        """.split()  # noqa: SIM905, a hundred quoted words would fill a page
    ),
    binary=one_archive(
        "cifar-100-binary",
        (
            *(
                f"{_ADDRESS}/cifar-100-binary.tar.gz",
                168_513_733,
                "03b5dce01913d631647c71ecec9e9cb8",
            ),
            "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
        ),
        ("train.bin", 153_700_000, "6172c7755cfe09b2fe270c85cebc1b15"),
        ("test.bin", 30_740_000, "4499cfba6c016c1be1438163640a0898"),
    ),
    python=one_archive(
        "cifar-100-python",
        (
            *(
                f"{_ADDRESS}/cifar-100-python.tar.gz",
                169_001_437,
                "eb9058c3a382ffc7106e4002c42a8d85",
            ),
            "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
        ),
        (
            *("train", 155_249_918, "16019d7e3df5f24257cddd939b257f8d"),
            "735e79b04f092ca3d2e6d07f368c0a7d70d48c48d28865950cc24454cf45129b",
        ),
        (
            *("test", 31_049_707, "f0ef6b0ae62326f3e7ffdfab6717acfc"),
            "4b67687d9933c4db8f0831104447f15b93774f4f464bd0516f0f0f2ac83b7864",
        ),
    ),
)

CIFAR10_POSITIVES = (0, 1, 8, 9)
"""The vehicles."""

# Ten superclasses of five fine classes each: aquatic mammals, fish, insects, large
# carnivores, large omnivores and herbivores, medium mammals, invertebrates other than
# insects, people, reptiles, small mammals.
CIFAR100_POSITIVES = (
    *(4, 30, 55, 72, 95, 1, 32, 67, 73, 91, 6, 7, 14, 18, 24, 3, 42, 43, 88, 97),
    *(15, 19, 21, 31, 38, 34, 63, 64, 66, 75, 26, 45, 77, 79, 99, 2, 11, 35, 46, 98),
    *(27, 29, 44, 78, 93, 36, 50, 65, 74, 80),
)
"""The animals and people."""


def load_cifar10(root: Path | None) -> Source:
    """Return CIFAR-10 as 3x32x32 images, 50000 to train and 10000 to test."""
    return _load(CIFAR10, root)


def load_cifar100(root: Path | None) -> Source:
    """Return CIFAR-100 with its fine classes, 50000 to train and 10000 to test."""
    return _load(CIFAR100, root)


def _load(variant: Variant, root: Path | None) -> Source:
    layout, folder = locate(variant.name, variant.layouts, root)
    binary = layout is variant.binary
    ending = ".bin" if binary else ""
    class_names = _class_names(variant, folder, binary=binary)

    def part(name: str, paths: tuple[Path, ...]) -> Samples:
        read = _read_binary if binary else _read_python
        batches = [read(variant, path) for path in paths]
        images = np.concatenate([images for images, _ in batches])
        return Samples(
            values=images.reshape(-1, *_SHAPE),
            classes=np.concatenate([classes for _, classes in batches]),
            names=tuple(f"{name}/{row:05d}" for row in range(len(images))),
            class_names=class_names,
        )

    train = tuple(folder / f"{stem}{ending}" for stem in variant.train)
    test = (folder / f"{variant.test}{ending}",)
    return Source(train=part("train", train), test=part("test", test), files=train + test)


def _read_binary(variant: Variant, path: Path) -> tuple[np.ndarray, np.ndarray]:
    contents = np.fromfile(path, dtype=np.uint8)
    record = variant.label_bytes + _PIXELS
    if len(contents) == 0 or len(contents) % record:
        raise DataError(
            f"{path} has {len(contents)} bytes, which is no whole number of records of "
            f"{record} bytes: it was cut short or is another file. Fetch it again."
        )
    records = contents.reshape(-1, record)
    labels = records[:, variant.label_bytes - 1]
    return records[:, variant.label_bytes :], _known_classes(variant, labels.astype(np.int64), path)


def _read_python(variant: Variant, path: Path) -> tuple[np.ndarray, np.ndarray]:
    batch = _read_dictionary(path)
    images, labels = batch.get("data"), batch.get(variant.label_key)
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or images.ndim != 2:
        raise DataError(f"{path} has no images under 'data': not CIFAR. Fetch it again.")
    if not isinstance(labels, list) or not all(
        isinstance(label, int) and 0 <= label < 256 for label in labels
    ):
        raise DataError(
            f"{path} has no classes under '{variant.label_key}': not CIFAR. Fetch it again."
        )
    if images.shape != (len(labels), _PIXELS) or not labels:
        raise DataError(
            f"{path} holds an array of shape {images.shape} and {len(labels)} classes; expected "
            f"images of {_PIXELS} bytes and as many classes. Fetch it again."
        )
    return np.asarray(images), _known_classes(variant, np.array(labels, dtype=np.int64), path)


def _read_dictionary(path: Path) -> dict[object, object]:
    contents = read_pickle(path)
    if not isinstance(contents, dict):
        raise DataError(f"{path} holds no dictionary: not CIFAR. Fetch it again.")
    return contents


def _known_classes(variant: Variant, classes: np.ndarray, path: Path) -> np.ndarray:
    if classes.min() < 0 or classes.max() >= len(variant.class_names):
        raise DataError(
            f"{path} holds classes from {classes.min()} to {classes.max()}; expected 0 to "
            f"{len(variant.class_names) - 1}. It is another file: fetch it again."
        )
    return classes


def _class_names(variant: Variant, folder: Path, *, binary: bool) -> tuple[str, ...]:
    path = folder / (variant.names_text if binary else variant.names_pickle)
    if not path.is_file():
        return variant.class_names
    names: object = (
        path.read_text("utf-8", errors="replace").split()
        if binary
        else _read_dictionary(path).get(variant.names_key)
    )
    expected = len(variant.class_names)
    if not isinstance(names, list) or len(names) != expected:
        raise DataError(
            f"{path} should name {expected} classes and does not. Delete it to use the known "
            "names, or fetch the data set again."
        )
    return tuple(str(name) for name in names)
