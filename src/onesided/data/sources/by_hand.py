"""Data sets that people have to fetch themselves, because their publisher asks for consent.

They are never passed on, and never fetched behind anybody's back. What a program can do is
say where they are, prepare what was fetched, and see whether it is whole.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from onesided.data.sources.download import FileStatus
from onesided.storage.progress import Progress


@dataclass(frozen=True)
class PreparedFiles:
    """What became of the files that somebody fetched.

    Attributes:
        folder: Where the result is.
        counts: What was kept, and of what kind it is.
        left_out: How many were not kept, by the reason.
        skipped: Files that could not be read, with the reason.
    """

    folder: Path
    counts: Mapping[str, int]
    left_out: Mapping[str, int]
    skipped: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ByHand:
    """How a data set gets here.

    Attributes:
        address: Where people get it.
        inspect: Says which of its files are there and whole.
        prepare: Makes of the publisher's files what is read; None if they are read directly.
    """

    address: str
    inspect: Callable[[Path], tuple[FileStatus, ...]]
    prepare: Callable[[Path, Progress], PreparedFiles] | None = None

    def way(self, name: str, root: Path | None) -> str:
        """Return what a person has to do, as a sentence."""
        place = "DATA" if root is None else str(root)
        fetch = f"Get it from {self.address}, whose terms are for you to accept"
        if self.prepare is None:
            return f"{fetch}, and unpack it in {place}."
        prepare = f"onesided data prepare {name} --root {place} --accept-licence"
        return f"{fetch}, unpack it in {place}, and run: {prepare}"
