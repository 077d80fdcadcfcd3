"""The first noun of the line refuses what the rest of the line could not use."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onesided.core.errors import DataError
from onesided.data.problem.samples import Samples, Source, chunk_length


def samples_of(values: np.ndarray, classes: int | None = None, names: int | None = None) -> Samples:
    count = len(values)
    return Samples(
        values=values,
        classes=np.zeros(count if classes is None else classes, dtype=np.int64),
        names=tuple(str(row) for row in range(count if names is None else names)),
    )


def test_images_know_their_number_and_shape() -> None:
    samples = samples_of(np.zeros((5, 3, 8, 7), np.uint8))
    assert len(samples) == 5
    assert samples.sample_shape == (3, 8, 7)


def test_vectors_know_their_number_and_shape() -> None:
    samples = samples_of(np.zeros((5, 11), np.float32))
    assert len(samples) == 5
    assert samples.sample_shape == (11,)


def test_no_samples_are_samples_too() -> None:
    assert len(samples_of(np.zeros((0, 3, 8, 8), np.uint8))) == 0


def test_values_are_kept_not_copied() -> None:
    values = np.zeros((2, 3, 8, 8), np.uint8)
    assert samples_of(values).values is values


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint16])
def test_images_that_are_not_8_bit_are_refused(dtype: type[np.generic]) -> None:
    with pytest.raises(DataError, match=rf"must be uint8 \(N, C, H, W\); got {np.dtype(dtype)}"):
        samples_of(np.zeros((2, 3, 8, 8), dtype))


@pytest.mark.parametrize("shape", [(4,), (4, 8, 8), (4, 1, 3, 8, 8)])
def test_other_numbers_of_axes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match=r"images \(N, C, H, W\) or vectors \(N, D\); got an array"):
        samples_of(np.zeros(shape, np.uint8))


@pytest.mark.parametrize(("classes", "names"), [(3, 4), (4, 5), (3, 3), (0, 4)])
def test_every_sample_needs_a_class_and_a_name(classes: int, names: int) -> None:
    with pytest.raises(DataError, match=f"4 samples, {classes} classes and {names} names"):
        samples_of(np.zeros((4, 2), np.float32), classes, names)


def test_names_of_features_are_one_for_each_number_of_a_vector() -> None:
    vectors = samples_of(np.zeros((4, 2), np.float32))
    assert replace(vectors, feature_names=("a", "b")).feature_names == ("a", "b")
    for samples in (vectors, samples_of(np.zeros((4, 3, 8, 8), np.uint8))):
        with pytest.raises(DataError, match="3 names of features for samples of the shape"):
            replace(samples, feature_names=("a", "b", "c"))


def test_a_source_may_hold_only_a_training_part() -> None:
    source = Source(train=samples_of(np.zeros((4, 2), np.float32)))
    assert (source.test, source.unlabelled, source.files) == (None, None, ())


@given(st.tuples(st.sampled_from([1, 3, 6]), st.integers(1, 9000), st.integers(1, 9000)))
def test_a_chunk_of_images_of_any_size_stays_within_16_megabytes(shape: tuple[int, ...]) -> None:
    length, bytes_of_one = chunk_length(shape), np.empty(shape, np.uint8).nbytes
    assert 1 <= length <= 1024
    assert length == 1 or length * bytes_of_one <= 2**24
    assert length == 1024 or (length + 1) * bytes_of_one > 2**24, "as many as the bound allows"


@pytest.mark.parametrize(
    ("shape", "length"),
    [
        ((3, 32, 32), 1024),
        ((3, 224, 224), 111),
        ((3, 4000, 4000), 1),
        ((30,), 1024),
        ((2**13,), 512),
    ],
)
def test_larger_samples_come_in_smaller_chunks(shape: tuple[int, ...], length: int) -> None:
    assert chunk_length(shape) == length
