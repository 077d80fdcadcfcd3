"""Drawn grey surfaces, woven and worn, some of them with one small defect.

Nobody's photographs are needed to ask whether a small fault in a large even texture is found. A
defect is a scratch, a spot, or a patch that has lost its fine structure, faint beside the weave.
"""

import numpy as np
from scipy.ndimage import gaussian_filter

HEIGHT, WIDTH = 200, 300
CONTRAST = 2.5
"""Of scratches and spots, in standard deviations of the weave's finest threads."""


def surfaces(count: int, positive_share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return grey images (count, 1, HEIGHT, WIDTH) and which of them have a defect."""
    random = np.random.default_rng(seed)
    defective = np.arange(count) < round(positive_share * count)
    images = np.stack([_surface(random, defect=bool(one)) for one in defective])
    return images[:, None], defective


def _surface(random: np.random.Generator, *, defect: bool) -> np.ndarray:
    rows, columns = np.mgrid[:HEIGHT, :WIDTH].astype(np.float64)
    threads = _smooth(random, (random.uniform(0.6, 1.2), random.uniform(2, 5)))
    turn, period = random.uniform(0, 0.2), random.uniform(5, 7)
    along = columns * np.cos(turn) + rows * np.sin(turn)
    weave = 0.8 * np.sin(2 * np.pi * along / period)
    weave += 0.4 * np.sin(2 * np.pi * rows / random.uniform(5, 7))
    surface = threads + weave + 0.7 * _smooth(random, (40.0, 40.0))
    if defect:
        surface = _with_defect(surface, rows, columns, random)
    grey = 128 + 24 * surface + random.normal(0, 4, surface.shape) + random.normal(0, 8)
    pixels: np.ndarray = np.clip(grey, 0, 255).astype(np.uint8)
    return pixels


def _smooth(random: np.random.Generator, widths: tuple[float, float]) -> np.ndarray:
    """Return noise that is smooth over these distances, with a deviation of 1."""
    noise: np.ndarray = gaussian_filter(random.normal(size=(HEIGHT, WIDTH)), widths)
    noise /= noise.std()
    return noise


def _with_defect(
    surface: np.ndarray, rows: np.ndarray, columns: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    down = rows - random.uniform(30, HEIGHT - 30)
    right = columns - random.uniform(40, WIDTH - 40)
    kind = random.integers(3)
    if kind == 2:
        worn = np.hypot(down, right) < random.uniform(12, 22)
        without: np.ndarray = np.where(worn, gaussian_filter(surface, 3), surface)
        return without
    if kind == 1:
        radius, stretch = random.uniform(6, 14), random.uniform(0.6, 1.5)
        mark = np.exp(-((down / radius) ** 2) - (right / (radius * stretch)) ** 2)
    else:
        angle, half = random.uniform(0, np.pi), random.uniform(20, 50)
        beside = right * np.sin(angle) - down * np.cos(angle)
        on_it = np.abs(right * np.cos(angle) + down * np.sin(angle)) < half
        mark = np.exp(-((beside / 1.5) ** 2)) * on_it
    surface += random.choice([-1, 1]) * CONTRAST * mark
    return surface
