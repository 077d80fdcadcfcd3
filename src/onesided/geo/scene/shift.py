"""Do footprints lie beside their roofs? The offset is estimated from edges in the image.

Footprints from maps are often drawn on another image, metres off. A roof ends where brightness
jumps; so for each offset the mean gradient across the outlines is computed, and the best offset is
that where most of the outlines lies on edges. Two halves of the buildings must agree on it, or
nothing is said.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from onesided.core.errors import ConfigError
from onesided.geo.input.coordinates import Coordinates
from onesided.geo.input.image import inner_window, metres_per_pixel, upright_grid
from onesided.geo.scene.footprint_scene import FootprintScene, OutlinedImage
from onesided.storage.optional import library

LOOKED_AT, FEWEST = 240, 30
"""Buildings that are looked at, and the fewest that allow an estimate."""
FURTHEST = 24
"""Pixels in each direction that an offset is looked for: 7 m in the sharpest images from space."""
SMALLEST_SHIFT, AGREEMENT, STRONGER = 2.0, 2.0, 1.15
"""Pixels from which on an offset is told, by which two halves may differ, and how many times the
edges must be stronger there than where the footprints lie."""
LARGEST_SIDE, MOST_POINTS = 200, 64
"""Pixels of the largest building that is looked at, and points of an outline."""
STRONG = 0.9
"""Gradients above this quantile of the surroundings count alike."""


@dataclass(frozen=True)
class Shift:
    """By how much footprints have to be moved to lie on their roofs, in metres."""

    east: float
    north: float
    buildings: int


def parse_shift(text: str | Sequence[float] | None) -> tuple[float, float]:
    """Return metres to the east and to the north of words such as `3.5,-2`."""
    if text is None:
        return 0.0, 0.0
    words = text.split(",") if isinstance(text, str) else list(text)
    try:
        east, north = (float(word) for word in words)
    except (TypeError, ValueError):
        east = north = math.nan
    if not (abs(east) < 10_000 and abs(north) < 10_000):
        raise ConfigError(
            f"--shift takes metres to the east and to the north, such as 3.5,-2; got {text!r}."
        )
    return east, north


def estimated_shift(scene: FootprintScene) -> Shift | None:
    """Return the offset of the footprints, None where there is none or it cannot be told."""
    last = scene.images[-1]
    strengths = [
        strength
        for row in _rows(len(last.outlines))
        if (strength := _edge_strength(last, int(row))) is not None
    ]
    if len(strengths) < FEWEST:
        return None
    every = np.stack(strengths)
    halves = [_best(part.mean(axis=0)) for part in (every[::2], every[1::2])]
    whole = every.mean(axis=0)
    column, row = _best(whole)
    if max(abs(column), abs(row)) == FURTHEST:
        return None  # the true offset may lie beyond
    apart = np.abs(np.subtract(halves[0], halves[1])).max()
    clear = whole.max() > STRONGER * whole[FURTHEST, FURTHEST]
    if math.hypot(column, row) < SMALLEST_SHIFT or apart > AGREEMENT or not clear:
        return None
    wide, high = metres_per_pixel(upright_grid(last.image), last.image.height)
    return Shift(round(column * wide, 1), round(-row * high, 1), len(strengths))


def shift_warning(scene: FootprintScene) -> tuple[str, ...]:
    """Return what to tell where footprints lie beside their roofs."""
    found = estimated_shift(scene)
    if found is None:
        return ()
    east = f"{abs(found.east):g} m {'west' if found.east > 0 else 'east'}"
    north = f"{abs(found.north):g} m {'south' if found.north > 0 else 'north'}"
    return (
        f"The footprints seem to lie about {east} and {north} of the roofs in "
        f"{scene.images[-1].image.path.name} (edges of {found.buildings} buildings). Look at some "
        f"of them; --shift {found.east:g},{found.north:g} moves them onto the roofs.",
    )


def _rows(count: int) -> np.ndarray:
    return np.unique(np.linspace(0, count - 1, min(count, LOOKED_AT)).astype(np.int64))


def _best(strength: Float64[np.ndarray, "s s"]) -> tuple[int, int]:
    row, column = np.unravel_index(int(strength.argmax()), strength.shape)
    return int(column) - FURTHEST, int(row) - FURTHEST


def _edge_strength(image: OutlinedImage, row: int) -> Float64[np.ndarray, "s s"] | None:
    """Return how much of an outline lies on edges along it, for each offset in pixels.

    An edge counts by its strength across the outline, up to that of the strongest tenth of the
    surroundings: else the border of a shadow, which has the shape of the roof, would outweigh it.
    """
    shapely = library("shapely", "A footprint")
    outline = image.outlines[row]
    if outline is None or outline.is_empty or shapely.get_dimensions(outline) != 2:
        return None
    left, top, right, bottom = outline.bounds
    if not math.isfinite(right - left) or not 4 <= max(right - left, bottom - top) <= LARGEST_SIDE:
        return None
    points, across = _outline_points(outline, image)
    offsets = _offsets((left, top), image)
    reach = np.abs(offsets).max(axis=0) + 2
    window = (*(points.min(axis=0) - reach), *(points.max(axis=0) + reach))
    inner = inner_window(window, image.image)
    if inner is None or (np.array(inner[:2]) > window[:2]).any():
        return None
    part = image.image.read(*inner)
    if not part.valid.all() or (np.array(inner[2:]) < window[2:]).any():
        return None
    grey = image.stretch.apply(part.values).astype(np.float64).mean(axis=0)
    down, along = (_between_pixels(slope) for slope in np.gradient(grey))
    most = float(np.quantile(np.hypot(along, down), STRONG))
    if most <= 0:
        return None
    limit = np.array(grey.shape[::-1]) - 1
    at = np.rint(points + offsets[:, None] - inner[:2]).astype(np.int64).clip(0, limit)
    columns, rows = at[..., 0], at[..., 1]
    seen = np.abs(along[rows, columns] * across[:, 0] + down[rows, columns] * across[:, 1])
    strength = np.minimum(seen, most).mean(axis=1).reshape(2 * FURTHEST + 1, -1)
    relative: Float64[np.ndarray, "s s"] = strength / strength.mean()
    return relative


def _outline_points(
    outline: object, image: OutlinedImage
) -> tuple[Float64[np.ndarray, "p 2"], Float64[np.ndarray, "p 2"]]:
    """Return points of an outline in pixels of the image, and the direction across it at each."""
    shapely = library("shapely", "A footprint")
    edge = shapely.boundary(outline)
    every = np.arange(0, edge.length, max(1.0, edge.length / MOST_POINTS))
    before, points, after = (
        _placed(shapely.get_coordinates(shapely.line_interpolate_point(edge, place)), image)
        for place in (np.maximum(every - 0.5, 0), every, np.minimum(every + 0.5, edge.length))
    )
    along = after - before
    along /= np.maximum(np.hypot(along[:, 0], along[:, 1]), 1e-9)[:, None]
    return points, np.stack([along[:, 1], -along[:, 0]], axis=1)


def _placed(points: Coordinates, image: OutlinedImage) -> Coordinates:
    return points if image.place is None else image.place(points)


def _offsets(corner: tuple[float, float], image: OutlinedImage) -> Float64[np.ndarray, "o 2"]:
    """Return the offsets that are looked at in pixels of the image, which may be turned."""
    steps = np.arange(-FURTHEST, FURTHEST + 1)
    offsets = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2).astype(np.float64)
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]) + corner
    start, right, below = _placed(corners, image)
    turned: Float64[np.ndarray, "o 2"] = offsets @ np.stack([right - start, below - start])
    return turned


def _between_pixels(values: Float64[np.ndarray, "h w"]) -> Float64[np.ndarray, "h w"]:
    """Return means of four pixels: entry k is about the line left of pixel k, where edges lie."""
    padded = np.pad(values, ((1, 0), (1, 0)), mode="edge")
    means: Float64[np.ndarray, "h w"] = (
        padded[:-1, :-1] + padded[1:, :-1] + padded[:-1, 1:] + padded[1:, 1:]
    ) / 4
    return means
