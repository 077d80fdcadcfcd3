"""Do footprints lie beside their roofs? The offset is estimated from edges in the image.

Footprints from maps are often drawn on another image, metres off. A roof ends where brightness
jumps; so for each offset the mean gradient along the outlines is computed, and the best offset is
that of the strongest edges. Two halves of the buildings must agree on it, or nothing is said.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from onesided.core.errors import ConfigError
from onesided.geo.input.image import Grid, inner_window, metres_per_pixel
from onesided.geo.scene.footprint_scene import FootprintScene, OutlinedImage
from onesided.storage.optional import library

LOOKED_AT, FEWEST = 240, 30
"""Buildings that are looked at, and the fewest that allow an estimate."""
FURTHEST = 12
"""Pixels in each direction that an offset is looked for."""
SMALLEST_SHIFT, AGREEMENT, STRONGER = 2.0, 2.0, 1.15
"""Pixels from which on an offset is told, by which two halves may differ, and how many times the
edges must be stronger there than where the footprints lie."""
LARGEST_SIDE = 200


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
    if last.place is not None:
        return None  # a turned image; edges would have to be turned, too
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
    apart = np.abs(np.subtract(halves[0], halves[1])).max()
    clear = whole.max() > STRONGER * whole[FURTHEST, FURTHEST]
    if math.hypot(column, row) < SMALLEST_SHIFT or apart > AGREEMENT or not clear:
        return None
    wide, high = metres_per_pixel(Grid(last.image.matrix, last.image.system), last.image.height)
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
    """Return the mean gradient along an outline for each offset, relative to its surroundings."""
    shapely = library("shapely", "A footprint")
    outline = image.outlines[row]
    if outline is None or outline.is_empty or shapely.get_dimensions(outline) != 2:
        return None
    left, top, right, bottom = outline.bounds
    if not math.isfinite(right - left) or not 4 <= max(right - left, bottom - top) <= LARGEST_SIDE:
        return None
    border = FURTHEST + 2
    window = (left - border, top - border, right + border, bottom + border)
    inner = inner_window(window, image.image)
    if inner is None or (inner[0] > window[0] or inner[1] > window[1]):
        return None
    part = image.image.read(*inner)
    if not part.valid.all() or inner[2] < window[2] or inner[3] < window[3]:
        return None
    grey = image.stretch.apply(part.values).astype(np.float64).mean(axis=0)
    down, across = np.gradient(grey)
    gradient = np.hypot(across, down)
    if gradient.mean() <= 0:
        return None
    edge = shapely.boundary(outline)
    points = shapely.get_coordinates(
        shapely.line_interpolate_point(edge, np.arange(0, edge.length, 1.0))
    )
    # Edges lie between pixels: entry k of this one is about the line left of pixel k.
    padded = np.pad(gradient, ((1, 0), (1, 0)), mode="edge")
    between = (padded[:-1, :-1] + padded[1:, :-1] + padded[:-1, 1:] + padded[1:, 1:]) / 4
    columns, rows = np.rint(points - np.array(inner[:2])).astype(np.int64).T
    steps = np.arange(-FURTHEST, FURTHEST + 1)
    at_rows = (rows[None, :] + steps[:, None]).clip(0, grey.shape[0] - 1)
    at_columns = (columns[None, :] + steps[:, None]).clip(0, grey.shape[1] - 1)
    seen = between[at_rows[:, None, :], at_columns[None, :, :]].mean(axis=2)
    strength: Float64[np.ndarray, "s s"] = seen / gradient.mean()
    return strength
