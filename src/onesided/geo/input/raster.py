"""GeoTIFF and its kin, by windows, through GDAL. The only file that knows rasterio."""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from onesided.core.errors import DataError
from onesided.geo.input.coordinates import known_system, system
from onesided.geo.input.image import ImageWindow
from onesided.storage.optional import library

CACHE_MEGABYTES = 128
"""What GDAL may keep of a file. Its own default, a twentieth of the memory, grows with the
machine; windows are read in an order for which this is enough."""


class Raster:
    """An open GeoTIFF; see `OpenImage`."""

    def __init__(self, path: Path, dataset: Any, given_system: str | None) -> None:  # noqa: ANN401
        self.path, self.dataset = path, dataset
        interpretation = [colour.name for colour in dataset.colorinterp]
        if interpretation[0] == "palette":
            raise DataError(
                f"{path} stores colours as numbers of a palette. Expand them first, for example: "
                f"gdal_translate -expand rgb {path.name} colours.tif"
            )
        if np.dtype(dataset.dtypes[0]).kind not in "uif":
            raise DataError(f"{path} holds values of kind {dataset.dtypes[0]}; expected numbers.")
        # Transparency says where there is an image; it is no colour of buildings.
        self.colours = [n for n, name in enumerate(interpretation, start=1) if name != "alpha"]
        self.bands = len(self.colours)
        self.height, self.width = dataset.height, dataset.width
        self.block = tuple(dataset.block_shapes[0])
        self.is_eight_bit = set(dataset.dtypes) == {"uint8"}
        self.has_holes = any(
            flag.name != "all_valid" for flags in dataset.mask_flag_enums for flag in flags
        )
        self.matrix = tuple(float(number) for number in dataset.transform[:6])
        named = known_system(dataset.crs.to_wkt()) if dataset.crs else None
        self.system = system(given_system) if given_system and named is None else named
        self._check_place()

    def _check_place(self) -> None:
        a, b, _, d, e, _ = self.matrix
        if self.matrix == (1, 0, 0, 0, 1, 0) or a * e == b * d:
            raise DataError(
                f"{self.path} does not say where on Earth it is. Export it with its "
                "georeference (a GeoTIFF), or add a world file."
            )
        if self.system is None:
            raise DataError(
                f"{self.path} does not say in which coordinate system it is. Name it with "
                "--image-crs, for example --image-crs EPSG:32615."
            )

    def read(self, left: int, top: int, right: int, bottom: int, *, shrink: int = 1) -> ImageWindow:
        """Return pixels; smaller copies come from the file's overviews where it has some."""
        windows = library("rasterio.windows", "Reading a GeoTIFF")
        window = windows.Window(left, top, right - left, bottom - top)
        height, width = math.ceil((bottom - top) / shrink), math.ceil((right - left) / shrink)
        try:
            values = self.dataset.read(
                self.colours, window=window, out_shape=(self.bands, height, width)
            )
            valid = np.ones((height, width), bool)
            if self.has_holes:
                valid = self.dataset.dataset_mask(window=window, out_shape=(height, width)) > 0
        except library("rasterio.errors", "Reading a GeoTIFF").RasterioIOError as error:
            raise DataError(
                f"{self.path} is damaged or cut short: a part of it cannot be read "
                f"({_first_line(error)}). Copy it again from where it came from."
            ) from None
        if values.dtype.kind == "f":
            valid &= np.isfinite(values).all(axis=0)
        return ImageWindow(values, valid)


@contextmanager
def opened_raster(path: Path, given_system: str | None) -> Iterator[Raster]:
    """Open a raster file with a bounded cache."""
    rasterio = library("rasterio", f"Reading {path.name}")
    errors = library("rasterio.errors", f"Reading {path.name}")
    with rasterio.Env(GDAL_CACHEMAX=CACHE_MEGABYTES):
        try:
            with warnings.catch_warnings():
                # Said by `_check_place` in our own words.
                warnings.simplefilter("ignore", errors.NotGeoreferencedWarning)
                dataset = rasterio.open(path)
        except errors.RasterioIOError as error:
            raise DataError(
                f"{path} is not an image that can be read, or is cut short "
                f"({_first_line(error)}). Copy it again from where it came from."
            ) from None
        with dataset:
            yield Raster(path, dataset, given_system)


def _first_line(error: Exception) -> str:
    """Return the reason: rasterio says that reading failed, and GDAL's own error says why."""
    told = error.__cause__ or error
    return str(told).splitlines()[0].rstrip(".") if str(told) else type(told).__name__
