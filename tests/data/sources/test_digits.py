import numpy as np

from onesided.data.sources import SOURCES
from onesided.data.sources.digits import load_digits


def test_all_1797_digits_are_there_once() -> None:
    source = load_digits()
    assert source.test is not None
    assert (len(source.train), len(source.test)) == (1201, 596)
    assert len(set(source.train.names) | set(source.test.names)) == 1797


def test_every_digit_has_a_third_of_its_images_in_the_test_part() -> None:
    source = load_digits()
    assert source.test is not None
    for digit in range(10):
        trained = int((source.train.classes == digit).sum())
        tested = int((source.test.classes == digit).sum())
        assert tested == (trained + tested) // 3


def test_the_first_image_is_the_published_zero_with_ink_from_0_to_255() -> None:
    source = load_digits()
    first = source.train.values[0, 0]
    assert source.train.classes[0] == 0
    assert source.train.sample_shape == (1, 8, 8)
    # The published row is 0 0 5 13 9 1 0 0, of 16 levels.
    np.testing.assert_array_equal(first[0], [0, 0, 80, 207, 143, 16, 0, 0])
    assert source.train.values.min() == 0
    assert source.train.values.max() == 255


def test_the_division_is_the_same_every_time() -> None:
    assert load_digits().train.names == load_digits().train.names


def test_digits_are_never_flipped() -> None:
    assert load_digits().train.kind == "digit"


def test_normalisation_is_that_of_the_training_part() -> None:
    entry, values = SOURCES["digits"], load_digits().train.values / 255
    np.testing.assert_allclose(values.mean(), entry.mean[0], atol=5e-5)
    np.testing.assert_allclose(values.std(), entry.std[0], atol=5e-5)
