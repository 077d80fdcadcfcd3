"""What lies beside the page: a folder of small scripts that hold pictures.

The folder has the name of its content, so that a page never meets the files of another one.
"""

import base64
import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from jaxtyping import Int64, UInt8

from onesided.core.errors import OnesidedError
from onesided.geo.output.pyramid import Pyramid, jpeg, script, scripts
from onesided.storage.atomic import rename

CHIPS_IN_FILE = 128
CHIP_QUALITY = 75
_OURS = re.compile(r"[0-9a-f]{16}|\.\d+\.part")


class ChipValues(Protocol):
    """Pictures by row: an array, or something that cuts each when it is asked for it."""

    def __getitem__(self, row: int, /) -> UInt8[np.ndarray, "channels side side"]:
        """Return the picture of a row."""
        ...


@dataclass(frozen=True)
class ChipFiles:
    """Small pictures of buildings, where there is no sharp image of the whole place.

    Attributes:
        values: Of each building uint8 (channels, side, side).
        rows: Which buildings have one, in the order in which they are written.
        after_from: First channel of the picture after the event, 0 where there is none before.
    """

    values: ChipValues
    rows: Int64[np.ndarray, "m"]
    after_from: int = 0

    def scripts(self) -> Iterator[tuple[str, bytes]]:
        """Yield name and content of each script: before and after in turn, or after alone."""
        for start in range(0, len(self.rows), CHIPS_IN_FILE):
            name = f"chips-{start // CHIPS_IN_FILE}"
            texts = [
                base64.b64encode(picture).decode("ascii")
                for row in self.rows[start : start + CHIPS_IN_FILE]
                for picture in self._pictures(int(row))
            ]
            yield name, script(name, *texts)

    def _pictures(self, row: int) -> list[bytes]:
        chip = np.asarray(self.values[row])
        parts = [chip[: self.after_from], chip[self.after_from :]]
        return [jpeg(part, CHIP_QUALITY) for part in parts if len(part)]

    def usual_bytes(self) -> float:
        """Return the bytes of a building's pictures, from some of them."""
        some = self.rows[np.linspace(0, len(self.rows) - 1, 32).astype(int)]
        return sum(len(each) for row in some for each in self._pictures(int(row))) / 32 * 4 / 3

    def to_json(self) -> dict[str, object]:
        """Return where the page finds the picture of a building."""
        whole = bool((self.rows == np.arange(len(self.rows))).all())
        return {
            "count": len(self.rows),
            "rows": None if whole else self.rows.tolist(),
            "each": CHIPS_IN_FILE,
            "sides": 2 if self.after_from else 1,
        }


@dataclass(frozen=True)
class PageFiles:
    """All files beside a page.

    Attributes:
        layers: The images `before` and `after` by tiles.
        chips: Pictures of buildings, where there is no image, or none as sharp as its file.
    """

    layers: Mapping[str, Pyramid] = field(default_factory=dict)
    chips: ChipFiles | None = None

    def scripts(self) -> Iterator[tuple[str, bytes]]:
        """Yield name and content of each script."""
        for name, pyramid in self.layers.items():
            yield from scripts(pyramid, name)
        if self.chips is not None:
            yield from self.chips.scripts()


@dataclass(frozen=True)
class WrittenFiles:
    """The folder that was written, None where there is nothing beside the page."""

    root: Path
    folder: Path | None

    @property
    def name(self) -> str | None:
        """The folder relative to the page."""
        return None if self.folder is None else f"{self.root.name}/{self.folder.name}"


def remove_other_files(page: Path, kept: str | None) -> None:
    """Remove the files of earlier pages, and nothing that is not ours.

    `kept` is the folder of the page that stands, relative to it.
    """
    root = files_root(page)
    if not root.is_dir():
        return
    for other in root.iterdir():
        ours = other.is_dir() and _OURS.fullmatch(other.name)
        if ours and f"{root.name}/{other.name}" != kept:
            shutil.rmtree(other)
    if not any(root.iterdir()):
        root.rmdir()


def files_root(page: Path) -> Path:
    """Return the folder beside a page that holds its files."""
    return page.with_name(f"{page.stem}-files")


def write_page_files(files: PageFiles, page: Path) -> WrittenFiles:
    """Write the files of a page beside it, one tile at a time."""
    root = files_root(page)
    if not files.layers and files.chips is None:
        return WrittenFiles(root, None)
    part = root / f".{os.getpid()}.part"
    try:
        part.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        for name, content in files.scripts():
            (part / f"{name}.js").write_bytes(content)
            digest.update(content)
        folder = root / digest.hexdigest()[:16]
        if folder.is_dir():
            shutil.rmtree(part)
        else:
            rename(part, folder)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise OnesidedError(
            f"Cannot write {root}: {error.strerror}. An earlier page is intact; make room or "
            "choose another folder with -o, and give the same command again."
        ) from error
    return WrittenFiles(root, folder)
