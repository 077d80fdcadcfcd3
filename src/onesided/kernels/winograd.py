"""Winograd's transforms of image tiles, between which a 3x3 convolution is an elementwise product.

Winograd's F(4x4, 3x3) (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks",
CVPR 2016): a tile d of 6x6 numbers and a kernel g of 3x3 give 4x4 numbers

    y = A' [(G g G') * (B' d B)] A

with 36 products instead of 144. Over channels each of the 36 is a matrix product, which torch
computes (`nets/convolution.py`). Here are the sums before and after it, and their transposes for
the gradients.

Images are (image, row, column, channel) and domains (tile, 36, channel), so that the CPU sums
neighbouring channels at once. Tiles are 4 pixels apart and overlap by two; outside the image there
are zeros.
"""

from functools import partial

import numpy as np
from jaxtyping import Float32
from numba import prange

from onesided.kernels.compiled import compiled

STEP = 4
"""Pixels from one tile to the next: the outputs of a tile along a side."""
SIDE = 6
"""Input pixels of a tile along a side."""
B_TRANSPOSED = np.array(
    [
        [4, 0, -5, 0, 1, 0],
        [0, -4, -4, 1, 1, 0],
        [0, 4, -4, -1, 1, 0],
        [0, -2, -1, 2, 1, 0],
        [0, 2, -1, -2, 1, 0],
        [0, 4, 0, -5, 0, 1],
    ],
    np.float32,
)
A_TRANSPOSED = np.array(
    [
        [1, 1, 1, 1, 1, 0],
        [0, 1, -1, 2, -2, 0],
        [0, 1, 1, 4, 4, 0],
        [0, 1, -1, 8, -8, 1],
    ],
    np.float32,
)
B, A = np.ascontiguousarray(B_TRANSPOSED.T), np.ascontiguousarray(A_TRANSPOSED.T)

Images = Float32[np.ndarray, "n h w c"]
Domain = Float32[np.ndarray, "t 36 c"]
Tile = Float32[np.ndarray, "rows columns c"]
Matrix = Float32[np.ndarray, "out into"]

fused = partial(compiled, fused=True)
threaded = partial(compiled, parallel=True)


@fused
def _along_both(matrix: Matrix, tile: Tile, half: Tile, result: Tile) -> None:
    """Multiply both axes of a tile by a matrix; `half` holds the intermediate result."""
    _along_first(matrix, tile, half)
    _along_first(matrix, half, result)


@fused
def _along_first(matrix: Matrix, tile: Tile, result: Tile) -> None:
    """Multiply the first axis by a matrix and swap the axes; applied twice, their order is back.

    One sum per loop, with all terms written out, lets the compiler take eight channels at once.
    """
    channels = tile.shape[2]
    for j in range(tile.shape[1]):
        for k in range(len(matrix)):
            m0, m1, m2, m3 = matrix[k, 0], matrix[k, 1], matrix[k, 2], matrix[k, 3]
            if len(tile) == STEP:
                for c in range(channels):
                    result[j, k, c] = (
                        m0 * tile[0, j, c]
                        + m1 * tile[1, j, c]
                        + m2 * tile[2, j, c]
                        + m3 * tile[3, j, c]
                    )
            else:
                m4, m5 = matrix[k, 4], matrix[k, 5]
                for c in range(channels):
                    result[j, k, c] = (
                        m0 * tile[0, j, c]
                        + m1 * tile[1, j, c]
                        + m2 * tile[2, j, c]
                        + m3 * tile[3, j, c]
                        + m4 * tile[4, j, c]
                        + m5 * tile[5, j, c]
                    )


@fused
def _read(images: Images, image: int, top: int, left: int, tile: Tile) -> None:
    """Copy a tile; outside the image it is zero."""
    _, height, width, channels = images.shape
    for i in range(tile.shape[0]):
        for j in range(tile.shape[1]):
            y, x = top + i, left + j
            if 0 <= y < height and 0 <= x < width:
                for c in range(channels):
                    tile[i, j, c] = images[image, y, x, c]
            else:
                for c in range(channels):
                    tile[i, j, c] = 0.0


@fused
def _spread(
    matrix: Matrix, images: Images, before: int, domain: Domain, start: int, stop: int
) -> None:
    """Write the domain of some images, whose tiles begin `before` pixels earlier."""
    _, height, width, channels = images.shape
    side = matrix.shape[1]
    inputs = np.empty((side, side, channels), np.float32)
    half = np.empty((side, SIDE, channels), np.float32)
    whole = domain.reshape((len(domain), SIDE, SIDE, channels))
    tile = start * -(-height // STEP) * -(-width // STEP)
    for image in range(start, stop):
        for top in range(-before, height - before, STEP):
            for left in range(-before, width - before, STEP):
                _read(images, image, top, left, inputs)
                _along_both(matrix, inputs, half, whole[tile])
                tile += 1


@fused
def _gather(
    matrix: Matrix, domain: Domain, before: int, images: Images, start: int, stop: int
) -> None:
    """Add the tiles to some images; each begins `before` pixels earlier."""
    _, height, width, channels = images.shape
    side = len(matrix)
    half = np.empty((SIDE, side, channels), np.float32)
    given = np.empty((side, side, channels), np.float32)
    whole = domain.reshape((len(domain), SIDE, SIDE, channels))
    tile = start * -(-height // STEP) * -(-width // STEP)
    for image in range(start, stop):
        for top in range(-before, height - before, STEP):
            for left in range(-before, width - before, STEP):
                _along_both(matrix, whole[tile], half, given)
                for i in range(max(0, -top), min(side, height - top)):
                    for j in range(max(0, -left), min(side, width - left)):
                        for c in range(channels):
                            images[image, top + i, left + j, c] += given[i, j, c]
                tile += 1


@compiled
def spread_alone(matrix: Matrix, images: Images, before: int, domain: Domain) -> None:
    """Write M t M' of every tile t: with B' the domain of images, with A that of gradients."""
    _spread(matrix, images, before, domain, 0, len(images))


@compiled
def gather_alone(matrix: Matrix, domain: Domain, before: int, images: Images) -> None:
    """Add M t M' of every tile t to the images: with A' the outputs, with B the gradients."""
    _gather(matrix, domain, before, images, 0, len(images))


@threaded
def spread(parts: int, matrix: Matrix, images: Images, before: int, domain: Domain) -> None:
    """Do the same as `spread_alone`, each thread for some of the images."""
    count = len(images)
    for part in prange(parts):
        start, stop = count * part // parts, count * (part + 1) // parts
        _spread(matrix, images, before, domain, start, stop)


@threaded
def gather(parts: int, matrix: Matrix, domain: Domain, before: int, images: Images) -> None:
    """Do the same as `gather_alone`, each thread for some of the images."""
    count = len(images)
    for part in prange(parts):
        start, stop = count * part // parts, count * (part + 1) // parts
        _gather(matrix, domain, before, images, start, stop)
