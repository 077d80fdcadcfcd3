"""A small map without a trained model, for tests of what is written."""

import numpy as np
import shapely  # type: ignore[import-untyped, unused-ignore]

from onesided.geo.input.coordinates import system
from onesided.geo.input.footprints import Buildings
from onesided.geo.output.table import MapTable
from onesided.geo.scene.chips import Chips

WEST, NORTH = 500_000.0, 1_600_000.0


def houses(count: int, *, crs: str = "EPSG:32615") -> Buildings:
    """Return so many squares of ten metres, twenty metres apart."""
    shapes = [shapely.box(WEST + 20 * row, NORTH, WEST + 20 * row + 10, NORTH + 10)
              for row in range(count)]  # fmt: skip
    columns = {
        "height": np.arange(count) / 2,
        "Score": np.full(count, "theirs", object),
        "street": np.array([f"{row} <Main> & 'Co'" for row in range(count)], object),
    }
    names = tuple(f"h{row}" for row in range(count))
    return Buildings(names, np.array(shapes, object), system(crs), columns)


def table(buildings: Buildings, *, seed: int = 0, marked: int = 4) -> MapTable:
    """Return scores drawn from a seed; the last building is skipped, the first are marked."""
    count = len(buildings)
    random = np.random.default_rng(seed)
    scores = random.uniform(0, 1, count)
    scores[:marked] = random.uniform(0.7, 1, marked)
    scores[-1] = np.nan
    rows = np.arange(count)
    return MapTable(buildings, scores, rows < marked, rows % 2 == 1, {count - 1: "far away"}, 0.5)


def chips(count: int, channels: int = 3) -> Chips:
    """Return noise for every building but the last."""
    random = np.random.default_rng(3)
    values = random.integers(0, 256, (count, channels, 16, 16), dtype=np.uint8)
    return Chips(values, {count - 1: "far away"})
