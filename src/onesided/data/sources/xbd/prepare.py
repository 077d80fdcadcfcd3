"""Cut every building of xBD out of its tile, once, into a file that can be mapped.

In `xbd-crops` under the root:

* `crops.npy`: (buildings, 3, 64, 64) of uint8, to be mapped and not loaded;
* `buildings.csv`: a line for each crop, in the same order;
* `summary.json`: what was left out, and the checksums of the two.

Tiles are appended one after the other, and a journal holds how far that came: after an
interruption the same command cuts both files back to the last whole tile and goes on. The
files get their names when they are complete.
"""

import hashlib
import io
import json
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np

from onesided.core.errors import DataError
from onesided.data.read.polygons import MARGIN, require_shapely
from onesided.data.sources.by_hand import PreparedFiles
from onesided.data.sources.xbd.cut import COLUMNS, SIZE, CutTile, cut_tiles
from onesided.data.sources.xbd.labels import CLASS_NAMES, XbdTile, find_tiles
from onesided.storage.atomic import publish, write_json
from onesided.storage.journal import Journal
from onesided.storage.progress import Progress
from onesided.storage.table import csv_lines

FOLDER, CROPS, TABLE, SUMMARY = "xbd-crops", "crops.npy", "buildings.csv", "summary.json"
FORMAT = 1
_JOURNAL = "journal.jsonl"
_KEYS = {"identity", "counts", "left_out", "skipped"}
_HEADER_BYTES = 128  # room for the shape, which is known at the end only
_CROP_BYTES = 3 * SIZE * SIZE
_TOLERATED = 0.05  # share of tiles that may be unreadable


def prepare_xbd(root: Path, progress: Progress) -> PreparedFiles:
    """Cut out all buildings under the root, or go on where an earlier call stopped.

    Nothing is done if the same tiles were prepared already.
    """
    require_shapely()
    tiles = find_tiles(root)
    folder, identity = root / FOLDER, _identity(tiles)
    if (done := _finished(folder)) is not None and done["identity"] == identity:
        return _told(folder, done)
    try:
        folder.mkdir(exist_ok=True)
        with _Parts(folder, identity) as parts:
            left = tiles[parts.tiles :]
            for tile, piece in zip(left, cut_tiles(left), strict=True):
                parts.add(tile, piece)
                progress(parts.tiles, len(tiles))
            summary = parts.summary(identity)
        _refuse_if_little_is_left(root, summary)
        _publish(folder, summary)
    except OSError as error:
        raise DataError(
            f"{folder} cannot be written ({error}). Make room or choose another --root; what is "
            "done is kept, and the same command continues."
        ) from error
    return _told(folder, summary)


def _identity(tiles: Sequence[XbdTile]) -> str:
    """Return a hash of how crops are made and from which files, by their names and sizes."""
    digest = hashlib.sha256(f"{FORMAT} {SIZE} {MARGIN}".encode())
    for tile in tiles:
        sizes = [path.stat().st_size if path.is_file() else -1 for path in (tile.label, tile.image)]
        digest.update(f"\n{tile.name} {sizes}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


class _Parts:
    """The unfinished files, open at the end of the last whole tile."""

    def __init__(self, folder: Path, identity: str) -> None:
        self.rows, self.tiles, self.table_bytes = 0, 0, 0
        self.counts, self.left_out = Counter[str](), Counter[str]()
        self.skipped = list[Sequence[str]]()
        journal = Journal(folder / _JOURNAL, {"identity": identity})
        entries = list(journal.entries())
        if not _vouched(folder, entries):  # not what the journal says: begin anew
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

    def add(self, tile: XbdTile, piece: CutTile) -> None:
        """Append a tile; the journal comes last, since it vouches for the others."""
        self.crops.write(piece.crops.tobytes())
        self.table.write(_csv_bytes(piece.lines))
        for file in (self.crops, self.table):
            file.flush()
            if piece.lines:
                os.fsync(file.fileno())
        entry = {
            "tile": tile.name,
            "rows": len(piece.lines),
            "table_bytes": self.table.tell(),
            "counts": dict(piece.counts),
            "left_out": dict(piece.left_out),
            "skipped": piece.skipped,
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
        """Write the shape into the head of the crops; return what the work came to."""
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


def _vouched(folder: Path, entries: Sequence[dict[str, Any]]) -> bool:
    """Whether the unfinished files hold all that a journal speaks of."""
    if not entries:
        return False
    crops_bytes = _HEADER_BYTES + sum(entry["rows"] for entry in entries) * _CROP_BYTES
    wanted = {CROPS: crops_bytes, TABLE: entries[-1]["table_bytes"]}
    return all(_size(folder / f"{name}.part") >= size for name, size in wanted.items())


def _open_at(path: Path, size: int) -> IO[bytes]:
    """Open a file for writing behind its first bytes, cutting off what is there beyond."""
    path.touch()
    file = path.open("r+b")
    file.truncate(size)
    file.seek(size)
    return file


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _csv_bytes(lines: Sequence[Sequence[object]]) -> bytes:
    return csv_lines(lines).encode("utf-8", "backslashreplace")


def _refuse_if_little_is_left(root: Path, summary: dict[str, Any]) -> None:
    counts, skipped = summary["counts"], summary["skipped"]
    if len(skipped) > _TOLERATED * counts["tiles"]:
        raise DataError(
            f"{len(skipped)} of {counts['tiles']} tiles in {root} cannot be read. The first: "
            f"{' '.join(skipped[0])}. Get them again, or move them away."
        )
    if not counts["crops"]:
        raise DataError(f"The {counts['tiles']} tiles in {root} hold no building of known damage.")


def _publish(folder: Path, summary: dict[str, Any]) -> None:
    """Give the files their names; the summary, which vouches for them, comes last."""
    (folder / SUMMARY).unlink(missing_ok=True)
    for name in (CROPS, TABLE):
        publish(folder / f"{name}.part", folder / name)
        with (folder / name).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        summary[name] = {"bytes": _size(folder / name), "sha256": digest}
    write_json(folder / SUMMARY, summary)
    (folder / _JOURNAL).unlink()


def _finished(folder: Path) -> dict[str, Any] | None:
    """Return the summary if the work was finished and its files are there."""
    return read_summary(folder) if all((folder / n).is_file() for n in (CROPS, TABLE)) else None


def read_summary(folder: Path) -> dict[str, Any] | None:
    """Return what `summary.json` says, or None if there is none."""
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


def _told(folder: Path, summary: dict[str, Any]) -> PreparedFiles:
    skipped = tuple((str(file), str(reason)) for file, reason in summary["skipped"])
    return PreparedFiles(folder, summary["counts"], summary["left_out"], skipped)
