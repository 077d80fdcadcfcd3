"""Cut every building of xBD out of its tile, once, into a file that can be memory-mapped.

In `xbd-crops` under the root:

* `crops.npy`: (buildings, 3, 64, 64) of uint8;
* `buildings.csv`: a line for each crop, in the same order;
* `summary.json`: what was left out, and the checksums of the two.

Tiles are appended one after the other, and a journal counts them. After an interruption the
same command truncates both files to the last complete tile and resumes. The files get their
names when they are complete.
"""

import hashlib
import io
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from jaxtyping import UInt8

from onesided.core.errors import DataError
from onesided.core.threads import available_cores
from onesided.data.read.files import Unreadable
from onesided.data.read.picture import decode
from onesided.data.read.polygons import MARGIN, Window, cut, require_shapely, share_inside
from onesided.data.sources.download import PreparedFiles, measure
from onesided.data.sources.xbd.labels import (
    CLASS_NAMES,
    Building,
    XbdTile,
    find_tiles,
    read_buildings,
)
from onesided.storage.atomic import publish, write_json
from onesided.storage.journal import Journal
from onesided.storage.names import printable
from onesided.storage.progress import Progress
from onesided.storage.table import csv_lines

FOLDER, CROPS, TABLE, SUMMARY = "xbd-crops", "crops.npy", "buildings.csv", "summary.json"
WINDOW = ("left", "top", "right", "bottom")
COLUMNS = ("uid", "event", "tile", "subtype", "lon", "lat", *WINDOW, "part")
"""Columns of the table; left to bottom are the crop's window in pixels of the tile, and part is
the publisher's folder."""
SIZE = 64
FORMAT = 2
_JOURNAL = "journal.jsonl"
_KEYS = {"identity", "counts", "left_out", "skipped"}
_HEADER_BYTES = 128  # room for the shape, which is known at the end only
_CROP_BYTES = 3 * SIZE * SIZE
_TOLERATED = 0.05  # share of tiles that may be unreadable
_LARGEST = 9  # tiles per window: a building as large as its tile needs 4, more is a mistake
_NO_CROPS = np.empty((0, 3, SIZE, SIZE), np.uint8)


def prepare_xbd(root: Path, progress: Progress) -> PreparedFiles:
    """Cut out all buildings under the root, or resume an earlier call.

    Nothing is done if the same tiles were prepared already.
    """
    require_shapely()
    tiles = find_tiles(root)
    folder, identity = root / FOLDER, _identity(tiles)
    if all((folder / name).is_file() for name in (CROPS, TABLE)):
        done = read_summary(folder)
        if done is not None and done["identity"] == identity:
            return _prepared_files(folder, done)
    try:
        folder.mkdir(exist_ok=True)
        with _Parts(folder, identity) as parts:
            left = tiles[parts.tiles :]
            for tile, crops in zip(left, _cut_tiles(left), strict=True):
                parts.add(tile, crops)
                progress(parts.tiles, len(tiles))
            summary = parts.summary(identity)
        _refuse_too_few(root, summary)
        _publish(folder, summary)
    except OSError as error:
        raise DataError(
            f"{folder} cannot be written ({error}). Make room or choose another --root; what is "
            "done is kept, and the same command continues."
        ) from error
    return _prepared_files(folder, summary)


def _identity(tiles: Sequence[XbdTile]) -> str:
    """Return a hash of how crops are made and from which files, by their names and sizes."""
    digest = hashlib.sha256(f"{FORMAT} {SIZE} {MARGIN}".encode())
    for tile in tiles:
        sizes = [path.stat().st_size if path.is_file() else -1 for path in (tile.label, tile.image)]
        digest.update(f"\n{tile.name} {tile.part} {sizes}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


@dataclass(frozen=True)
class CutTile:
    """The crops of one tile.

    Attributes:
        lines: The table's line of each crop; see `COLUMNS`.
        counts: Crops by damage, and crops with a defect.
        left_out: Buildings without a crop, by reason.
        skipped: The file that could not be read, and why.
    """

    crops: UInt8[np.ndarray, "n 3 64 64"]
    lines: tuple[tuple[object, ...], ...]
    counts: Counter[str]
    left_out: Counter[str]
    skipped: tuple[str, str] | None = None


def _cut_tiles(tiles: Sequence[XbdTile]) -> Iterator[CutTile]:
    """Cut the buildings out of tiles by several threads, in order, a few tiles at a time."""
    workers = min(8, available_cores())
    with ThreadPoolExecutor(workers) as pool:
        # Executor.map alone would take all tiles at once and pile up their crops.
        for start in range(0, len(tiles), 4 * workers):
            yield from pool.map(_cut_tile, tiles[start : start + 4 * workers])


def _cut_tile(tile: XbdTile) -> CutTile:
    file = tile.label
    try:
        buildings, left_out = read_buildings(tile)
        file = tile.image
        # Many tiles are open country: their image need not be decoded.
        image = decode(file, channels=3) if buildings else np.empty((3, 0, 0), np.uint8)
    except Unreadable as error:
        reason = (printable(file.name), error.reason)
        return CutTile(_NO_CROPS, (), Counter(), Counter(), reason)
    counts, crops, lines = Counter[str](), [], []
    for building in buildings:
        against = _reason_against(building, image)
        if against is not None:
            left_out[against] += 1
            continue
        crops.append(cut(image, building.window, SIZE))
        known = (building.uid, tile.event, tile.name, building.subtype, building.lon, building.lat)
        lines.append((*known, *(round(edge, 3) for edge in building.window), tile.part))
        counts[building.subtype] += 1
        counts["partly black, at the border"] += _inside(building.window, image) < 1
        counts["with a repaired outline"] += building.repaired
        counts["with an outline of several parts"] += building.parts > 1
    return CutTile(np.stack(crops) if crops else _NO_CROPS, tuple(lines), counts, left_out)


def _reason_against(building: Building, image: np.ndarray) -> str | None:
    if _inside(building.box, image) <= 0:
        return "outside their image"
    left, top, right, bottom = building.window
    too_large = (right - left) * (bottom - top) > image.shape[1] * image.shape[2] * _LARGEST
    return "too large to be buildings" if too_large else None


def _inside(window: Window, image: np.ndarray) -> float:
    return share_inside(window, height=image.shape[1], width=image.shape[2])


class _Parts:
    """The unfinished files, open at the end of the last complete tile."""

    def __init__(self, folder: Path, identity: str) -> None:
        self.rows, self.tiles, self.table_bytes = 0, 0, 0
        self.counts, self.left_out = Counter[str](), Counter[str]()
        self.skipped = list[Sequence[str]]()
        journal = Journal(folder / _JOURNAL, {"identity": identity})
        entries = list(journal.entries())
        if not _are_written(folder, entries):  # the files lack what the journal says: start again
            journal.path.unlink(missing_ok=True)
            entries = []
        for entry in entries:
            self._count(entry)
        with ExitStack() as opened:
            crops_bytes = _HEADER_BYTES + self.rows * _CROP_BYTES
            self.crops = opened.enter_context(_open_at(folder / f"{CROPS}.part", crops_bytes))
            self.table = opened.enter_context(_open_at(folder / f"{TABLE}.part", self.table_bytes))
            if not entries:
                self.table.write(_csv_bytes([COLUMNS]))
            self.note = opened.enter_context(journal.writing())
            self._opened = opened.pop_all()

    def __enter__(self) -> "_Parts":
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def add(self, tile: XbdTile, tile_crops: CutTile) -> None:
        """Append a tile; the journal comes last, since it proves that the others are written."""
        self.crops.write(tile_crops.crops.tobytes())
        self.table.write(_csv_bytes(tile_crops.lines))
        for file in (self.crops, self.table):
            file.flush()
            if tile_crops.lines:
                os.fsync(file.fileno())
        entry = {
            "tile": tile.name,
            "rows": len(tile_crops.lines),
            "table_bytes": self.table.tell(),
            "counts": dict(tile_crops.counts),
            "left_out": dict(tile_crops.left_out),
            "skipped": tile_crops.skipped,
        }
        self.note(entry)
        self._count(entry)

    def _count(self, entry: dict[str, Any]) -> None:
        self.tiles += 1
        self.rows += entry["rows"]
        self.table_bytes = entry["table_bytes"]
        self.counts.update(entry["counts"])
        self.left_out.update(entry["left_out"])
        if entry["skipped"] is not None:
            self.skipped.append(entry["skipped"])

    def summary(self, identity: str) -> dict[str, Any]:
        """Write the shape into the header of the crops; return what was done and left out."""
        head = io.BytesIO()
        shape = (self.rows, 3, SIZE, SIZE)
        described = {"descr": "|u1", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(head, described)
        assert len(head.getvalue()) == _HEADER_BYTES
        self.crops.seek(0)
        self.crops.write(head.getvalue())
        names = (*CLASS_NAMES, *sorted(set(self.counts) - set(CLASS_NAMES)))
        counts = {name: self.counts[name] for name in names if self.counts[name]}
        return {
            "identity": identity,
            "counts": {"tiles": self.tiles, "crops": self.rows, **counts},
            "left_out": dict(sorted(self.left_out.items())),
            "skipped": self.skipped,
        }


def _are_written(folder: Path, entries: Sequence[dict[str, Any]]) -> bool:
    """Return whether the unfinished files hold all that the journal says."""
    if not entries:
        return False
    crops_bytes = _HEADER_BYTES + sum(entry["rows"] for entry in entries) * _CROP_BYTES
    wanted = {folder / f"{CROPS}.part": crops_bytes}
    wanted[folder / f"{TABLE}.part"] = entries[-1]["table_bytes"]
    return all(path.is_file() and path.stat().st_size >= size for path, size in wanted.items())


def _open_at(path: Path, size: int) -> IO[bytes]:
    """Open a file for writing behind its first bytes, and remove the rest."""
    path.touch()
    file = path.open("r+b")
    file.truncate(size)
    file.seek(size)
    return file


def _csv_bytes(lines: Sequence[Sequence[object]]) -> bytes:
    return csv_lines(lines).encode("utf-8", "backslashreplace")


def _refuse_too_few(root: Path, summary: dict[str, Any]) -> None:
    counts, skipped = summary["counts"], summary["skipped"]
    if len(skipped) > _TOLERATED * counts["tiles"]:
        raise DataError(
            f"{len(skipped)} of {counts['tiles']} tiles in {root} cannot be read. The first: "
            f"{' '.join(skipped[0])}. Get them again, or move them away."
        )
    if not counts["crops"]:
        raise DataError(f"The {counts['tiles']} tiles in {root} hold no building of known damage.")


def _publish(folder: Path, summary: dict[str, Any]) -> None:
    """Give the files their names; the summary, which holds their checksums, comes last."""
    (folder / SUMMARY).unlink(missing_ok=True)
    for name in (CROPS, TABLE):
        publish(folder / f"{name}.part", folder / name)
        size, digest = measure(folder / name, "sha256")
        summary[name] = {"bytes": size, "sha256": digest}
    write_json(folder / SUMMARY, summary)
    (folder / _JOURNAL).unlink()


def read_summary(folder: Path) -> dict[str, Any] | None:
    """Return the content of `summary.json`, or None if there is none."""
    path = folder / SUMMARY
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise DataError(f"{path} is not JSON ({error}). Delete it and prepare again.") from error
    if isinstance(content, dict) and set(content) >= _KEYS:
        files = [content.get(name) for name in (CROPS, TABLE)]
        if all(isinstance(file, dict) and {"bytes", "sha256"} <= set(file) for file in files):
            return content
    raise DataError(f"{path} is not a summary of crops. Delete it and prepare again.")


def _prepared_files(folder: Path, summary: dict[str, Any]) -> PreparedFiles:
    skipped = tuple((str(file), str(reason)) for file, reason in summary["skipped"])
    return PreparedFiles(folder, summary["counts"], summary["left_out"], skipped)
