"""Pieces: as many samples as memory bears, whatever their size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onesided.data.read.pieces import piece_length


@given(st.tuples(st.sampled_from([1, 3, 6]), st.integers(1, 9000), st.integers(1, 9000)))
def test_a_piece_of_images_of_any_size_stays_within_16_megabytes(shape: tuple[int, ...]) -> None:
    length, bytes_of_one = piece_length(shape), np.empty(shape, np.uint8).nbytes
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
def test_larger_samples_come_in_smaller_pieces(shape: tuple[int, ...], length: int) -> None:
    assert piece_length(shape) == length
