"""Crops with a position instead of footprints: files named LON_LAT, or a table of them."""

import filecmp
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Int64

from onesided.core.errors import DataError
from onesided.data.read.files import Found, Unreadable, find_images
from onesided.data.read.picture import decode, read_header
from onesided.geo.input.coordinates import WGS84, system
from onesided.geo.input.footprints import Buildings, check_different, id_text
from onesided.geo.scene.chips import Chip, file_identity
from onesided.storage.names import printable
from onesided.storage.optional import library
from onesided.storage.table import read_rows

NUMBER = r"[-+]?\d{1,3}(?:\.\d*)?"
LON_LAT = re.compile(rf"({NUMBER})_({NUMBER})(?!\d)")
HEADERS_READ = 200
"""Files whose headers are read to find out how many channels the crops have."""
WORKERS = 4


@dataclass(frozen=True)
class PlacedFile:
    """One crop: its file and name, and its longitude and latitude if known."""

    file: Found
    place: tuple[float, float] | None


class PointScene:
    """Buildings whose crops are files already."""

    def __init__(self, files: Sequence[PlacedFile]) -> None:
        shapely = library("shapely", "A map of points")
        self.files = files
        places = np.array([placed.place or (np.nan, np.nan) for placed in files], np.float64)
        points = shapely.points(np.nan_to_num(places))
        points[np.isnan(places[:, 0])] = None
        names = tuple(placed.file.name for placed in files)
        self.buildings = Buildings(names, points, system(WGS84), {})
        self.channels = _usual_channels(files)

    def order(self) -> Int64[np.ndarray, "n"]:
        """Return the rows in their own order: files have no faster one."""
        return np.arange(len(self.files))

    def chips(self, rows: Sequence[int], size: int) -> Iterator[Chip]:
        """Return the crops of some rows, or why they cannot be read."""
        with ThreadPoolExecutor(WORKERS) as pool:  # Pillow decodes outside Python's lock
            yield from pool.map(lambda row: self._chip(row, size), rows)

    def _chip(self, row: int, size: int) -> Chip:
        try:
            return decode(self.files[row].file.path, channels=self.channels, size=(size, size))
        except Unreadable as error:
            return f"the file {error.reason}"

    def identity(self) -> Mapping[str, Any]:
        """Return the state of every file."""
        return {"files": [file_identity(placed.file.path) for placed in self.files]}


def read_points(path: Path) -> list[PlacedFile]:
    """Return the crops of a folder, located by their names, or of a table: lon, lat, path."""
    if path.is_dir():
        placed = [PlacedFile(file, place_in_name(file.name)) for file in find_images(path)]
        if all(item.place is None for item in placed):
            raise DataError(
                f"No file in {path} is named by its position. Expected names LON_LAT such as "
                f"-95.669934_29.807807.jpeg; the first is {printable(placed[0].file.name)}. Or "
                "give a table with the columns lon, lat and path."
            )
        return placed
    return _read_table(path)


def place_in_name(name: str) -> tuple[float, float] | None:
    """Return longitude and latitude of a file named LON_LAT, None for any other name."""
    match = LON_LAT.match(name.rpartition("/")[2])
    if match is None:
        return None
    longitude, latitude = float(match[1]), float(match[2])
    return (longitude, latitude) if abs(longitude) <= 180 and abs(latitude) <= 90 else None


def _read_table(path: Path) -> list[PlacedFile]:
    placed = []
    for row in read_rows(path, ("lon", "lat", "path")):
        cells = row.cells
        try:
            longitude, latitude = float(cells["lon"]), float(cells["lat"])
        except ValueError:
            longitude, latitude = np.inf, np.inf
        if not (abs(longitude) <= 180 and abs(latitude) <= 90):
            raise DataError(
                f"{path}, line {row.line}: lon and lat are {cells['lon']!r} and {cells['lat']!r}; "
                "expected degrees."
            )
        name = id_text(cells.get("id")) or cells["path"]
        file = Found(path.parent / cells["path"], name)
        if not file.path.is_file():
            raise DataError(f"{path}, line {row.line}: there is no file {file.path}.")
        placed.append(PlacedFile(file, (longitude, latitude)))
    if not placed:
        raise DataError(f"{path} lists no crop. Expected lines with lon, lat and path.")
    check_different([item.file.name for item in placed], str(path))
    return placed


def add_marked_folder(
    points: Sequence[PlacedFile], folder: Path
) -> tuple[list[PlacedFile], Bool[np.ndarray, "n"]]:
    """Return the points together with a folder of marked crops, and which are marked.

    A marked crop that is one of the points, by name and bytes, marks it. Others are added as
    points: people keep marked crops in a folder of their own.
    """
    by_name: dict[str, list[int]] = {}
    for row, placed in enumerate(points):
        by_name.setdefault(placed.file.path.name, []).append(row)
    files, rows = list(points), []
    taken = {placed.file.name for placed in points}
    for placed in read_points(folder):
        namesakes = by_name.get(placed.file.path.name, [])
        copies = [
            row
            for row in namesakes
            if filecmp.cmp(points[row].file.path, placed.file.path, shallow=False)
        ]
        if copies:
            rows += copies
            continue
        name = placed.file.name
        if name in taken:
            name = f"{folder.name}/{name}"
        rows.append(len(files))
        files.append(PlacedFile(Found(placed.file.path, name), placed.place))
    check_different([placed.file.name for placed in files], f"the points and {folder}")
    marked = np.zeros(len(files), bool)
    marked[rows] = True
    return files, marked


def _usual_channels(files: Sequence[PlacedFile]) -> int:
    """Return the channels that most crops have; 3 where both grey and colour occur."""
    counts = Counter[int]()
    rows = np.unique(np.linspace(0, len(files) - 1, HEADERS_READ).astype(np.int64))
    reason = ""
    for row in rows:
        try:
            counts[read_header(files[row].file.path).channels] += 1
        except Unreadable as error:
            reason = reason or str(error)
    if not counts:
        raise DataError(f"None of {len(rows)} crops that were tried can be read: {reason}")
    most = counts.most_common(1)[0][0]
    return 3 if most == 1 and counts[3] else most
