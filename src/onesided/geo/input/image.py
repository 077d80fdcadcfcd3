"""An image of a place: which pixel shows which spot, and windows of it on request.

An orthomosaic of many gigabytes is never read whole: GeoTIFF and its kin are read by windows
through GDAL (`Raster`). Plain pictures (`Picture`) are small and are read at once, without GDAL.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Shaped, UInt8

from onesided.core.config import Config
from onesided.core.errors import DataError, DataNotFound, OnesidedError
from onesided.data.read.picture import decode, opaque_parts, read_header
from onesided.data.read.polygons import Window
from onesided.geo.input.coordinates import (
    WGS84,
    Coordinates,
    Geometries,
    System,
    between,
    known_system,
    moved,
    system,
)
from onesided.geo.input.imagery import NETWORK, Imagery, opened_by_gdal, unreadable
from onesided.geo.input.shapes import near_longitude
from onesided.storage.optional import library

PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
LOW, HIGH = 2.0, 98.0
"""Percentiles that become black and white where values are not 8 bits already."""
CACHE_BYTES = 128 * 2**20
"""How much of a file GDAL may cache. Its default, a twentieth of the memory, grows with the
machine; windows are read in an order for which this is enough. rasterio takes bytes, where
GDAL's own setting of this name takes megabytes."""
METRES_PER_DEGREE = 111_320.0
FURTHEST = (540.0, 90.5, 540.0, 90.5)
"""Degrees west, south, east and north that an image may reach: once around, and a pixel more."""
COPY_AGAIN = "Copy it again from where it came from."

Matrix = tuple[float, ...]
"""Six numbers (a, b, c, d, e, f): x = a column + b row + c, y = d column + e row + f, counted
from the corner of the first pixel."""


@dataclass(frozen=True)
class ImageWindow:
    """Values of some pixels as the file stores them; `valid` is False where it has no data."""

    values: Shaped[np.ndarray, "bands height width"]
    valid: Bool[np.ndarray, "height width"]


class Picture:
    """PNG or JPEG with a place on Earth; the same attributes as `Raster`."""

    is_eight_bit = True

    def __init__(self, path: Path, matrix: Matrix, its_system: System) -> None:
        self.path, self.matrix, self.system = path, matrix, its_system
        # A world file is about pixels as stored, whatever orientation a camera noted in EXIF.
        header = read_header(path, upright=False)
        self.bands, self.height, self.width = header.channels, header.height, header.width
        self.block = (self.height, self.width)

    @cached_property
    def pixels(self) -> UInt8[np.ndarray, "bands height width"]:
        """All pixels, decoded when first needed."""
        return decode(self.path, upright=False)

    @cached_property
    def opaque(self) -> Bool[np.ndarray, "height width"]:
        """Where the picture is not transparent."""
        return opaque_parts(self.path)

    def read(self, left: int, top: int, right: int, bottom: int, *, shrink: int = 1) -> ImageWindow:
        """Return a window, only every `shrink`-th pixel of it."""
        part = np.s_[top:bottom:shrink, left:right:shrink]
        return ImageWindow(self.pixels[:, *part], self.opaque[part])


class Raster:
    """An open GeoTIFF.

    Attributes:
        bands: Bands of colour; transparency is not one of them.
        block: Height and width of the blocks in which the file is stored.
        is_eight_bit: Whether values are 0 to 255 already.
    """

    def __init__(
        self,
        path: Path | Imagery,
        dataset: Any,  # noqa: ANN401
        given_system: str | None,
    ) -> None:
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
        self.matrix: Matrix = tuple(float(number) for number in dataset.transform[:6])
        a, b, _, d, e, _ = self.matrix
        if self.matrix == (1, 0, 0, 0, 1, 0) or a * e == b * d:
            raise DataError(
                f"{path} does not say where on Earth it is. Export it with its "
                "georeference (a GeoTIFF), or add a world file."
            )
        named = known_system(dataset.crs.to_wkt()) if dataset.crs else None
        self.system = _named_or_given(path, named, given_system)

    def read(self, left: int, top: int, right: int, bottom: int, *, shrink: int = 1) -> ImageWindow:
        """Return a window; smaller copies come from the file's overviews where it has some."""
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
            if isinstance(self.path, Imagery):
                raise unreadable(self.path, error) from None
            raise DataError(
                f"{self.path} is damaged or cut short: a part of it cannot be read "
                f"({_cause_of(error)}). {COPY_AGAIN}"
            ) from None
        if values.dtype.kind == "f":
            valid &= np.isfinite(values).all(axis=0)
        return ImageWindow(values, valid)


OpenImage = Picture | Raster


@contextmanager
def open_image(path: Path | Imagery, given_system: str | None = None) -> Iterator[OpenImage]:
    """Open an image; `given_system` is the coordinate system of one that names none."""
    if isinstance(path, Imagery):
        rasterio = library("rasterio", f"Reading {path}")
        errors = library("rasterio.errors", f"Reading {path}")
        with rasterio.Env(GDAL_CACHEMAX=CACHE_BYTES, **NETWORK), warnings.catch_warnings():
            warnings.simplefilter("ignore", errors.NotGeoreferencedWarning)
            with opened_by_gdal(path) as dataset:
                yield Raster(path, dataset, given_system)
        return
    if not path.is_file():
        raise DataNotFound(f"There is no image {path}. Give a GeoTIFF, or a PNG or JPEG.")
    if path.suffix.lower() in PICTURES:
        picture = _located_picture(path, given_system)
        _check_on_earth(picture)
        yield picture
        return
    rasterio = library("rasterio", f"Reading {path.name}")
    errors = library("rasterio.errors", f"Reading {path.name}")
    with rasterio.Env(GDAL_CACHEMAX=CACHE_BYTES):
        try:
            with warnings.catch_warnings():
                # `Raster` refuses such a file in our own words.
                warnings.simplefilter("ignore", errors.NotGeoreferencedWarning)
                dataset = rasterio.open(path)
        except errors.RasterioIOError as error:
            raise DataError(
                f"{path} is not an image that can be read, or is cut short "
                f"({_cause_of(error)}). {COPY_AGAIN}"
            ) from None
        with dataset:
            try:
                raster = Raster(path, dataset, given_system)
            except OnesidedError:
                raise
            except Exception as error:  # GDAL tells of damaged tags when it is first asked for them
                raise DataError(
                    f"{path} has a damaged header ({_cause_of(error)}). {COPY_AGAIN}"
                ) from None
            _check_on_earth(raster)
            yield raster


def _check_on_earth(image: OpenImage) -> None:
    """Refuse an image that lies nowhere: its place and its coordinate system do not go together."""
    a, b, _, d, e, _ = image.matrix
    edge = np.full(4, np.nan)
    if np.isfinite(image.matrix).all() and a * e != b * d:
        edge = np.array(edge_in_degrees(image))
    if not (np.abs(edge) <= FURTHEST).all():
        raise DataError(
            f"{image.path} lies nowhere on Earth: its georeference {tuple(image.matrix)} does not "
            f"go with its coordinate system {image.system.name}. Correct the one or the other."
        )


def _cause_of(error: Exception) -> str:
    """Return the reason: rasterio says that reading failed, and GDAL's own error says why."""
    cause = error.__cause__ or error
    return str(cause).splitlines()[0].rstrip(".") if str(cause) else type(cause).__name__


def _named_or_given(path: Path | Imagery, named: System | None, given: str | None) -> System:
    if named is None and given is None:
        raise DataError(
            f"{path} does not say in which coordinate system it is. Name it with "
            "--image-crs, for example --image-crs EPSG:32615."
        )
    return system(given) if named is None else named


def _located_picture(path: Path, given_system: str | None) -> Picture:
    """Return a picture located by the files beside it.

    A world file (`scene.pgw`, `scene.jgw` or `scene.wld`) holds six numbers, one in each line;
    a `.prj` file names the coordinate system.
    """
    ending = path.suffix.lower()
    names = (f".{ending[1]}{ending[-1]}w", f"{ending}w", ".wld")
    world = next((file for name in names if (file := path.with_suffix(name)).is_file()), None)
    if world is None:
        raise DataError(
            f"{path} does not say where on Earth it is: a picture needs a world file beside it, "
            f"{path.with_suffix('.wld').name}. Or give a GeoTIFF."
        )
    try:
        a, d, b, e, x, y = (float(word) for word in world.read_text(encoding="ascii").split())
    except ValueError:
        raise DataError(f"{world} is not a world file: expected six numbers.") from None
    # A world file gives the middle of the first pixel; we count from its corner.
    matrix = (a, b, x - (a + b) / 2, d, e, y - (d + e) / 2)
    projection, named = path.with_suffix(".prj"), None
    if projection.is_file():
        named = known_system(projection.read_text(encoding="utf-8", errors="replace").strip())
    return Picture(path, matrix, _named_or_given(path, named, given_system))


def to_map(matrix: Matrix, pixels: Coordinates) -> Coordinates:
    """Return the map coordinates of points given by column and row."""
    a, b, c, d, e, f = matrix
    column, row = pixels.T
    return np.column_stack([a * column + b * row + c, d * column + e * row + f])


def to_pixels(matrix: Matrix, points: Coordinates) -> Coordinates:
    """Return column and row of points in map coordinates; the inverse of `to_map`."""
    a, b, c, d, e, f = matrix
    x, y = points[:, 0] - c, points[:, 1] - f
    scale = a * e - b * d
    return np.column_stack([(e * x - b * y) / scale, (a * y - d * x) / scale])


@dataclass(frozen=True)
class Grid:
    """Pixels on a plane: where an image, or a picture that is cut from several, has its rows."""

    matrix: Matrix
    system: System


def upright_grid(image: OpenImage) -> Grid:
    """Return the image's own grid, or one of the same resolution with north up where it is turned.

    Images before and after an event are cut on one grid, and people see north up.
    """
    a, b, c, d, e, f = image.matrix
    if a > 0 > e and b == d == 0:
        return Grid(image.matrix, image.system)
    side = math.sqrt(abs(a * e - b * d))
    return Grid((side, 0.0, c, 0.0, -side, f), image.system)


def metres_per_pixel(grid: Grid, height: int) -> tuple[float, float]:
    """Return the width and height of a pixel in metres, about."""
    a, _, _, _, e, f = grid.matrix
    if grid.system.is_geographic:
        latitude = f + e * height / 2
        return a * METRES_PER_DEGREE * math.cos(math.radians(latitude)), -e * METRES_PER_DEGREE
    factor = float(grid.system.axis_info[0].unit_conversion_factor)
    return a * factor, -e * factor


def pixels_between(grid: Grid, image: OpenImage) -> Callable[[Coordinates], Coordinates]:
    """Return the function from columns and rows of a grid to those of an image."""
    convert = between(grid.system, image.system)
    unturned = _near_its_longitudes(image.matrix, image.system, image.width, image.height)
    return lambda points: to_pixels(image.matrix, unturned(convert(to_map(grid.matrix, points))))


def outlines_in_pixels(
    image: OpenImage, geometries: Geometries, source: System, grid: Grid | None = None
) -> Geometries:
    """Return geometries of any coordinate system in columns and rows of an image, or of a grid."""
    pixels = grid or Grid(image.matrix, image.system)
    convert = between(source, pixels.system)
    unturned = _near_its_longitudes(pixels.matrix, pixels.system, image.width, image.height)
    return moved(geometries, lambda points: to_pixels(pixels.matrix, unturned(convert(points))))


def _near_its_longitudes(
    matrix: Matrix, its_system: System, width: int, height: int
) -> Callable[[Coordinates], Coordinates]:
    """Return what brings longitudes near those of an image, which may reach across 180 degrees."""
    if its_system is None or not its_system.is_geographic:
        return lambda points: points
    middle = float(to_map(matrix, np.array([[width / 2, height / 2]]))[0, 0])
    return lambda points: near_longitude(points, middle)


def edge_in_degrees(image: OpenImage) -> tuple[float, float, float, float]:
    """Return west, south, east and north of an image; beyond 180 where it crosses that line."""
    # Straight edges are bent in another system; twenty points each follow the bend.
    steps = np.linspace(0, 1, 21)
    zero, one = np.zeros_like(steps), np.ones_like(steps)
    across = np.concatenate([steps, one, steps, zero, [0.5]]) * image.width
    down = np.concatenate([zero, steps, one, steps, [0.5]]) * image.height
    convert = between(image.system, system(WGS84))
    degrees = convert(to_map(image.matrix, np.column_stack([across, down])))
    middle, degrees = degrees[-1, 0], degrees[:-1]
    around = middle + (degrees[:, 0] - middle + 180) % 360 - 180
    if np.ptp(around) < 180:  # not where there is no middle, nor of an image of the whole Earth
        degrees[:, 0] = around
    known = degrees[np.isfinite(degrees).all(axis=1)]
    if not len(known):
        return (math.nan,) * 4
    (west, south), (east, north) = known.min(axis=0), known.max(axis=0)
    return float(west), float(south), float(east), float(north)


class Stretch(Config):
    """Which values become black and white, for each band of one image.

    Stored with the model: it must get every image with the stretch it was trained on.
    """

    low: tuple[float, ...]
    """Black, for each band."""
    high: tuple[float, ...]
    """White, for each band."""

    @classmethod
    def none(cls, bands: int) -> "Stretch":
        """Return the stretch that leaves 8 bits as they are."""
        return cls(low=(0.0,) * bands, high=(255.0,) * bands)

    def leaves_as_is(self, bands: int) -> bool:
        """Return whether 8 bits stay as they are; `none` would be built for every chip."""
        return self.low == (0.0,) * bands and self.high == (255.0,) * bands

    def apply(self, values: Shaped[np.ndarray, "bands h w"]) -> UInt8[np.ndarray, "bands h w"]:
        """Return values of 0 to 255."""
        if values.dtype == np.uint8 and self.leaves_as_is(len(values)):
            return values
        low, high = np.array(self.low)[:, None, None], np.array(self.high)[:, None, None]
        scaled = np.nan_to_num((values - low) / (high - low)).clip(0, 1)
        pixels: UInt8[np.ndarray, "bands h w"] = np.rint(scaled * 255).astype(np.uint8)
        return pixels


def choose_stretch(image: OpenImage, overview: ImageWindow) -> Stretch:
    """Return the stretch of an image: none for 8 bits, else from percentiles of each band."""
    if image.is_eight_bit:
        return Stretch.none(image.bands)
    ends = []
    for band in overview.values:
        shown = band[overview.valid & np.isfinite(band)]
        low, high = np.percentile(shown, [LOW, HIGH]) if shown.size else (0.0, 1.0)
        ends.append((float(low), float(high) if high > low else float(low) + 1.0))
    lows, highs = zip(*ends, strict=True)
    return Stretch(low=lows, high=highs)


def overview(image: OpenImage, side: int) -> ImageWindow:
    """Return a copy of the whole image whose longer side has about this many pixels."""
    shrink = max(1, math.ceil(max(image.height, image.width) / side))
    return image.read(0, 0, image.width, image.height, shrink=shrink)


def inner_window(window: Window, image: OpenImage) -> tuple[int, int, int, int] | None:
    """Return the whole pixels of a window that the image has, None where it has none."""
    left, top = max(0, math.floor(window[0])), max(0, math.floor(window[1]))
    right = min(image.width, math.ceil(window[2]))
    bottom = min(image.height, math.ceil(window[3]))
    return (left, top, right, bottom) if left < right and top < bottom else None
