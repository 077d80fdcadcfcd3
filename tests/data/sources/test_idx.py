import gzip
import os
import struct
from pathlib import Path

import numpy as np
import pytest

from onesided.core.errors import DataError, DataNotFound
from onesided.data.sources import SOURCES
from onesided.data.sources.download import check
from onesided.data.sources.idx import load_fashion_mnist, read_idx
from tests.data.sources.fakes import fake_classes, fake_images, write_fashion_mnist


@pytest.mark.parametrize("folder", ["fashion-mnist", "FashionMNIST/raw", "."])
@pytest.mark.parametrize("zipped", [True, False])
def test_images_and_classes_are_read_wherever_they_usually_lie(
    tmp_path: Path, folder: str, zipped: bool
) -> None:
    write_fashion_mnist(tmp_path, folder=folder, zipped=zipped)
    source = load_fashion_mnist(tmp_path)
    assert source.test is not None
    np.testing.assert_array_equal(source.train.values, fake_images(100, (1, 28, 28), 0))
    np.testing.assert_array_equal(source.train.classes, fake_classes(100, 10))
    np.testing.assert_array_equal(source.test.values, fake_images(20, (1, 28, 28), 1))
    assert source.train.class_names[9] == "ankle boot"
    assert source.train.kind == "digit"
    assert [path.parent for path in source.files] == [tmp_path / folder] * 4


def test_a_byte_of_an_idx_file_is_the_pixel_the_format_says(tmp_path: Path) -> None:
    write_fashion_mnist(tmp_path, zipped=False)
    path = tmp_path / "fashion-mnist" / "t10k-images-idx3-ubyte"
    contents = bytearray(path.read_bytes())
    contents[16 + 784 * 3 + 28 * 5 + 11] ^= 0xFF
    path.write_bytes(contents)
    test = load_fashion_mnist(tmp_path).test
    assert test is not None
    changed = np.argwhere(test.values != fake_images(20, (1, 28, 28), 1))
    assert changed.tolist() == [[3, 0, 5, 11]]


def idx(shape: tuple[int, ...], contents: bytes) -> bytes:
    return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}i", *shape) + contents


@pytest.mark.parametrize(
    ("contents", "complaint"),
    [
        (b"", "not an idx file"),
        (b"<html>You are not logged in</html>", "starts with 3c68746d instead of 00000803"),
        (idx((2,), b"ab"), "not an idx file of bytes in 3 dimensions"),
        (idx((2, 2, 2), b"1234567"), "announces 2 x 2 x 2 = 8 bytes and holds 7"),
        (idx((2, 2, 2), b"123456789"), "announces 2 x 2 x 2 = 8 bytes and holds more"),
        (idx((0, 28, 28), b""), "announces 0 x 28 x 28"),
    ],
)
def test_a_file_that_is_not_what_its_head_announces_is_refused(
    tmp_path: Path, contents: bytes, complaint: str
) -> None:
    path = tmp_path / "images"
    path.write_bytes(contents)
    with pytest.raises(DataError, match=complaint):
        read_idx(path, dimensions=3)


@pytest.mark.parametrize("damage", ["cut", "no gzip", "changed"])
def test_a_damaged_gz_is_refused_by_name(tmp_path: Path, damage: str) -> None:
    whole = gzip.compress(idx((10, 4, 4), bytes(range(160))))
    changed = whole[:40] + bytes([whole[40] ^ 0xFF]) + whole[41:]
    path = tmp_path / "images.gz"
    path.write_bytes({"cut": whole[:-30], "no gzip": b"not zipped", "changed": changed}[damage])
    with pytest.raises(DataError, match=r"images\.gz"):
        read_idx(path, dimensions=3)


def test_images_without_as_many_labels_are_refused(tmp_path: Path) -> None:
    write_fashion_mnist(tmp_path, zipped=False)
    (tmp_path / "fashion-mnist" / "train-labels-idx1-ubyte").write_bytes(idx((3,), b"\0\1\2"))
    with pytest.raises(DataError, match=r"100 images and .* 3 labels"):
        load_fashion_mnist(tmp_path)


def test_a_label_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    write_fashion_mnist(tmp_path, zipped=False)
    path = tmp_path / "fashion-mnist" / "t10k-labels-idx1-ubyte"
    path.write_bytes(idx((20,), bytes([10] * 20)))
    with pytest.raises(DataError, match="label 10; expected 0 to 9"):
        load_fashion_mnist(tmp_path)


def test_missing_files_are_named_with_all_four_addresses(tmp_path: Path) -> None:
    with pytest.raises(DataNotFound) as raised:
        load_fashion_mnist(tmp_path)
    message = str(raised.value)
    assert message.count("https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/") == 4
    assert f"onesided data get fashion-mnist --root {tmp_path}" in message
    assert str(tmp_path / "fashion-mnist") in message


def test_the_published_files_are_read_to_the_bit() -> None:
    root = Path(os.environ.get("ONESIDED_DATA", "ONESIDED_DATA is not set"))
    statuses = check("fashion-mnist", root)
    if any(file.state == "missing" for file in statuses):
        pytest.skip(
            "Fashion-MNIST is not there: set ONESIDED_DATA=DATA, "
            "onesided data get fashion-mnist --root DATA"
        )
    assert all(file.state == "good" for file in statuses)
    train, entry = load_fashion_mnist(root).train, SOURCES["fashion-mnist"]
    assert train.classes[:10].tolist() == [9, 0, 0, 3, 0, 2, 7, 2, 5, 5]
    np.testing.assert_allclose(train.values.mean() / 255, entry.mean[0], atol=5e-5)
    np.testing.assert_allclose(train.values.std() / 255, entry.std[0], atol=5e-5)
