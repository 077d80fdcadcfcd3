import math

import numpy as np
import pytest

from onesided.core.labels import POSITIVE
from onesided.data.sources import SOURCES
from onesided.data.sources.toy import load_toy_images, load_toy_vectors


def test_the_clouds_lie_at_plus_and_minus_two_with_unit_spread() -> None:
    test = load_toy_vectors().test
    assert test is not None
    for label, centre in ((POSITIVE, 2.0), (1 - POSITIVE, -2.0)):
        points = test.values[test.classes == label]
        np.testing.assert_allclose(points.mean(axis=0), [centre, 0], atol=0.06)
        np.testing.assert_allclose(points.std(axis=0), [1, 1], atol=0.05)


def test_the_best_boundary_is_right_for_977_of_1000_points() -> None:
    test = load_toy_vectors().test
    assert test is not None
    called_positive = test.values[:, 0] > math.log(1.5) / 4
    accuracy = (called_positive == (test.classes == POSITIVE)).mean()
    assert accuracy == pytest.approx(0.9778, abs=0.004)
    assert (test.classes == POSITIVE).mean() == pytest.approx(0.4)


def test_images_show_the_class_as_light_from_above() -> None:
    test = load_toy_images().test
    assert test is not None
    rows = test.values.astype(float).mean(axis=(1, 3))
    called_positive = rows[:, :4].mean(axis=1) > rows[:, 4:].mean(axis=1)
    assert (called_positive == (test.classes == POSITIVE)).mean() > 0.94


@pytest.mark.parametrize("name", ["toy-vectors", "toy-images"])
def test_toys_are_the_same_every_time(name: str) -> None:
    first, second = SOURCES[name].load(None), SOURCES[name].load(None)
    np.testing.assert_array_equal(first.train.values, second.train.values)
    np.testing.assert_array_equal(first.train.classes, second.train.classes)


def test_toys_are_not_in_the_list_for_people() -> None:
    listed = {name for name, entry in SOURCES.items() if entry.listed}
    assert listed >= {"digits", "fashion-mnist", "cifar10", "cifar100", "stl10"}
    assert not {"toy-vectors", "toy-images"} & listed


def test_every_published_set_has_official_addresses_and_checksums() -> None:
    for entry in SOURCES.values():
        for layout in entry.layouts:
            assert all(archive.address.startswith("https://") for archive in layout.archives)
            checksums = [archive.md5 for archive in layout.archives]
            checksums += [file.md5 for file in layout.files]
            assert all(len(bytes.fromhex(checksum)) == 16 for checksum in checksums)
            assert len(set(checksums)) == len(checksums)
            assert all(len(bytes.fromhex(archive.sha256)) == 32 for archive in layout.archives)
    assert SOURCES["digits"].archives == ()
    assert len(SOURCES["fashion-mnist"].archives) == 4
