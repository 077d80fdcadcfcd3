"""Images as they come: several files, a folder of tiles, an archive, an address, a STAC file.

Several images become one mosaic: a virtual raster (VRT) that GDAL reads by windows. Where images
overlap, the later date lies on top, or the later one in the given order where dates are missing.
"""

import json
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from onesided.core.errors import ConfigError, DataError, DataNotFound, first_line
from onesided.storage.optional import library

TILES = (".tif", ".tiff", ".vrt", ".jp2", ".img")
"""Endings of the images that are taken out of a folder or an archive."""
STAC = (".json", ".geojson")
ASSETS = ("visual", "image", "data", "analytic", "rendered_preview")
"""Assets of a STAC item that hold an image: the first that is there, else one of the role data."""
TIMEOUT, CONNECT_TIMEOUT, RETRIES, RETRY_DELAY = 30, 10, 3, 1
"""Seconds for an answer and for a connection, how often to try again, and seconds in between."""
NETWORK = {
    "GDAL_HTTP_TIMEOUT": str(TIMEOUT),
    "GDAL_HTTP_CONNECTTIMEOUT": str(CONNECT_TIMEOUT),
    "GDAL_HTTP_MAX_RETRY": str(RETRIES),
    "GDAL_HTTP_RETRY_DELAY": str(RETRY_DELAY),
    "GDAL_HTTP_RETRY_CODES": "429,500,502,503,504",
    # Asking a server for the files beside the image takes a request for each.
    "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",
}
KINDS = {
    "uint8": "Byte",
    "int8": "Int8",
    "uint16": "UInt16",
    "int16": "Int16",
    "uint32": "UInt32",
    "int32": "Int32",
    "float32": "Float32",
    "float64": "Float64",
}
"""Kinds of numbers by rasterio's names, and by those of a VRT."""


@dataclass(frozen=True)
class Found:
    """One image: what GDAL opens, and its date, if something says it."""

    address: str
    date: str = ""


@dataclass(frozen=True)
class Imagery:
    """One image, or several that are read as one.

    Attributes:
        files: What GDAL opens, the lowest first.
        name: For people.
        warnings: What was decided about overlaps, and about the network.
    """

    files: tuple[str, ...]
    name: str
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name

    @property
    def over_network(self) -> bool:
        """Whether a part of it is read from a server."""
        return any(file.startswith("/vsicurl/") for file in self.files)

    def identity(self) -> list[object]:
        """Return what changes when an image changes; of a server's files only their addresses."""
        facts: list[object] = []
        for file in self.files:
            path = Path(file)
            if path.is_file():
                status = path.stat()
                facts += [path.name, status.st_size, status.st_mtime_ns]
            else:
                facts.append(file)
        return facts


def with_absolute_paths(image: Path | Imagery) -> Path | Imagery:
    """Return an image as a process in another folder finds it."""
    if isinstance(image, Path):
        return image.resolve()
    files = tuple(os.path.abspath(file) if Path(file).is_file() else file for file in image.files)
    return replace(image, files=files)


def find_imagery(given: Sequence[str | Path], flag: str) -> Path | Imagery:
    """Return the image that some words name: a file, or a mosaic of everything they name."""
    words = [str(word) for word in given]
    if not words:
        raise ConfigError(f"{flag} names no image.")
    if len(words) == 1 and Path(words[0]).is_file() and not _is_container(Path(words[0])):
        return Path(words[0])
    found = [image for word in words for image in _found(word, flag)]
    name = words[0] if len(words) == 1 else f"{words[0]} and {len(words) - 1} more"
    told = []
    if any(image.address.startswith("/vsicurl/") for image in found):
        told.append(
            f"{name} is read over the network: {TIMEOUT} seconds for an answer, {RETRIES} more "
            "attempts where a server fails."
        )
    if len(found) == 1:
        return Imagery((found[0].address,), name, tuple(told))
    dates = [image.date for image in found]
    by_date = all(dates) and len(set(dates)) > 1
    ordered = sorted(found, key=lambda image: image.date) if by_date else found
    rule = "the latest date" if by_date else "the last in the given order"
    told.append(f"{name}: {len(found)} images are read as one; where they overlap, {rule} counts.")
    return Imagery(tuple(image.address for image in ordered), name, tuple(told))


def _is_container(path: Path) -> bool:
    return path.suffix.lower() in (".zip", *STAC)


def _found(word: str, flag: str) -> list[Found]:
    """Return the images that one word names."""
    if word.startswith(("http://", "https://")):
        return [Found(f"/vsicurl/{word}")]
    if word.startswith("/vsi"):
        return [Found(word)]
    path = Path(word)
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in TILES)
        if not files:
            raise DataNotFound(
                f"{flag} is the folder {path}, which holds no image; expected files that end in "
                f"{', '.join(TILES)}."
            )
        return [Found(str(file)) for file in files]
    if not path.is_file():
        raise DataNotFound(
            f"There is no image {word}. Give a GeoTIFF, a folder of tiles, a .zip, an address, or "
            "a STAC file."
        )
    if path.suffix.lower() == ".zip":
        return _in_archive(path)
    if path.suffix.lower() in STAC:
        return _in_stac(path)
    return [Found(str(path))]


def _in_archive(path: Path) -> list[Found]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(
                name for name in archive.namelist() if Path(name).suffix.lower() in TILES
            )
    except (zipfile.BadZipFile, OSError) as error:
        raise DataError(f"{path} is not an archive that can be read ({error}).") from None
    if not names:
        raise DataError(f"{path} holds no image; expected files that end in {', '.join(TILES)}.")
    return [Found(f"/vsizip/{path.absolute()}/{name}") for name in names]


def _in_stac(path: Path) -> list[Found]:
    """Return the images of a STAC item, or of the items of a search result (ItemCollection)."""
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not a STAC file: {error}.") from None
    items = content.get("features", [content]) if isinstance(content, dict) else None
    if not isinstance(items, list) or not all(
        isinstance(item, dict) and isinstance(item.get("assets"), dict) for item in items
    ):
        raise DataError(f"{path} is no STAC item or search result: expected `assets` in each item.")
    if not items:
        raise DataError(f"{path} lists no item. Search again over a larger area or time.")
    return [_asset(path, item) for item in items]


def _asset(path: Path, item: Mapping[str, Any]) -> Found:
    assets = item["assets"]
    image = next((assets[name] for name in ASSETS if name in assets), None)
    if image is None:
        by_role = (
            asset
            for asset in assets.values()
            if isinstance(asset, dict) and "data" in (asset.get("roles") or [])
        )
        image = next(by_role, None)
    if not isinstance(image, dict) or not isinstance(image.get("href"), str):
        raise DataError(
            f"{path}: the item {str(item.get('id'))[:60]!r} has no image; expected an asset called "
            f"{', '.join(ASSETS[:3])} or of the role data."
        )
    href = image["href"]
    properties = item.get("properties")
    date = str(properties.get("datetime") or "") if isinstance(properties, dict) else ""
    if href.startswith(("http://", "https://")):
        return Found(f"/vsicurl/{href}", date)
    local = Path(href) if Path(href).is_absolute() else path.parent / href
    if not href.startswith("/vsi") and not local.is_file():
        raise DataNotFound(f"{path} names the image {href[:200]}, and there is no such file.")
    return Found(href if href.startswith("/vsi") else str(local), date)


@contextmanager
def opened_by_gdal(imagery: Imagery) -> Iterator[Any]:
    """Open the image, or the mosaic of all, by rasterio; the caller has set its environment."""
    rasterio = library("rasterio", f"Reading {imagery.name}")
    if len(imagery.files) == 1:
        with _open(rasterio, imagery.files[0], imagery) as dataset:
            yield dataset
        return
    with _open(rasterio, mosaic(imagery), imagery) as dataset:
        yield dataset


def _open(rasterio: Any, what: str, imagery: Imagery) -> Any:  # noqa: ANN401
    try:
        return rasterio.open(what)
    except rasterio.errors.RasterioIOError as error:
        raise unreadable(imagery, error) from None


def unreadable(imagery: Imagery, error: Exception) -> DataError:
    """Return what to tell about an image that cannot be read."""
    cause = first_line(error.__cause__ or error)
    if imagery.over_network:
        return DataError(
            f"{imagery.name} cannot be read over the network, after {RETRIES} more attempts of up "
            f"to {TIMEOUT} seconds ({cause}). Check the address and the connection, or download "
            "the file."
        )
    return DataError(f"{imagery.name} is not an image that can be read ({cause}).")


@dataclass(frozen=True)
class _Tile:
    """What a mosaic needs to know of one image."""

    address: str
    system: str
    kinds: tuple[str, ...]
    colours: tuple[str, ...]
    nodata: float | None
    size: tuple[int, int]  # columns, rows
    step: tuple[float, float]  # of a pixel, to the east and to the south
    corner: tuple[float, float]  # west, north


def mosaic(imagery: Imagery) -> str:
    """Return the text of a VRT that shows all images, the last on top."""
    tiles = [_tile(file, imagery) for file in imagery.files]
    first = tiles[0]
    for tile in tiles[1:]:
        for what, one, other in (
            ("coordinate systems", tile.system, first.system),
            ("bands", len(tile.kinds), len(first.kinds)),
            ("kinds of numbers", tile.kinds, first.kinds),
        ):
            if one != other:
                raise DataError(
                    f"{Path(tile.address).name} and {Path(first.address).name} have different "
                    f"{what}, so they cannot be read as one image. Convert them first, for "
                    "example with gdalwarp."
                )
    x, y = min(tile.step[0] for tile in tiles), min(tile.step[1] for tile in tiles)
    west, north = min(tile.corner[0] for tile in tiles), max(tile.corner[1] for tile in tiles)
    east = max(tile.corner[0] + tile.size[0] * tile.step[0] for tile in tiles)
    south = min(tile.corner[1] - tile.size[1] * tile.step[1] for tile in tiles)
    width, height = max(1, round((east - west) / x)), max(1, round((north - south) / y))
    bands = [
        f'<VRTRasterBand dataType="{KINDS[kind]}" band="{number}">'
        f"<ColorInterp>{escape(first.colours[number - 1].capitalize())}</ColorInterp>"
        + ("" if first.nodata is None else f"<NoDataValue>{first.nodata!r}</NoDataValue>")
        + "".join(_source(tile, str(number), (west, north), (x, y)) for tile in tiles)
        + "</VRTRasterBand>"
        for number, kind in enumerate(first.kinds, start=1)
    ]
    # Without it, the gaps between images would count as black pixels.
    mask = "".join(_source(tile, "mask,1", (west, north), (x, y)) for tile in tiles)
    return (
        f'<VRTDataset rasterXSize="{width}" rasterYSize="{height}">'
        f"<SRS>{escape(first.system)}</SRS>"
        f"<GeoTransform>{west!r}, {x!r}, 0, {north!r}, 0, {-y!r}</GeoTransform>"
        + "".join(bands)
        + f'<MaskBand><VRTRasterBand dataType="Byte">{mask}</VRTRasterBand></MaskBand>'
        + "</VRTDataset>"
    )


def _source(tile: _Tile, band: str, corner: tuple[float, float], step: tuple[float, float]) -> str:
    left, top = (tile.corner[0] - corner[0]) / step[0], (corner[1] - tile.corner[1]) / step[1]
    wide, high = tile.size[0] * tile.step[0] / step[0], tile.size[1] * tile.step[1] / step[1]
    kind = "ComplexSource"
    nodata = "" if tile.nodata is None else f"<NODATA>{tile.nodata!r}</NODATA>"
    if band.startswith("mask"):
        kind, nodata = "ComplexSource", "<NODATA>0</NODATA>"  # a hole hides nothing below
    return (
        f'<{kind}><SourceFilename relativeToVRT="0">{escape(tile.address)}</SourceFilename>'
        f"<SourceBand>{band}</SourceBand>"
        f'<SrcRect xOff="0" yOff="0" xSize="{tile.size[0]}" ySize="{tile.size[1]}"/>'
        f'<DstRect xOff="{left!r}" yOff="{top!r}" xSize="{wide!r}" ySize="{high!r}"/>'
        f"{nodata}</{kind}>"
    )


def _tile(address: str, imagery: Imagery) -> _Tile:
    rasterio = library("rasterio", f"Reading {imagery.name}")
    one = Imagery((address,), Path(address).name)
    with _open(rasterio, address, one) as dataset:
        a, b, c, d, e, f = tuple(float(number) for number in dataset.transform[:6])
        name = Path(address).name
        if dataset.crs is None:
            raise DataError(
                f"{name} does not say in which coordinate system it is, so it cannot be read "
                "together with others. Export it with its georeference."
            )
        if b or d or a <= 0 or e >= 0:
            raise DataError(
                f"{name} is turned or not georeferenced, so it cannot be read together with "
                "others. Straighten it first, for example with gdalwarp."
            )
        unknown = set(dataset.dtypes) - set(KINDS)
        if unknown:
            raise DataError(f"{name} holds values of kind {unknown.pop()}; expected numbers.")
        return _Tile(
            address if address.startswith("/vsi") else str(Path(address).absolute()),
            dataset.crs.to_wkt(),
            tuple(dataset.dtypes),
            tuple(colour.name for colour in dataset.colorinterp),
            None if dataset.nodata is None or np.isnan(dataset.nodata) else float(dataset.nodata),
            (dataset.width, dataset.height),
            (a, -e),
            (c, f),
        )
