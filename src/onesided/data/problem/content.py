"""Which items show the same thing: copies, and images that look nearly alike.

A copy of a training item tests nothing, and ten copies are one item. So what is held out is
divided by content, and figures count contents. The content of an item is what the model sees:
decoded pixels, the values of a row, a text; never the bytes of a file.

    u(x)    an image as 8 x 8 means of each channel, their mean removed, of unit length
    d       1 - <u(x), u(y)>, the distance of two images
    q       median over images of the distance below which a tenth of all others lie

Two images are near copies if d <= NEAR q^2, if they agree at 16 x 16 nearly as well, and have the
same colour and contrast. The limit follows the pool, because pools differ: two photographs at
d = .02 are one photograph, two drawn digits at that distance are two digits.
The limit was chosen on CIFAR-10, Fashion-MNIST, handwritten digits and aerial images: it finds
JPEGs of quality 75 and images of half the size, and joins no large groups of different ones.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64, UInt8

from onesided.core.folds import Groups
from onesided.data.problem.dataset import PUDataset, Selection, bytes_of
from onesided.data.problem.samples import CHUNK_ITEMS, chunk_length

NEAR = 0.06
"""Largest distance of near copies, as a multiple of q^2."""
COARSE, FINE = 8, 16
"""Sides of the thumbnails that are compared first and second."""
FINE_FACTOR = 2.5
"""How much larger the distance may be at 16 x 16: encoders change details most."""
FAINTEST = 3.0
"""Least contrast of an image that is compared, in levels of 255: below it noise is everything."""
COLOUR, CONTRAST = 8.0, 1.25
"""Largest difference of a channel's mean, in levels, and largest ratio of contrasts."""
SCALE_ROWS = 1000
"""Images from which q and the directions are found."""
FEW = 4000
"""Images that are compared by all numbers of their thumbnails; more by the first directions."""
DIRECTIONS = 16
"""Numbers of an image that are kept while the nearest of many are searched."""
NEIGHBOURS = 8
"""Nearest neighbours that are compared with an image. Many copies of one are found in a chain."""


@dataclass(frozen=True)
class Contents:
    """The content of each item.

    Attributes:
        number: Items with the same number show the same thing.
        copies: Items whose content is exactly that of an earlier one.
        near: Further items that only look nearly like another.
    """

    number: Groups
    copies: int
    near: int

    @property
    def repeated(self) -> bool:
        """Whether any two items show the same thing."""
        return self.copies + self.near > 0


def copies_of(parts: Sequence[Selection]) -> Contents:
    """Return the content of all items of several parts, in their order; only copies share it."""
    digests = [digest for part in parts for digest in digests_of(part)]
    found, number = np.unique(np.array(digests), return_inverse=True)
    return Contents(number.astype(np.int64), len(number) - len(found), 0)


def contents_of(parts: Sequence[Selection]) -> Contents:
    """Return the content of all items, where images that look nearly alike share it too.

    Six seconds of one core for 40 000 images of 32 x 32 pixels.
    """
    exact = copies_of(parts)
    distinct = np.sort(np.unique(exact.number, return_index=True)[1])
    if len(parts[0].sample_shape) != 3 or len(distinct) < 3:
        return exact
    links = exact.number[_near_pairs(_Rows(parts), distinct)]
    number = _connected(len(distinct), links)[exact.number]
    return Contents(number, exact.copies, len(distinct) - len(np.unique(number)))


def first_of_each(content: Groups, among: Bool[np.ndarray, "n"]) -> Bool[np.ndarray, "n"]:
    """Return which of these rows are the first of their content."""
    rows = np.flatnonzero(among)
    first = np.zeros(len(content), bool)
    first[rows[np.unique(content[rows], return_index=True)[1]]] = True
    return first


def counted(data: PUDataset, trained: PUDataset | None = None) -> Bool[np.ndarray, "n"] | None:
    """Return which rows figures count: one of P and one of U for each content; None for all.

    None of those that show what another set was trained on, and none that a review found.
    """
    if data.content is None:
        return None if data.found is None or not data.found.any() else ~data.found
    seen = np.zeros(len(data), bool)
    if trained is not None and trained.content is not None:
        seen = np.isin(data.content, trained.content)
    if data.found is not None:
        seen |= data.found
    rows = first_of_each(data.content, data.labelled & ~seen)
    rows |= first_of_each(data.content, ~data.labelled & ~seen)
    return None if rows.all() else rows


def repetition_notice(contents: Contents) -> tuple[str, ...]:
    """Return one sentence about repeated content, none where all items differ."""
    found = []
    if contents.copies:
        found.append(f"{contents.copies} items have exactly the content of another")
    if contents.near:
        found.append(
            f"{contents.near} images look nearly like another (encoded again, resized, or the "
            "next frame)"
        )
    if not found:
        return ()
    sentence = " and ".join(found)
    return (
        f"{sentence}. Items that show the same thing are trained on or held out together, and "
        "every figure counts them once. What else belongs together can be said with --group.",
    )


class _Rows:
    """Rows of several parts under one index."""

    def __init__(self, parts: Sequence[Selection]) -> None:
        self.parts, self.ends = parts, np.cumsum([len(part) for part in parts])

    def chunks(self, rows: Int64[np.ndarray, "n"]) -> Iterator[np.ndarray]:
        """Yield the values of these rows, which ascend, in chunks that fit into memory."""
        length, start = chunk_length(self.parts[0].sample_shape), 0
        for part, end in zip(self.parts, self.ends, strict=True):
            inside = rows[(rows >= end - len(part)) & (rows < end)] - (end - len(part))
            for start in range(0, len(inside), length):
                yield part.take(inside[start : start + length])


def digests_of(part: Selection) -> Iterator[bytes]:
    """Yield a hash of the values of each row."""
    length = chunk_length(part.sample_shape)
    for start in range(0, len(part), length):
        chunk = part.take(slice(start, start + length))
        if chunk.dtype.kind == "f":
            chunk = chunk + 0.0  # -0.0 is 0.0 in other bytes
        yield from (hashlib.blake2b(bytes_of(row), digest_size=16).digest() for row in chunk)


def _near_pairs(rows: _Rows, distinct: Int64[np.ndarray, "n"]) -> Int64[np.ndarray, "pairs 2"]:
    """Return pairs of rows, of different content, that look nearly alike."""
    few = distinct[np.unique(np.linspace(0, len(distinct) - 1, SCALE_ROWS).astype(np.int64))]
    sample = np.concatenate([_Look.of(chunk).direction for chunk in rows.chunks(few)])
    limit = NEAR * _tenth(sample) ** 2
    if limit <= 0:
        return np.empty((0, 2), np.int64)
    keep = np.linalg.svd(sample, full_matrices=False)[2].T
    if len(distinct) > FEW:
        keep = keep[:, :DIRECTIONS]
    points, contrast = [], []
    for chunk in rows.chunks(distinct):
        look = _Look.of(chunk)
        points.append(look.direction @ keep)
        contrast.append(look.contrast)
    clear = np.concatenate(contrast) >= FAINTEST
    # A projection shortens distances, so no near pair is farther apart than this.
    radius = float(np.sqrt(2 * limit))
    candidates = _close_pairs(np.concatenate(points)[clear], radius)
    found = distinct[clear][candidates]
    alike: np.ndarray = found[_look_alike(rows, found, limit)]
    return alike


def _close_pairs(points: Float32[np.ndarray, "n d"], radius: float) -> Int64[np.ndarray, "pairs 2"]:
    """Return each point with its nearest ones within the radius."""
    count = min(NEIGHBOURS + 1, len(points))
    if len(points) > FEW:
        from scipy.spatial import cKDTree

        found = cKDTree(points).query(points, k=count, distance_upper_bound=radius)
        distance, other = np.asarray(found[0]), np.asarray(found[1])
    else:
        # Faster than a tree, whose boxes do not help with so many numbers.
        length = (points**2).sum(axis=1)
        squares = length[:, None] + length - 2 * points @ points.T
        other = np.argpartition(squares, count - 1, axis=1)[:, :count]
        distance = np.sqrt(np.maximum(np.take_along_axis(squares, other, axis=1), 0))
    one, column = np.nonzero(distance <= radius)
    pairs = np.stack([one, other[one, column]], axis=1)
    return np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)


def _look_alike(
    rows: _Rows, pairs: Int64[np.ndarray, "pairs 2"], limit: float
) -> Bool[np.ndarray, "pairs"]:
    """Return which pairs are near copies by their whole thumbnails."""
    alike = np.ones(len(pairs), bool)
    for start in range(0, len(pairs), CHUNK_ITEMS):
        part = slice(start, start + CHUNK_ITEMS)
        used, at = np.unique(pairs[part].ravel(), return_inverse=True)
        one_of, two_of = at.reshape(-1, 2).T
        for side, most in ((COARSE, limit), (FINE, FINE_FACTOR * limit)):
            look = _Look.joined([_Look.of(chunk, side) for chunk in rows.chunks(used)])
            alike[part] &= look.at(one_of).is_like(look.at(two_of), most)
    return alike


@dataclass(frozen=True)
class _Look:
    """Thumbnails of images: the mean of each channel, contrast, and what is left at unit length."""

    colour: Float32[np.ndarray, "n channels"]
    contrast: Float32[np.ndarray, "n"]
    direction: Float32[np.ndarray, "n numbers"]

    @classmethod
    def of(
        cls, images: UInt8[np.ndarray, "n channels height width"], side: int = COARSE
    ) -> "_Look":
        small = _shrunk(_shrunk(images, 2, side), 3, side)
        colour = small.mean(axis=(2, 3))
        detail = (small - colour[:, :, None, None]).reshape(len(small), -1)
        length = np.sqrt((detail**2).sum(axis=1))
        return cls(
            colour,
            length / np.sqrt(np.float32(detail.shape[1])),
            detail / np.maximum(length, np.float32(1e-6))[:, None],
        )

    @classmethod
    def joined(cls, looks: Sequence["_Look"]) -> "_Look":
        return cls(
            np.concatenate([look.colour for look in looks]),
            np.concatenate([look.contrast for look in looks]),
            np.concatenate([look.direction for look in looks]),
        )

    def at(self, rows: Int64[np.ndarray, "m"]) -> "_Look":
        return _Look(self.colour[rows], self.contrast[rows], self.direction[rows])

    def is_like(self, other: "_Look", most: float) -> Bool[np.ndarray, "n"]:
        alike: np.ndarray = 1 - (self.direction * other.direction).sum(axis=1) <= most
        alike &= np.abs(self.colour - other.colour).max(axis=1) <= COLOUR
        larger = np.maximum(self.contrast, other.contrast)
        alike &= larger <= CONTRAST * np.minimum(self.contrast, other.contrast)
        return alike


def _shrunk(images: np.ndarray, axis: int, side: int) -> np.ndarray:
    """Return float means of equal stretches along an axis; a shorter axis stays as it is."""
    length = images.shape[axis]
    if length <= side:
        return images.astype(np.float32)
    edges = np.linspace(0, length, side + 1).round().astype(np.int64)
    sums = np.add.reduceat(images, edges[:-1], axis=axis, dtype=np.float32)
    shape = [1] * images.ndim
    shape[axis] = side
    return sums / np.diff(edges).astype(np.float32).reshape(shape)


def _tenth(sample: Float32[np.ndarray, "n numbers"]) -> float:
    """Return q: the median over images of the distance of their nearest tenth.

    The nearest alone would be the copies, where most images have one.
    """
    distance: Float64[np.ndarray, "n n"] = 1 - sample @ sample.T
    return float(np.median(np.quantile(distance, 0.1, axis=1)))


def _connected(count: int, links: Int64[np.ndarray, "pairs 2"]) -> Groups:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(count, count))
    return connected_components(graph, directed=False)[1].astype(np.int64)
