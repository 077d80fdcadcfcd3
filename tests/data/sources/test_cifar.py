import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from onesided.core.errors import DataError, DataNotFound
from onesided.data.problem.samples import Samples, Source
from onesided.data.sources import SOURCES
from onesided.data.sources.cifar import (
    CIFAR10,
    CIFAR10_POSITIVES,
    CIFAR100,
    CIFAR100_POSITIVES,
    load_cifar10,
    load_cifar100,
)
from onesided.data.sources.download import check
from tests.data.sources.fakes import (
    BATCH,
    CIFAR10_NAMES,
    fake_classes,
    fake_images,
    python2_pickle,
    write_cifar10_binary,
    write_cifar10_python,
    write_cifar100_binary,
    write_cifar100_python,
)

Write = Callable[[Path], None]


def held_out(source: Source) -> Samples:
    assert source.test is not None
    return source.test


@pytest.mark.parametrize("write", [write_cifar10_binary, write_cifar10_python])
def test_cifar10_gives_the_batches_in_order(tmp_path: Path, write: Write) -> None:
    write(tmp_path)
    source = load_cifar10(tmp_path)
    written = np.concatenate([fake_images(BATCH, (3, 32, 32), seed) for seed in range(5)])
    np.testing.assert_array_equal(source.train.values, written)
    np.testing.assert_array_equal(source.train.classes, np.tile(fake_classes(BATCH, 10), 5))
    np.testing.assert_array_equal(held_out(source).values, fake_images(BATCH, (3, 32, 32), 5))
    assert source.train.class_names == tuple(CIFAR10_NAMES)
    assert source.train.kind == "photograph"
    assert len(source.files) == 6


@pytest.mark.parametrize("write", [write_cifar100_binary, write_cifar100_python])
def test_cifar100_gives_images_with_their_fine_class(tmp_path: Path, write: Write) -> None:
    write(tmp_path)
    source = load_cifar100(tmp_path)
    np.testing.assert_array_equal(source.train.values, fake_images(200, (3, 32, 32), 0))
    np.testing.assert_array_equal(source.train.classes, fake_classes(200, 100))
    np.testing.assert_array_equal(held_out(source).classes, fake_classes(100, 100))
    assert source.train.class_names == CIFAR100.class_names


def test_both_layouts_give_the_same_names_so_that_splits_agree(tmp_path: Path) -> None:
    write_cifar100_binary(tmp_path / "binary")
    write_cifar100_python(tmp_path / "python")
    binary, python = load_cifar100(tmp_path / "binary"), load_cifar100(tmp_path / "python")
    assert binary.train.names == python.train.names
    assert binary.train.names[3] == "train/00003"


@pytest.mark.parametrize(
    ("write", "load"),
    [
        (write_cifar10_binary, load_cifar10),
        (write_cifar10_python, load_cifar10),
        (write_cifar100_binary, load_cifar100),
        (write_cifar100_python, load_cifar100),
    ],
)
def test_the_root_may_be_the_folder_itself(
    tmp_path: Path, write: Write, load: Callable[[Path], Source]
) -> None:
    write(tmp_path)
    (folder,) = tmp_path.iterdir()
    np.testing.assert_array_equal(load(folder).train.values, load(tmp_path).train.values)


@pytest.mark.parametrize("channel", [0, 1, 2])
def test_a_byte_of_a_binary_record_is_the_pixel_the_publisher_says(
    tmp_path: Path, channel: int
) -> None:
    write_cifar10_binary(tmp_path)
    path = tmp_path / "cifar-10-batches-bin" / "data_batch_2.bin"
    contents = bytearray(path.read_bytes())
    row, column, record = 7, 19, 4
    position = record * 3073 + 1 + 1024 * channel + 32 * row + column
    contents[position] ^= 0xFF
    before = load_cifar10(tmp_path).train.values
    path.write_bytes(contents)
    after = load_cifar10(tmp_path).train.values
    assert np.argwhere(before != after).tolist() == [[BATCH + record, channel, row, column]]


def test_the_second_byte_of_a_cifar100_record_is_the_fine_class(tmp_path: Path) -> None:
    write_cifar100_binary(tmp_path)
    path = tmp_path / "cifar-100-binary" / "test.bin"
    contents = bytearray(path.read_bytes())
    contents[0], contents[1] = 3, 88
    path.write_bytes(contents)
    assert held_out(load_cifar100(tmp_path)).classes[0] == 88


def test_pickles_of_python_3_are_read_too(tmp_path: Path) -> None:
    write_cifar10_python(tmp_path)
    images = fake_images(BATCH, (3, 32, 32), 9).reshape(BATCH, 3072)
    path = tmp_path / "cifar-10-batches-py" / "test_batch"
    path.write_bytes(pickle.dumps({"data": images, "labels": [1] * BATCH}, protocol=2))
    read = held_out(load_cifar10(tmp_path)).values
    np.testing.assert_array_equal(read.reshape(BATCH, 3072), images)


def test_class_names_come_from_the_meta_file(tmp_path: Path) -> None:
    write_cifar10_binary(tmp_path)
    names = [f"class{number}" for number in range(10)]
    (tmp_path / "cifar-10-batches-bin" / "batches.meta.txt").write_text("\n".join(names))
    assert load_cifar10(tmp_path).train.class_names == tuple(names)


@pytest.mark.parametrize(
    ("write", "folder", "meta"),
    [
        (write_cifar10_binary, "cifar-10-batches-bin", "batches.meta.txt"),
        (write_cifar10_python, "cifar-10-batches-py", "batches.meta"),
    ],
)
def test_without_a_meta_file_the_known_names_are_used(
    tmp_path: Path, write: Write, folder: str, meta: str
) -> None:
    write(tmp_path)
    (tmp_path / folder / meta).unlink()
    assert load_cifar10(tmp_path).train.class_names == tuple(CIFAR10_NAMES)


def test_a_meta_file_with_nine_names_is_refused(tmp_path: Path) -> None:
    write_cifar10_python(tmp_path)
    path = tmp_path / "cifar-10-batches-py" / "batches.meta"
    path.write_bytes(python2_pickle({"label_names": CIFAR10_NAMES[:9]}))
    with pytest.raises(DataError, match=r"batches\.meta should name 10 classes"):
        load_cifar10(tmp_path)


@pytest.mark.parametrize("cut", [1, 3072, 20 * 3073])
def test_a_file_cut_short_is_refused_by_name(tmp_path: Path, cut: int) -> None:
    write_cifar10_binary(tmp_path)
    path = tmp_path / "cifar-10-batches-bin" / "data_batch_3.bin"
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(DataError, match=r"data_batch_3\.bin has \d+ bytes"):
        load_cifar10(tmp_path)


def test_a_class_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    write_cifar10_binary(tmp_path)
    path = tmp_path / "cifar-10-batches-bin" / "test_batch.bin"
    path.write_bytes(b"\x0a" + path.read_bytes()[1:])
    with pytest.raises(DataError, match="classes from 0 to 10; expected 0 to 9"):
        load_cifar10(tmp_path)


PIXELS = np.zeros((2, 3072), dtype=np.uint8)


@pytest.mark.parametrize(
    ("contents", "complaint"),
    [
        ([1, 2], "no dictionary"),
        ({"labels": [0, 1]}, "no images under 'data'"),
        ({"data": PIXELS.astype(np.float32), "labels": [0, 1]}, "no images under 'data'"),
        ({"data": PIXELS}, "no classes under 'labels'"),
        ({"data": PIXELS, "labels": [0, "one"]}, "no classes under 'labels'"),
        ({"data": PIXELS, "labels": [0, 10**40]}, "no classes under 'labels'"),
        ({"data": PIXELS, "labels": [0, 1, 2]}, "and 3 classes"),
        ({"data": PIXELS[:, :100], "labels": [0, 1]}, r"shape \(2, 100\)"),
        ({"data": PIXELS[:0], "labels": []}, "and 0 classes"),
    ],
)
def test_a_pickle_that_is_not_a_batch_is_refused(
    tmp_path: Path, contents: object, complaint: str
) -> None:
    write_cifar10_python(tmp_path)
    path = tmp_path / "cifar-10-batches-py" / "data_batch_1"
    path.write_bytes(pickle.dumps(contents, protocol=3))
    with pytest.raises(DataError, match=complaint):
        load_cifar10(tmp_path)


def test_for_an_empty_root_the_error_names_files_and_address(
    tmp_path: Path,
) -> None:
    with pytest.raises(DataNotFound) as raised:
        load_cifar10(tmp_path)
    message = str(raised.value)
    assert "data_batch_1.bin, data_batch_2.bin, data_batch_3.bin" in message
    assert str(tmp_path / "cifar-10-batches-bin") in message
    assert str(tmp_path / "cifar-10-batches-py") in message
    assert f"onesided data get cifar10 --root {tmp_path}" in message
    assert "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz" in message


def test_one_missing_file_is_named(tmp_path: Path) -> None:
    write_cifar10_binary(tmp_path)
    (tmp_path / "cifar-10-batches-bin" / "data_batch_4.bin").unlink()
    with pytest.raises(DataNotFound, match=r"cifar-10-batches-bin lacks data_batch_4\.bin\."):
        load_cifar10(tmp_path)


def test_a_complete_python_layout_is_read_beside_a_broken_binary_one(tmp_path: Path) -> None:
    write_cifar10_binary(tmp_path)
    write_cifar10_python(tmp_path)
    (tmp_path / "cifar-10-batches-bin" / "data_batch_4.bin").unlink()
    assert len(load_cifar10(tmp_path).train) == 5 * BATCH


def test_folders_called_train_and_test_are_not_mistaken_for_cifar100(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "test").mkdir()
    with pytest.raises(DataNotFound, match="cifar100 is not in"):
        load_cifar100(tmp_path)


def test_without_a_root_the_way_to_give_one_is_said() -> None:
    with pytest.raises(DataNotFound, match="--root DATA"):
        load_cifar10(None)


def test_vehicles_are_the_positives_of_cifar10() -> None:
    positives = {CIFAR10.class_names[number] for number in CIFAR10_POSITIVES}
    assert positives == {"airplane", "automobile", "ship", "truck"}


SUPERCLASSES = """
beaver dolphin otter seal whale
aquarium_fish flatfish ray shark trout
bee beetle butterfly caterpillar cockroach
bear leopard lion tiger wolf
camel cattle chimpanzee elephant kangaroo
fox porcupine possum raccoon skunk
crab lobster snail spider worm
baby boy girl man woman
crocodile dinosaur lizard snake turtle
hamster mouse rabbit shrew squirrel
"""


def test_animals_and_people_are_the_positives_of_cifar100() -> None:
    positives = [CIFAR100.class_names[number] for number in CIFAR100_POSITIVES]
    assert len(CIFAR100.class_names) == len(set(CIFAR100.class_names)) == 100
    assert sorted(positives) == sorted(SUPERCLASSES.split())


def test_the_splits_have_the_sizes_of_the_paper() -> None:
    for name, prior in (("cifar10", 0.4), ("cifar100", 0.5)):
        entry = SOURCES[name]
        assert (entry.positives, entry.unlabelled, entry.prior) == (1000, 40000, prior)
        assert (entry.held_out_positives, entry.held_out_unlabelled) == (100, 4000)
    assert SOURCES["cifar10"].mean == (0.4914, 0.4822, 0.4465)
    assert SOURCES["cifar100"].std == (0.2675, 0.2565, 0.2761)


@pytest.mark.parametrize(
    ("name", "first_classes"),
    [("cifar10", [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]), ("cifar100", [19, 29, 0, 11, 1])],
)
def test_the_published_files_are_read_to_the_bit(name: str, first_classes: list[int]) -> None:
    root = Path(os.environ.get("ONESIDED_DATA", "ONESIDED_DATA is not set"))
    if any(file.state == "missing" for file in check(name, root)):
        pytest.skip(
            f"{name} is not there: set ONESIDED_DATA=DATA, onesided data get {name} --root DATA"
        )
    assert all(file.state == "good" for file in check(name, root))
    source, entry = SOURCES[name].load(root), SOURCES[name]
    assert (len(source.train), len(held_out(source))) == (50000, 10000)
    assert source.train.classes[: len(first_classes)].tolist() == first_classes
    assert len(set(np.bincount(source.train.classes))) == 1
    planes = source.train.values.swapaxes(0, 1).reshape(3, -1)
    np.testing.assert_allclose(planes.mean(axis=1) / 255, entry.mean, atol=2e-4)
    np.testing.assert_allclose(planes.std(axis=1) / 255, entry.std, atol=7e-4)
