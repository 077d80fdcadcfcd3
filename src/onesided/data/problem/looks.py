"""Which images look nearly alike: encoded again, resized, turned, mirrored, cropped, brightened.

Images are compared as small grey thumbnails, blurred a little, because encoders and resizing
change details most. Three steps, each for the pairs that the one before left:

    w(x)    cosine waves of a thumbnail, without their mean, of unit length
    v(x)    |w|, where the waves (i, j) and (j, i) are sorted by size
    q       median over images of the distance 1 - <w(x), w(y)>, in the best of eight turns, below
            which a tenth of all others lie
    r(x, y) what is left of x's variance after y was turned, moved, stretched and scaled to fit it

Frames of one colour are left out.

1. Candidates are the nearest by v. A mirror changes signs of waves only, and a quarter turn also
   swaps i and j, so v is the same for all eight turns; and since neither taking sizes nor sorting
   moves two points apart, a copy is never farther by v than by w.
2. Pairs are kept whose r is at most NEAR q^2. The fit is by least squares on the gradients of y
   (Lucas and Kanade, "An iterative image registration technique", IJCAI 1981), for a shift and a
   stretch along each axis: a crop, and a frame that is moved.
3. The same with finer thumbnails, in colour where both have some: two white roofs are alike until
   one sees their edges.

The limit follows the pool, because pools differ: two photographs at r = .01 are one photograph,
two drawn digits at that distance are two digits. benchmarks/copies.py measures what is found.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Int64, UInt8

from onesided.data.problem.samples import CHUNK_ITEMS

NEAR = 0.15
"""Largest r of near copies, as a multiple of q^2."""
COARSE, FINE = 16, 32
"""Sides of the thumbnails that are compared first and last."""
FAINTEST = 3.0
"""Least contrast of an image that is compared, in levels of 255: below it noise is everything."""
CONTRAST = 2.0
"""Largest ratio of the contrasts of near copies."""
HIGHEST = 5
"""Waves (i, j) with i + j up to this are compared: a small shift moves the others too far."""
SCALE_ROWS = 1000
"""Images from which q is found."""
NEIGHBOURS = 8
"""Nearest neighbours that are compared with an image. Many copies of one are found in a chain."""
SHIFT, STRETCH = 1 / 8, 1 / 5
"""Largest shift, as a share of the side, and largest stretch of a copy."""
FRAME, FLAT = 1 / 8, 16
"""Widest frame of one colour that is left out, as a share of the side, and what one colour is."""
INNER = 0.75
"""Least share of the first line inside a frame that has another colour."""
SEEN = 0.6
"""Least share of an image that its copy shows."""
PROMISING = 6.0
"""After ROUGH rounds of fitting, pairs whose r is above so many limits are given up."""
ROUGH, ROUNDS = 2, 5
LUMINANCE = np.array([0.299, 0.587, 0.114], np.float32)
"""How bright red, green and blue are (ITU-R BT.601), so that a grey copy looks the same."""
COLOUR = 4.0
"""How much larger r may be in colour, of which encoders keep half the pixels."""
GREY = 8.0
"""Images whose channels differ by less on average, in levels of 255, are grey."""
TURNS = [(swap, down, across) for swap in (0, 1) for down in (0, 1) for across in (0, 1)]
"""The symmetries of a square: swap the axes, then mirror along each."""

Thumbnails = Float32[np.ndarray, "n planes side side"]
Pairs = Int64[np.ndarray, "pairs 2"]
Reader = Callable[[Int64[np.ndarray, "n"]], Iterator[UInt8[np.ndarray, "m channels height width"]]]
"""Yields the images of rows, which ascend, in chunks."""


def near_pairs(read: Reader, rows: Int64[np.ndarray, "n"]) -> Pairs:
    """Return pairs of these rows that look nearly alike."""
    # Half precision: half a kilobyte for an image, and eleven bits are more than a pixel has.
    small = np.concatenate([thumbnails(images).astype(np.float16) for images in read(rows)])
    contrast = small.std(axis=(1, 2, 3), dtype=np.float32)
    rows, small = rows[contrast >= FAINTEST], small[contrast >= FAINTEST]
    found = [np.empty((0, 2), np.int64)]
    if len(rows) < 3:
        return found[0]
    basis = Waves.of(*small.shape[1:3])
    waves = np.concatenate([basis.of_thumbnails(small[part]) for part in _parts(len(small))])
    scale = _scale(waves, basis)
    # In few pixels different images are fitted to each other more easily.
    limit = NEAR * scale**2 * small.shape[2] / COARSE
    candidates = (
        _nearest(basis.turnless(waves), float(np.sqrt(2 * scale))) if limit > 0 else found[0]
    )
    for part in _parts(len(candidates)):
        one, other = candidates[part].T
        turn = basis.best_turn(waves[one], waves[other])
        alike, place = _alike(small[one], small[other], turn, limit)
        pairs = rows[candidates[part][alike]]
        if len(pairs):
            pairs = pairs[_alike_in_detail(read, pairs, turn[alike], place[alike], limit)]
        found.append(pairs)
    return np.concatenate(found)


def thumbnails(
    images: UInt8[np.ndarray, "n channels height width"], side: int = COARSE
) -> Thumbnails:
    """Return blurred square thumbnails without frames; colours as one grey plane."""
    planes = _grey(images)
    return _shrunk(planes, planes, side)


def _in_colour(images: UInt8[np.ndarray, "n channels height width"], side: int) -> Thumbnails:
    return _shrunk(images.astype(np.float32), _grey(images), side)


def _grey(images: UInt8[np.ndarray, "n channels height width"]) -> Thumbnails:
    planes = images.astype(np.float32)
    if planes.shape[1] != len(LUMINANCE):
        return planes
    grey: np.ndarray = np.einsum("nchw,c->nhw", planes, LUMINANCE)[:, None]
    return grey


def _shrunk(images: Thumbnails, framed: Thumbnails, side: int) -> Thumbnails:
    """Return blurred squares of images, without the frames that others show."""
    side = min(side, *images.shape[2:])
    down, across = (_means(framed, axis, side)[:, None] for axis in (2, 3))
    return _blurred(_blurred(down @ images @ across.swapaxes(2, 3), 2), 3)


@dataclass(frozen=True)
class Waves:
    """The cosine waves that are compared, and what a turn of the image does to them.

    Attributes:
        rows: Wave number of each along the rows, for all planes.
        columns: Likewise along the columns.
        planes: Planes of an image.
    """

    rows: Int64[np.ndarray, "waves"]
    columns: Int64[np.ndarray, "waves"]
    planes: int

    @classmethod
    def of(cls, planes: int, side: int) -> "Waves":
        """Return the longest waves of thumbnails with so many planes and pixels."""
        rows, columns = np.indices((side, side)).reshape(2, -1)
        kept = (rows + columns > 0) & (rows + columns <= HIGHEST)
        return cls(rows[kept], columns[kept], planes)

    def of_thumbnails(self, small: Thumbnails) -> Float32[np.ndarray, "n numbers"]:
        """Return the waves of thumbnails, at unit length."""
        from scipy.fft import dctn

        found = dctn(small.astype(np.float32), axes=(2, 3), norm="ortho")
        waves = found[:, :, self.rows, self.columns].reshape(len(small), -1)
        result: np.ndarray = waves / np.maximum(
            np.linalg.norm(waves, axis=1, keepdims=True), np.float32(1e-6)
        )
        return result

    def turnless(self, waves: Float32[np.ndarray, "n numbers"]) -> Float32[np.ndarray, "n numbers"]:
        """Return what is the same for all turns of an image."""
        size = np.abs(waves)
        swapped = size[:, self._swapped()]
        upper, lower = (
            self._repeated(self.rows < self.columns),
            self._repeated(self.rows > self.columns),
        )
        sorted_pairs: np.ndarray = np.where(
            upper, np.maximum(size, swapped), np.where(lower, np.minimum(size, swapped), size)
        )
        return sorted_pairs

    def turned(
        self, waves: Float32[np.ndarray, "n numbers"]
    ) -> Iterator[Float32[np.ndarray, "n numbers"]]:
        """Yield the waves of the images in each of the turns."""
        swapped = waves[:, self._swapped()]
        for swap, down, across in TURNS:
            sign = (-1.0) ** (down * self.rows + across * self.columns)
            yield (swapped if swap else waves) * self._repeated(sign.astype(np.float32))

    def best_turn(
        self, one: Float32[np.ndarray, "n numbers"], other: Float32[np.ndarray, "n numbers"]
    ) -> Int64[np.ndarray, "n"]:
        """Return the turn of each other image in which it is most like the one."""
        alike = [(one * turned).sum(axis=1) for turned in self.turned(other)]
        result: np.ndarray = np.argmax(alike, axis=0)
        return result

    def _swapped(self) -> Int64[np.ndarray, "numbers"]:
        place = {pair: at for at, pair in enumerate(zip(self.rows, self.columns, strict=True))}
        one = np.array([place[pair] for pair in zip(self.columns, self.rows, strict=True)])
        result: np.ndarray = (np.arange(self.planes)[:, None] * len(one) + one).ravel()
        return result

    def _repeated(self, values: np.ndarray) -> np.ndarray:
        return np.tile(values, self.planes)


def _scale(waves: Float32[np.ndarray, "n numbers"], basis: Waves) -> float:
    """Return q. The nearest alone would be the copies, where most images have one."""
    rows = np.unique(np.linspace(0, len(waves) - 1, SCALE_ROWS).astype(np.int64))
    sample = waves[rows]
    alike = np.max([sample @ turned.T for turned in basis.turned(sample)], axis=0)
    return float(np.median(np.quantile(1 - alike, 0.1, axis=1)))


def _nearest(points: Float32[np.ndarray, "n numbers"], radius: float) -> Pairs:
    """Return each point with its nearest ones within the radius."""
    from scipy.spatial import cKDTree

    count = min(NEIGHBOURS + 1, len(points))
    distance, other = cKDTree(points).query(points, k=count, distance_upper_bound=radius)
    one, column = np.nonzero(np.isfinite(distance))
    pairs = np.stack([one, np.asarray(other)[one, column]], axis=1)
    return np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)


def _turned(small: Thumbnails, turn: Int64[np.ndarray, "n"]) -> Thumbnails:
    """Return each thumbnail in its turn."""
    result = np.empty(small.shape, np.float32)
    for number, (swap, down, across) in enumerate(TURNS):
        rows = turn == number
        image = small[rows].swapaxes(2, 3) if swap else small[rows]
        result[rows] = image[:, :, :: -1 if down else 1, :: -1 if across else 1]
    return result


def _alike(
    one: Thumbnails, other: Thumbnails, turn: Int64[np.ndarray, "n"], limit: float
) -> tuple[Bool[np.ndarray, "n"], Float32[np.ndarray, "n 4"]]:
    """Return which pairs of thumbnails are near copies, and where the other lies in the one."""
    one, other = one.astype(np.float32), _turned(other, turn)
    left, place = fitted(one, other, rounds=ROUGH)
    rows = np.flatnonzero(left <= PROMISING * limit)
    if len(rows):
        left[rows], place[rows] = fitted(one[rows], other[rows], place[rows], rounds=ROUNDS)
    return left <= limit, place


def _alike_in_detail(
    read: Reader, pairs: Pairs, turn: Int64[np.ndarray, "n"], place: np.ndarray, limit: float
) -> Bool[np.ndarray, "n"]:
    """Return which pairs of rows are near copies by finer thumbnails in colour too."""
    used, at = np.unique(pairs.ravel(), return_inverse=True)
    one, other = at.reshape(-1, 2).T
    fine = np.concatenate([thumbnails(images, FINE) for images in read(used)])
    start = place * np.array([max(1, fine.shape[2] / COARSE), 1] * 2, np.float32)
    left, place = fitted(fine[one], _turned(fine[other], turn), start, rounds=ROUNDS)
    alike: np.ndarray = left <= limit
    colour = np.concatenate([_in_colour(images, FINE) for images in read(used)])
    if colour.shape[1] == len(LUMINANCE):
        # A grey copy of a coloured image has no colour to compare.
        coloured = np.ptp(colour, axis=1).mean(axis=(1, 2)) > GREY
        moved, seen = _moved(_turned(colour[other], turn), place)
        left, _ = _left(colour[one], moved, seen)
        alike &= (left <= COLOUR * limit) | ~coloured[one] | ~coloured[other]
    return alike


def fitted(
    one: Thumbnails,
    other: Thumbnails,
    place: Float32[np.ndarray, "n 4"] | None = None,
    *,
    rounds: int,
) -> tuple[Float32[np.ndarray, "n"], Float32[np.ndarray, "n 4"]]:
    """Return r and the place of the other image in the one: shift and stretch down and across.

    Of all rounds the best; infinite where the two hardly overlap, or where too little contrast
    is left to compare.
    """
    best_place = place = np.zeros((len(one), 4), np.float32) if place is None else place
    best = np.full(len(one), np.inf, np.float32)
    for number in range(rounds + 1):
        moved, seen = _moved(other, place)
        left, gain = _left(one, moved, seen)
        better = left < best
        best = np.where(better, left, best)
        best_place = np.where(better[:, None], place, best_place)
        if number < rounds:
            place = _within(place + _step(one, moved, seen, gain), one.shape[2])
    return best, best_place


def _moved(
    images: Thumbnails, place: Float32[np.ndarray, "n 4"]
) -> tuple[Thumbnails, Float32[np.ndarray, "n 1 side side"]]:
    """Return images moved and stretched, and 1 where there is something to see."""
    side = images.shape[2]
    grid = np.arange(side, dtype=np.float32)
    middle = np.float32((side - 1) / 2)
    matrices, inside = [], []
    for shift, stretch in (place[:, :2].T, place[:, 2:].T):
        at = (grid - middle) * (1 + stretch[:, None]) + shift[:, None] + middle
        inside.append((at > -0.5) & (at < side - 0.5))
        at = np.clip(at, 0, side - 1)
        matrices.append(np.maximum(0, 1 - np.abs(at[:, :, None] - grid)))
    down, across = (matrix[:, None] for matrix in matrices)
    seen = (inside[0][:, :, None] & inside[1][:, None, :])[:, None].astype(np.float32)
    return down @ images @ across.swapaxes(2, 3), seen


def _left(
    one: Thumbnails, moved: Thumbnails, seen: Float32[np.ndarray, "n 1 side side"]
) -> tuple[Float32[np.ndarray, "n"], Float32[np.ndarray, "n"]]:
    """Return r of what is seen of both, and by what the moved image is multiplied to fit."""
    axes = (1, 2, 3)
    count = np.maximum(seen.sum(axis=axes) * one.shape[1], 1)
    mean = [(part * seen).sum(axis=axes) / count for part in (one, moved)]
    first, second = (
        (part - part_mean[:, None, None, None]) * seen
        for part, part_mean in zip((one, moved), mean, strict=True)
    )
    products = [
        (a * b).sum(axis=axes) for a, b in ((first, first), (second, second), (first, second))
    ]
    contrast = np.sqrt(products[0] / count), np.sqrt(products[1] / count)
    lower, higher = np.minimum(*contrast), np.maximum(*contrast)
    fair = (seen.mean(axis=axes) >= SEEN) & (lower >= FAINTEST) & (higher <= CONTRAST * lower)
    left = 1 - products[2] / np.maximum(count * lower * higher, np.float32(1e-6))
    gain = products[2] / np.maximum(products[1], np.float32(1e-6))
    return np.where(fair, left, np.inf).astype(np.float32), gain


def _step(
    one: Thumbnails,
    moved: Thumbnails,
    seen: Float32[np.ndarray, "n 1 side side"],
    gain: Float32[np.ndarray, "n"],
) -> Float32[np.ndarray, "n 4"]:
    """Return the change of the place that fits best where images are straight lines."""
    side, scaled = one.shape[2], gain[:, None, None, None] * moved
    grid = np.arange(side, dtype=np.float32) - (side - 1) / 2
    down, across = np.gradient(scaled, axis=(2, 3))
    columns = [down, down * grid[:, None], across, across * grid, scaled, np.ones_like(scaled)]
    design = (np.stack(columns, axis=1) * seen[:, None]).reshape(len(one), len(columns), -1)
    wanted = ((one - scaled) * seen).reshape(len(one), -1, 1)
    normal = design @ design.swapaxes(1, 2)
    # A flat image says nothing about its place: a little ridge keeps it where it is.
    diagonal = np.einsum("nii->ni", normal)
    ridge = np.eye(len(columns), dtype=np.float32) * (1e-5 * diagonal + 1e-3)[:, None]
    return np.linalg.solve(normal + ridge, design @ wanted)[:, :4, 0]


def _within(place: Float32[np.ndarray, "n 4"], side: int) -> Float32[np.ndarray, "n 4"]:
    """Return the place, no farther than copies are moved."""
    most = np.array([SHIFT * side, STRETCH] * 2, np.float32)
    result: np.ndarray = np.clip(place, -most, most)
    return result


def _blurred(images: np.ndarray, axis: int) -> np.ndarray:
    """Return images smoothed by (1, 2, 1) / 4 along an axis."""
    wide = np.concatenate([images.take([0], axis), images, images.take([-1], axis)], axis)
    before, after = (np.arange(start, start + images.shape[axis]) for start in (0, 2))
    result: np.ndarray = (wide.take(before, axis) + 2 * images + wide.take(after, axis)) / 4
    return result


def _means(images: Thumbnails, axis: int, side: int) -> Float32[np.ndarray, "n side length"]:
    """Return the matrices that average equal stretches along an axis, without a frame."""
    length = images.shape[axis]
    first, last = _frame(images, axis), length - _frame(np.flip(images, axis), axis)
    edges = first[:, None] + (last - first)[:, None] * np.linspace(0, 1, side + 1)
    pixel = np.arange(length)
    overlap = np.minimum(edges[:, 1:, None], pixel + 1) - np.maximum(edges[:, :-1, None], pixel)
    result: np.ndarray = (np.maximum(overlap, 0) / np.diff(edges)[:, :, None]).astype(np.float32)
    return result


def _frame(images: Thumbnails, axis: int) -> Int64[np.ndarray, "n"]:
    """Return how many of the first lines are a frame: of one colour, and the next line is not.

    The ground of a drawing is no frame, because the first line with ink is mostly ground.
    """
    most = int(images.shape[axis] * FRAME)
    lines = np.moveaxis(images, axis, 1)[:, : most + 1].reshape(len(images), most + 1, -1)
    flat = np.ptp(lines[:, :most], axis=2) <= FLAT
    width = np.cumprod(flat, axis=1).sum(axis=1)
    inner = np.take_along_axis(lines, width[:, None, None], axis=1)[:, 0]
    differs = (np.abs(inner - lines[:, 0]) > FLAT).mean(axis=1) > INNER
    return np.where(differs, width, 0)


def _parts(count: int) -> Iterator[slice]:
    for start in range(0, count, CHUNK_ITEMS):
        yield slice(start, start + CHUNK_ITEMS)
