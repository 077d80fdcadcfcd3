import os
from pathlib import Path

import numpy as np
import pytest

from onesided.core.errors import DataError, DataNotFound
from onesided.core.labels import UNKNOWN
from onesided.data.sources import SOURCES
from onesided.data.sources.download import check
from onesided.data.sources.stl10 import CLASS_NAMES, load_stl10
from tests.data.sources.fakes import fake_classes, fake_images, write_stl10


def test_all_three_parts_are_read_upright(tmp_path: Path) -> None:
    write_stl10(tmp_path)
    source = load_stl10(tmp_path)
    assert source.test is not None
    assert source.unlabelled is not None
    np.testing.assert_array_equal(source.train.values, fake_images(40, (3, 96, 96), 0))
    np.testing.assert_array_equal(source.test.values, fake_images(20, (3, 96, 96), 1))
    np.testing.assert_array_equal(source.unlabelled.values, fake_images(60, (3, 96, 96), 2))
    np.testing.assert_array_equal(source.train.classes, fake_classes(40, 10))
    assert source.train.kind == "photograph"


def test_the_classes_of_the_unlabelled_part_are_unknown(tmp_path: Path) -> None:
    write_stl10(tmp_path)
    unlabelled = load_stl10(tmp_path).unlabelled
    assert unlabelled is not None
    assert (unlabelled.classes == UNKNOWN).all()
    assert unlabelled.classes.dtype == np.int64


@pytest.mark.parametrize("channel", [0, 1, 2])
def test_planes_lie_column_by_column(tmp_path: Path, channel: int) -> None:
    write_stl10(tmp_path)
    path = tmp_path / "stl10_binary" / "unlabeled_X.bin"
    contents = bytearray(path.read_bytes())
    row, column, image = 10, 50, 7
    contents[image * 27648 + 9216 * channel + 96 * column + row] ^= 0xFF
    path.write_bytes(contents)
    unlabelled = load_stl10(tmp_path).unlabelled
    assert unlabelled is not None
    changed = np.argwhere(unlabelled.values != fake_images(60, (3, 96, 96), 2))
    assert changed.tolist() == [[image, channel, row, column]]


def test_images_stay_on_disk_until_they_are_asked_for(tmp_path: Path) -> None:
    write_stl10(tmp_path)
    unlabelled = load_stl10(tmp_path).unlabelled
    assert unlabelled is not None
    assert isinstance(unlabelled.values, np.memmap)


def test_the_root_may_be_the_folder_itself(tmp_path: Path) -> None:
    write_stl10(tmp_path)
    assert len(load_stl10(tmp_path / "stl10_binary").train) == 40


@pytest.mark.parametrize("keep", [0, 27647, 27649])
def test_images_cut_short_are_refused_by_name(tmp_path: Path, keep: int) -> None:
    write_stl10(tmp_path)
    path = tmp_path / "stl10_binary" / "test_X.bin"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError, match=rf"test_X\.bin has {keep} bytes"):
        load_stl10(tmp_path)


@pytest.mark.parametrize("label", [0, 11])
def test_labels_outside_1_to_10_are_refused(tmp_path: Path, label: int) -> None:
    write_stl10(tmp_path)
    (tmp_path / "stl10_binary" / "train_y.bin").write_bytes(bytes([label] * 40))
    with pytest.raises(DataError, match=r"train_y\.bin holds labels outside 1 to 10"):
        load_stl10(tmp_path)


def test_images_without_as_many_labels_are_refused(tmp_path: Path) -> None:
    write_stl10(tmp_path)
    (tmp_path / "stl10_binary" / "train_y.bin").write_bytes(b"\x01\x02")
    with pytest.raises(DataError, match="train files hold 40 images and 2 labels"):
        load_stl10(tmp_path)


def test_missing_files_are_named_with_their_address(tmp_path: Path) -> None:
    with pytest.raises(DataNotFound) as raised:
        load_stl10(tmp_path)
    message = str(raised.value)
    assert "train_X.bin, train_y.bin, test_X.bin, test_y.bin, unlabeled_X.bin" in message
    assert "https://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz" in message


def test_the_inherited_cat_stays_among_the_positives() -> None:
    entry = SOURCES["stl10"]
    positives = [CLASS_NAMES[number] for number in entry.positive_classes]
    assert positives == ["airplane", "car", "cat", "ship", "truck"]
    assert (entry.positives, entry.unlabelled, entry.prior) == (1000, 90000, None)
    assert (entry.held_out_positives, entry.held_out_unlabelled) == (100, 9000)


def test_the_published_files_are_read_to_the_bit() -> None:
    root = Path(os.environ.get("ONESIDED_DATA", "ONESIDED_DATA is not set"))
    statuses = check("stl10", root)
    if any(file.state == "missing" for file in statuses):
        pytest.skip(
            "STL-10 is not there: set ONESIDED_DATA=DATA, onesided data get stl10 --root DATA"
        )
    assert all(file.state == "good" for file in statuses)
    source = load_stl10(root)
    assert source.unlabelled is not None
    assert (len(source.train), len(source.unlabelled)) == (5000, 100000)
