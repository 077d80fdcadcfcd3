"""The image under the map at several sizes, in tiles that a page can load from a disk.

Browsers let a page from a disk read no file, but they do let it run a script. So each tile is a
small script that hands its JPEG to the page. Level 0 is the whole image in one tile, each further
level is twice as large, and the last one shows the image's own pixels.
"""

import base64
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64, UInt8
from PIL import Image

from onesided.geo.input.coordinates import WGS84, between, system
from onesided.geo.input.image import edge_in_degrees, to_pixels
from onesided.geo.scene.footprint_scene import OutlinedImage

TILE = 512
"""Pixels of a tile's side: about 100 kB, read in a few milliseconds."""
TILE_QUALITY = 75
MARGIN = 0.25
"""Of a tile, around every building: its surroundings are kept with it."""
SAMPLED = 12
"""Tiles of the last level that are encoded to learn how large tiles are."""
GRID = 16
"""Coordinates are converted at every so many pixels; between them they are as good as straight."""
NO_DATA = 235
"""Grey, where the image has no data."""
HIGHEST_LATITUDE = 85.0

Bounds = tuple[float, float, float, float]
"""West, south, east, north in degrees; east < west crosses the antimeridian."""


@dataclass(frozen=True)
class Tile:
    """One tile: level, column and row."""

    level: int
    column: int
    row: int


@dataclass(frozen=True)
class Pyramid:
    """An image by tiles.

    Attributes:
        source: The image.
        bounds: What it covers, to the outer edges of its pixels.
        width: Pixels across at the last level; rows are evenly spaced in Web Mercator.
        height: Likewise down.
        levels: How many levels are written; fewer than the image has where room is short.
        tiles: Those that are written; on large levels only where buildings stand.
    """

    source: OutlinedImage
    bounds: Bounds
    width: int
    height: int
    levels: int
    tiles: tuple[Tile, ...]

    @property
    def all_levels(self) -> int:
        """Levels that the image has."""
        return _levels(self.width, self.height)

    @property
    def is_sharp(self) -> bool:
        """Whether the image's own pixels are shown."""
        return self.levels == self.all_levels

    def pixel_metres(self) -> float:
        """Return the size of a pixel of the last level that is written."""
        west, south, east, north = self.bounds
        around = 40_075_016.7 * math.cos(math.radians((south + north) / 2))
        own = (east - west) / 360 * around / self.width
        return own * float(2 ** (self.all_levels - self.levels))

    def picture(self, tile: Tile) -> UInt8[np.ndarray, "3 h w"]:
        """Return the pixels of a tile; smaller than `TILE` at the right and lower edges."""
        shrink = 2 ** (self.all_levels - 1 - tile.level)
        width = min(TILE, math.ceil(self.width / shrink) - tile.column * TILE)
        height = min(TILE, math.ceil(self.height / shrink) - tile.row * TILE)
        across = (tile.column * TILE + np.arange(width) + 0.5) * shrink / self.width
        down = (tile.row * TILE + np.arange(height) + 0.5) * shrink / self.height
        return sampled(self.source, self.bounds, across, down)

    def encoded(self, tile: Tile) -> bytes:
        """Return a tile as JPEG."""
        return jpeg(self.picture(tile), TILE_QUALITY)


def plan_pyramid(
    source: OutlinedImage, boxes: Float64[np.ndarray, "n 4"], *, most_bytes: float
) -> Pyramid | None:
    """Return the largest pyramid that fits, or None where Mercator cannot show the image.

    Levels are left out from the last one where it would not fit; `boxes` are the buildings in
    degrees, and beyond one screen of pixels only tiles that show some of them are written.
    """
    bounds = edge_in_degrees(source.image)
    west, south, east, north = bounds
    if not (-HIGHEST_LATITUDE < south < north < HIGHEST_LATITUDE and 0 < east - west <= 360):
        return None
    turn = 360.0 * (west < -180)
    bounds = (west + turn, south, east + turn, north)
    width, height = _own_size(source, bounds)
    whole = Pyramid(source, bounds, width, height, _levels(width, height), ())
    places = _places(whole, boxes)
    tiles = [_tiles(whole, places, level) for level in range(whole.levels)]
    each = _usual_bytes(whole, tiles[-1])
    levels = whole.levels
    while levels > 1 and each * sum(map(len, tiles[:levels])) > most_bytes:
        levels -= 1
    kept = tuple(tile for level in tiles[:levels] for tile in level)
    return Pyramid(source, bounds, width, height, levels, kept)


def scripts(pyramid: Pyramid, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the script of every tile."""
    for tile in pyramid.tiles:
        path = f"{name}-{tile.level}-{tile.column}-{tile.row}"
        yield path, script(path, base64.b64encode(pyramid.encoded(tile)).decode("ascii"))


def script(path: str, *texts: str) -> bytes:
    """Return a script that hands texts in base64 to the page."""
    quoted = ",".join(f'"{text}"' for text in texts)
    return f'onesidedFile("{path}",[{quoted}])\n'.encode("ascii")


def sampled(
    source: OutlinedImage,
    bounds: Bounds,
    across: Float64[np.ndarray, "w"],
    down: Float64[np.ndarray, "h"],
) -> UInt8[np.ndarray, "3 h w"]:
    """Return the image at some places by nearest neighbours, grey where it has no data.

    Places are shares of the bounds, in longitude and in Mercator's latitude. It needs no GDAL.
    """
    image = source.image
    columns, rows = _source_pixels(source, bounds, across, down)
    inside = (columns >= 0) & (columns < image.width) & (rows >= 0) & (rows < image.height)
    if not inside.any():
        return np.full((3, len(down), len(across)), NO_DATA, np.uint8)
    left, right = int(columns[inside].min()), int(columns[inside].max()) + 1
    top, bottom = int(rows[inside].min()), int(rows[inside].max()) + 1
    # An image that is shown small is read small, from its overviews where it has some.
    shrink = max(1, int(min((right - left) / len(across), (bottom - top) / len(down))))
    part = image.read(left, top, right, bottom, shrink=shrink)
    height, width = part.valid.shape
    x = ((columns - left) * (width / (right - left))).clip(0, width - 1).astype(np.int64)
    y = ((rows - top) * (height / (bottom - top))).clip(0, height - 1).astype(np.int64)
    picture = colours(source.stretch.apply(part.values))[:, y, x]
    missing = ~(inside & part.valid[y, x])
    if missing.any():
        picture[:, missing] = NO_DATA
    return picture


def jpeg(bands: UInt8[np.ndarray, "bands h w"], quality: int) -> bytes:
    """Return the first three bands as JPEG."""
    file = io.BytesIO()
    pixels = np.ascontiguousarray(colours(bands).transpose(1, 2, 0))
    Image.fromarray(pixels).save(file, "JPEG", quality=quality)
    return file.getvalue()


def colours(bands: UInt8[np.ndarray, "bands h w"]) -> UInt8[np.ndarray, "3 h w"]:
    """Return the first three bands as colours; the first of one or two as grey."""
    return bands[:3] if len(bands) >= 3 else np.repeat(bands[:1], 3, axis=0)


def mercator(latitude: float) -> float:
    """Return Mercator's latitude, in radians of the equator."""
    return math.asinh(math.tan(math.radians(latitude)))


def _source_pixels(
    source: OutlinedImage,
    bounds: Bounds,
    across: Float64[np.ndarray, "w"],
    down: Float64[np.ndarray, "h"],
) -> tuple[Float64[np.ndarray, "h w"], Float64[np.ndarray, "h w"]]:
    """Return column and row of the image at every place.

    They are converted on a coarse grid only: a conversion costs more than a pixel.
    """
    west, south, east, north = bounds
    top, bottom = mercator(north), mercator(south)
    at_x = np.unique(np.append(np.arange(0, len(across), GRID), len(across) - 1))
    at_y = np.unique(np.append(np.arange(0, len(down), GRID), len(down) - 1))
    longitude = west + across[at_x] * (east - west)
    latitude = np.degrees(np.arctan(np.sinh(top + down[at_y] * (bottom - top))))
    grid = np.stack(np.meshgrid(longitude, latitude), axis=-1).reshape(-1, 2)
    known = to_pixels(source.image.matrix, between(system(WGS84), source.image.system)(grid))
    coarse = known.reshape(len(at_y), len(at_x), 2)
    return (
        _between(coarse[..., 0], at_y, at_x, len(down), len(across)),
        _between(coarse[..., 1], at_y, at_x, len(down), len(across)),
    )


def _between(
    values: Float64[np.ndarray, "m n"],
    at_y: Int64[np.ndarray, "m"],
    at_x: Int64[np.ndarray, "n"],
    height: int,
    width: int,
) -> Float64[np.ndarray, "height width"]:
    """Return values of a grid at every pixel, by straight lines between its points."""
    rows = np.stack([np.interp(np.arange(width), at_x, line) for line in values])
    place = np.interp(np.arange(height), at_y, np.arange(len(at_y)))
    lower = np.minimum(place.astype(np.int64), max(0, len(at_y) - 2))
    upper = np.minimum(lower + 1, len(at_y) - 1)
    share = (place - lower)[:, None]
    mixed: Float64[np.ndarray, "height width"] = rows[lower] * (1 - share) + rows[upper] * share
    return mixed


def _own_size(source: OutlinedImage, bounds: Bounds) -> tuple[int, int]:
    """Return width and height at which the image keeps the size of its pixels in its middle."""
    west, south, east, north = bounds
    top, bottom = mercator(north), mercator(south)
    # A thousandth of the image around its middle, in pixels of the image.
    share = np.array([0.4995, 0.5005])
    columns, rows = _source_pixels(source, bounds, share, share)
    along = math.hypot(columns[0, 1] - columns[0, 0], rows[0, 1] - rows[0, 0])
    width = max(1, round(along * 1000))
    return width, max(1, round(width * (top - bottom) / math.radians(east - west)))


def _levels(width: int, height: int) -> int:
    return 1 + max(0, math.ceil(math.log2(max(width, height) / TILE)))


def _places(whole: Pyramid, boxes: Float64[np.ndarray, "n 4"]) -> Float64[np.ndarray, "n 4"]:
    """Return boxes of degrees as shares of the image: left, top, right, bottom."""
    west, south, east, north = whole.bounds
    known = boxes[np.isfinite(boxes).all(axis=1)]
    turns = np.round((known[:, 0] - (west + east) / 2) / 360) * 360
    top, bottom = mercator(north), mercator(south)
    stretched = np.arcsinh(np.tan(np.radians(known[:, [3, 1]].clip(-89, 89))))
    left = (known[:, 0] - turns - west) / (east - west)
    right = (known[:, 2] - turns - west) / (east - west)
    down = (stretched - top) / (bottom - top)
    places = np.column_stack([left, down[:, 0], right, down[:, 1]])
    shown = (places[:, :2] < 1).all(axis=1) & (places[:, 2:] > 0).all(axis=1)
    return places[shown]


def _tiles(whole: Pyramid, places: Float64[np.ndarray, "n 4"], level: int) -> Sequence[Tile]:
    """Return the tiles of a level: all of a small one, else those near buildings."""
    shrink = 2 ** (whole.levels - 1 - level)
    across = math.ceil(math.ceil(whole.width / shrink) / TILE)
    down = math.ceil(math.ceil(whole.height / shrink) / TILE)
    wanted: Bool[np.ndarray, "down across"] = np.zeros((down, across), bool)
    if level <= 2:
        wanted[:] = True
    sizes = np.array([whole.width, whole.height, whole.width, whole.height]) / shrink / TILE
    ends = np.floor(places * sizes + [-MARGIN, -MARGIN, MARGIN, MARGIN]).astype(np.int64)
    ends[:, [0, 2]] = ends[:, [0, 2]].clip(0, across - 1)
    ends[:, [1, 3]] = ends[:, [1, 3]].clip(0, down - 1)
    for left, top, right, bottom in np.unique(ends, axis=0).tolist():
        wanted[top : bottom + 1, left : right + 1] = True
    return [Tile(level, int(column), int(row)) for row, column in np.argwhere(wanted)]


def _usual_bytes(whole: Pyramid, tiles: Sequence[Tile]) -> float:
    """Return the bytes of a tile's script, from some tiles of the last level."""
    if not tiles:
        return 0.0
    chosen = [tiles[place] for place in np.linspace(0, len(tiles) - 1, SAMPLED).astype(int)]
    return sum(len(whole.encoded(tile)) for tile in chosen) / len(chosen) * 4 / 3
