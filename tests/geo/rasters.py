"""GeoTIFF files for tests, from an array."""

from pathlib import Path
from typing import Any

import numpy as np
import rasterio  # type: ignore[import-untyped, unused-ignore]

WEST, NORTH = 500_000.0, 1_600_000.0


def write_tiff(
    path: Path,
    pixels: np.ndarray,
    *,
    crs: str | None = "EPSG:32615",
    transform: tuple[float, ...] = (1, 0, WEST, 0, -1, NORTH),
    **profile: Any,  # noqa: ANN401
) -> Path:
    """Write (bands, height, width), one metre per pixel."""
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        count=len(pixels),
        height=pixels.shape[1],
        width=pixels.shape[2],
        dtype=pixels.dtype,
        crs=crs,
        transform=rasterio.Affine(*transform),
        **profile,
    ) as file:
        file.write(pixels)
    return path


def noise(seed: int, bands: int = 3, height: int = 40, width: int = 60) -> np.ndarray:
    """Return uint8 noise."""
    random = np.random.default_rng(seed)
    return random.integers(0, 256, (bands, height, width), dtype=np.uint8)
