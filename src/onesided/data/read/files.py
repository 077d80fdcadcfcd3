"""Image files of people: their paths, their names, and which of them are unreadable.

A name is a path relative to the given folder, with `/` between its parts. Names are kept as
the file system has them, also where their bytes are not text; `printable` converts them for
JSON, CSV and HTML.
"""

import os
import posixpath
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from onesided.core.errors import DataError, DataNotFound
from onesided.storage.names import name_in_cell, original_name, shown_path, without_surrogates
from onesided.storage.table import Row, Table

ACCEPTED_ENDINGS = (
    *(".png", ".jpg", ".jpeg", ".bmp", ".tif"),
    *(".tiff", ".webp", ".gif", ".ppm", ".pgm"),
)
"""Endings of image files, in small or capital letters."""


class Unreadable(DataError):
    """One image file that cannot be used.

    Attributes:
        reason: Continues a sentence that starts with the file's name.
    """

    def __init__(self, path: Path, reason: str) -> None:
        self.reason = without_surrogates(reason)
        super().__init__(f"{shown_path(path)} {self.reason}.")


@dataclass(frozen=True, slots=True)
class Found:
    """One file and what it is called.

    There may be a million of them, and a `Path` takes three times the memory of its text.
    """

    location: str | Path
    name: str

    @property
    def path(self) -> Path:
        """Where the file is."""
        return Path(self.location)


@dataclass(frozen=True)
class Listing:
    """The visible files of a folder.

    Attributes:
        images: Files with an accepted ending, sorted by the bytes of their names.
        others: How many files have which other ending.
    """

    images: tuple[Found, ...]
    others: Counter[str]


def find_images(folder: Path) -> list[Found]:
    """Return the image files in a folder and its subfolders, sorted by name."""
    return list(list_images(folder).images)


def list_images(folder: Path, prefix: str = "") -> Listing:
    """Return the image files of a folder, nested ones too, and count the other files.

    Links to files and folders are followed. A folder with several paths is read once, under
    its own path where it has one, so loops end. Hidden files and folders, whose names start
    with a dot, are left out. Every name starts with `prefix`.
    """
    others = Counter[str]()
    images = stream_images(folder, others, prefix)
    return Listing(tuple(sorted(images, key=lambda file: os.fsencode(file.name))), others)


def stream_images(folder: Path, others: Counter[str], prefix: str = "") -> Iterator[Found]:
    """Yield the files of `list_images`, in no order, without a list of them in memory.

    Files with other endings are counted in `others`.
    """
    return stream_files(folder, others, prefix, accepted=ACCEPTED_ENDINGS, noun="image")


def check_folder(folder: Path, *, accepted: Sequence[str], noun: str) -> None:
    """Refuse what is no folder."""
    if not os.path.isdir(folder):
        problem = "is a file, not a folder" if os.path.exists(folder) else "does not exist"
        raise DataNotFound(
            f"The folder {shown_path(folder)} {problem}. Give a folder of {noun}s "
            f"({', '.join(accepted)})."
        )


def stream_files(
    folder: Path, others: Counter[str], prefix: str = "", *, accepted: Sequence[str], noun: str
) -> Iterator[Found]:
    """Yield the files with an accepted ending, in no order; see `stream_images`."""
    check_folder(folder, accepted=accepted, noun=noun)
    endings = ", ".join(accepted)
    shown = shown_path(folder)
    is_empty = True
    for file in _visible_files(folder, prefix):
        ending = os.path.splitext(file.name)[1].lower()
        if ending in accepted:
            is_empty = False
            yield file
        else:
            others[without_surrogates(ending) or "no ending"] += 1
    if is_empty:
        came = f"only files of other kinds ({describe(others)})" if others else "nothing"
        raise DataNotFound(
            f"The folder {shown} holds no {noun}: expected files that end in {endings}; "
            f"found {came}."
        )


def holds_only(folder: Path, ending: str) -> bool:
    """Whether a folder holds files with this ending and no images."""
    if not folder.is_dir():
        return False
    endings = {os.path.splitext(file.name)[1].lower() for file in _visible_files(folder, "")}
    return ending in endings and endings.isdisjoint(ACCEPTED_ENDINGS)


def listed_file(table: Table, row: Row) -> tuple[Found, str]:
    """Return the file that a row of a table lists, and how it is written there, escapes undone."""
    text = row.cells["path"]
    if not text.strip() or "\0" in text:
        raise table.fault("the path is empty or holds a zero byte.", row.line)
    path = table.path.parent / text
    # Our own tables write odd names by `printable` and `spreadsheet_safe`; they can be given
    # back as they are.
    if not os.path.lexists(path):
        text = original_name(name_in_cell(text))
        path = table.path.parent / text
    return Found(path, posixpath.normpath(text)), text


def own_name(folder: Path) -> str:
    """Return the name of a folder, also where it is given as `.`; nothing for the root."""
    return Path(os.path.abspath(folder)).name


def folder_prefix(folder: Path) -> str:
    """Return what the names of a folder's items start with."""
    return f"{own_name(folder)}/".lstrip("/")


def stamp(file: Found) -> bytes:
    """Return size and time of change of a file; they differ when its content changed."""
    try:
        status = os.stat(file.location)
    except OSError:
        return b"-"
    return f"{status.st_size}:{status.st_mtime_ns}".encode()


def visible_folders(folder: Path) -> list[Path]:
    """Return the folders directly in a folder, links to folders too, sorted by name."""
    folders = [Path(entry.path) for entry in _entries(folder) if os.path.isdir(entry.path)]
    return sorted(folders, key=lambda path: os.fsencode(path.name))


def describe(endings: Counter[str]) -> str:
    """Return the commonest endings with their counts, for example `12 .heic, 1 .txt`."""
    return ", ".join(f"{count} {ending}" for ending, count in endings.most_common(5))


def _visible_files(root: Path, start: str) -> Iterator[Found]:
    seen: set[tuple[int, int]] = set()
    own, linked = deque([(root, start)]), deque[tuple[Path, str]]()
    while own or linked:
        # Real folders before links: a file's name must not depend on a link beside it.
        folder, prefix = (own or linked).popleft()
        status = folder.stat()
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        inside: list[os.DirEntry[str]] = []
        for entry in _entries(folder):
            is_own = entry.is_dir(follow_symlinks=False)
            if is_own or (entry.is_symlink() and os.path.isdir(entry.path)):
                inside.append(entry)
            else:
                yield Found(entry.path, prefix + entry.name)
        # Of two links to one folder, the first by name is followed.
        for entry in sorted(inside, key=lambda entry: os.fsencode(entry.name)):
            waiting = own if entry.is_dir(follow_symlinks=False) else linked
            waiting.append((Path(entry.path), f"{prefix}{entry.name}/"))


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from (entry for entry in entries if not entry.name.startswith("."))
    except OSError as error:
        shown = shown_path(folder)
        raise DataError(f"The folder {shown} cannot be opened: {error.strerror}.") from error
