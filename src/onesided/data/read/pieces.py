"""How many samples are in memory at a time, where a whole set goes through a network."""

from math import prod

PIECE = 1024
"""Items that are in memory, and lost by a kill, at most at a time."""
PIECE_BYTES = 2**24
"""Bytes of samples that are in memory at most at a time; a larger sample is alone."""


def piece_length(sample_shape: tuple[int, ...]) -> int:
    """Return how many items of this shape are in memory at a time.

    A thousand as long as they are small, up to 73 by 73 pixels of colour; fewer of larger
    ones, so that all samples of a piece have `PIECE_BYTES` at most.
    """
    # The network sees no more than a piece at once, so this bounds its layers too: as floats a
    # piece is 64 MiB, and 1.4 GiB behind a first layer of 64 channels at full resolution.
    # Images are single bytes, the numbers of vectors have four.
    size = prod(sample_shape) * (1 if len(sample_shape) == 3 else 4)
    return max(1, min(PIECE, PIECE_BYTES // size))
