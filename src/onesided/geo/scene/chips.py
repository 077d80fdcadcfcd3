"""One small picture (chip) for each building, in a file that is written once and read by rows.

The file is filled in chunks. A journal notes each chunk once it is safe on disk, so the same
command resumes after a crash. Pixels are written, not memory-mapped, while cutting: a million
buildings then take the memory of a few hundred.
"""

import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from jaxtyping import Bool, Int64, UInt8

from onesided.core.errors import DataError, OnesidedError
from onesided.geo.input.footprints import Buildings
from onesided.geo.input.imagery import Imagery
from onesided.run.folder import make_folder
from onesided.storage.atomic import read_json, remove_half_written, write_json
from onesided.storage.journal import Journal
from onesided.storage.names import printable, shown_path
from onesided.storage.own_file import open_own, why
from onesided.storage.progress import Progress

PIXELS, NOTES, NAMES = "pixels.u8", "notes.jsonl", "names.json"
CHUNK = 256
"""Buildings between two notes: a few megabytes of pixels."""
RULES = 3
"""Counts up when the same images give other pixels: older chips are then cut again."""

Chip = np.ndarray | str
"""uint8 (channels, size, size), or the reason why there is none."""


class Scene(Protocol):
    """Buildings, and how to cut their chips."""

    buildings: Buildings
    channels: int

    def order(self) -> Int64[np.ndarray, "n"]:
        """Return all rows in the order in which they are fastest to cut."""

    def chips(self, rows: Sequence[int], size: int) -> Iterator[Chip]:
        """Return the chip of each of these rows."""

    def identity(self) -> Mapping[str, Any]:
        """Return everything that the pixels of the chips depend on."""


@dataclass(frozen=True)
class Chips:
    """The chips of all buildings.

    Attributes:
        values: uint8 (n, channels, size, size), in a file; black where a building is skipped.
        reasons: Why a building has no chip, by its row.
    """

    values: np.ndarray
    reasons: Mapping[int, str]

    @property
    def kept(self) -> Bool[np.ndarray, "n"]:
        """Which rows have a chip."""
        kept = np.ones(len(self.values), bool)
        kept[list(self.reasons)] = False
        return kept


def cut_chips(scene: Scene, folder: Path, *, size: int, progress: Progress | None = None) -> Chips:
    """Cut all buildings of a scene into a folder, or resume it, or find it done."""
    shape = (len(scene.buildings), scene.channels, size, size)
    order = scene.order()
    make_folder(folder, instead="Choose another with --run.")
    remove_half_written(folder)
    journal = Journal(folder / NOTES, {"identity": _identity(scene, shape)})
    done, reasons, checksums = _noted(journal)
    _check_pixels(folder / PIXELS, journal, checksums, shape)
    with (folder / PIXELS).open("r+b" if done else "w+b") as pixels, journal.writing() as note:
        pixels.truncate(int(np.prod(shape)))
        for start in range(done, len(order), CHUNK):
            rows = [int(row) for row in order[start : start + CHUNK]]
            skipped, sums = _write(pixels.fileno(), scene, rows, shape)
            os.fsync(pixels.fileno())
            note({"done": start + len(rows), "skipped": skipped, "checksums": sums})
            reasons |= skipped
            if progress is not None:
                progress(start + len(rows), len(order))
    if not done or not (folder / NAMES).exists():
        write_json(folder / NAMES, {"names": list(map(printable, scene.buildings.names))})
    values = np.memmap(folder / PIXELS, np.uint8, "r", shape=shape)
    return Chips(values, dict(sorted(reasons.items())))


def stored_chips(
    folder: Path, sample_shape: Sequence[int]
) -> tuple[dict[str, int], UInt8[np.ndarray, "n channels height width"]]:
    """Return the row of each building by its name, and all chips, which stay in their file.

    The folder is one that `cut_chips` filled. Skipped buildings are black.
    """
    try:
        names = read_json(folder / NAMES).get("names")
        size = (folder / PIXELS).stat().st_size
    except (OSError, OnesidedError):
        names, size = None, -1
    shape = (len(names) if isinstance(names, list) else 0, *sample_shape)
    if size != int(np.prod(shape)) or not isinstance(names, list):
        raise DataError(
            f"{shown_path(folder)} lacks the chips of this run's buildings. Give the map command "
            "of this run again: it trains nothing, and writes what is missing."
        )
    values = np.memmap(folder / PIXELS, np.uint8, "r", shape=shape)
    return {str(name): row for row, name in enumerate(names)}, values


def _write(
    file: int, scene: Scene, rows: Sequence[int], shape: Sequence[int]
) -> tuple[dict[int, str], dict[int, int]]:
    """Write the chips of some rows; return why others have none, and the CRC-32 of each chip."""
    skipped, checksums = dict[int, str](), dict[int, int]()
    bytes_each = int(np.prod(shape[1:]))
    for row, chip in zip(rows, scene.chips(rows, shape[-1]), strict=True):
        if isinstance(chip, str):
            skipped[row] = chip
        elif chip.shape != tuple(shape[1:]):
            # Written, it would overwrite a part of its neighbours.
            skipped[row] = f"its images have {len(chip)} bands where others have {shape[1]}"
        else:
            content = np.ascontiguousarray(chip).tobytes()
            os.pwrite(file, content, row * bytes_each)
            checksums[row] = zlib.crc32(content)
    return skipped, checksums


def _check_pixels(
    path: Path, journal: Journal, checksums: Mapping[int, int], shape: Sequence[int]
) -> None:
    """Raise where a chip of an earlier start has other bits than were written."""
    if not checksums:
        return
    bytes_each = int(np.prod(shape[1:]))
    try:
        with open_own(path) as file:
            for row, wanted in sorted(checksums.items()):
                file.seek(row * bytes_each)
                if zlib.crc32(file.read(bytes_each)) != wanted:
                    raise OSError(f"the chip of row {row} does not have its checksum")
    except OSError as error:
        raise DataError(
            f"{shown_path(path)} is damaged ({why(error)}). Delete {journal.path.name} beside it, "
            "and give the same command again; the chips are then cut again."
        ) from None


def _noted(journal: Journal) -> tuple[int, dict[int, str], dict[int, int]]:
    """Return how many buildings the same cutting has done, which it skipped, and checksums."""
    done, reasons, checksums = 0, dict[int, str](), dict[int, int]()
    for note in journal.entries():
        try:
            done = int(note["done"])
            reasons |= {int(row): str(reason) for row, reason in note["skipped"].items()}
            checksums |= {int(row): int(wanted) for row, wanted in note["checksums"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise journal.damaged(f"{type(error).__name__}: {error}") from None
    return done, reasons, checksums


def _identity(scene: Scene, shape: Sequence[int]) -> str:
    facts = [RULES, list(shape), dict(scene.identity())]
    digest = hashlib.sha256(json.dumps(facts).encode())
    for name in scene.buildings.names:
        digest.update(f"{name}\x1e".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def file_identity(path: Path | Imagery) -> list[object]:
    """Return what changes when a file changes, without reading gigabytes of it."""
    if isinstance(path, Imagery):
        return path.identity()
    status = path.stat()
    return [path.name, status.st_size, status.st_mtime_ns]
