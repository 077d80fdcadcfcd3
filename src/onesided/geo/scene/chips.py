"""One small picture (chip) for each building, in a file that is written once and read by rows.

The file is filled in chunks. A journal notes each chunk once it is safe on disk, so the same
command resumes after a crash. Pixels are written, not memory-mapped, while cutting: a million
buildings then take the memory of a few hundred.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from jaxtyping import Bool, Int64

from onesided.geo.input.footprints import Buildings
from onesided.run.folder import make_folder
from onesided.storage.journal import Journal
from onesided.storage.progress import Progress

PIXELS, NOTES = "pixels.u8", "notes.jsonl"
CHUNK = 256
"""Buildings between two notes: a few megabytes of pixels."""
RULES = 2
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
    journal = Journal(folder / NOTES, {"identity": _identity(scene, shape)})
    done, reasons = _noted(journal)
    with (folder / PIXELS).open("r+b" if done else "w+b") as pixels, journal.writing() as note:
        pixels.truncate(int(np.prod(shape)))
        for start in range(done, len(order), CHUNK):
            rows = [int(row) for row in order[start : start + CHUNK]]
            skipped = _write(pixels.fileno(), scene, rows, shape)
            os.fsync(pixels.fileno())
            note({"done": start + len(rows), "skipped": skipped})
            reasons |= skipped
            if progress is not None:
                progress(start + len(rows), len(order))
    values = np.memmap(folder / PIXELS, np.uint8, "r", shape=shape)
    return Chips(values, dict(sorted(reasons.items())))


def _write(file: int, scene: Scene, rows: Sequence[int], shape: Sequence[int]) -> dict[int, str]:
    """Write the chips of some rows; return why others have none."""
    skipped = {}
    bytes_each = int(np.prod(shape[1:]))
    for row, chip in zip(rows, scene.chips(rows, shape[-1]), strict=True):
        if isinstance(chip, str):
            skipped[row] = chip
        elif chip.shape != tuple(shape[1:]):
            # Written, it would overwrite a part of its neighbours.
            skipped[row] = f"its images have {len(chip)} bands where others have {shape[1]}"
        else:
            os.pwrite(file, np.ascontiguousarray(chip).tobytes(), row * bytes_each)
    return skipped


def _noted(journal: Journal) -> tuple[int, dict[int, str]]:
    """Return how many buildings the same cutting has done, and which it skipped."""
    done, reasons = 0, dict[int, str]()
    for note in journal.entries():
        try:
            done = int(note["done"])
            reasons |= {int(row): str(why) for row, why in note["skipped"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise journal.damaged(f"{type(error).__name__}: {error}") from None
    return done, reasons


def _identity(scene: Scene, shape: Sequence[int]) -> str:
    facts = [RULES, list(shape), dict(scene.identity())]
    digest = hashlib.sha256(json.dumps(facts).encode())
    for name in scene.buildings.names:
        digest.update(f"{name}\x1e".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def file_identity(path: Path) -> list[object]:
    """Return what changes when a file changes, without reading gigabytes of it."""
    status = path.stat()
    return [path.name, status.st_size, status.st_mtime_ns]
