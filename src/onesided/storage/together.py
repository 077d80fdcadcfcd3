"""Several files that change together or not at all, also after a kill or a power cut.

New files are written into a folder beside the old ones, `.LABEL.next`. When all are on the disk,
it is renamed to `.LABEL.done`: from then on the change counts. The files are moved to their
places, and the empty folder goes. Whoever comes next removes a `.next` and completes a `.done`,
so a change that was cut off anywhere is undone or done, and never half.

    with together(run) as new:
        write_json(new / "result.json", result)
        write_text(new / "scores.csv", scores)
"""

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from onesided.core.errors import FolderTaken, OnesidedError
from onesided.storage.atomic import flush_folder, rename, write_text
from onesided.storage.lock import working_in
from onesided.storage.own_file import CHECKSUMS, checksums_text, digest_of, read_checksums, why

RUN = "run"
"""Label of the changes of a run folder."""
PATIENCE = 5.0
"""Seconds that a reader waits for a change that another process is completing."""


def pending(folder: Path, label: str = RUN) -> tuple[Path, Path]:
    """Return where a change is prepared, and where it is once it counts."""
    return folder / f".{label}.next", folder / f".{label}.done"


@contextmanager
def together(folder: Path, label: str = RUN) -> Iterator[Path]:
    """Give an empty folder; at the end of the block its files replace those of `folder`.

    After an error nothing is changed. The caller holds the lock of the folder.
    """
    recover(folder, label)
    new, done = pending(folder, label)
    with _explaining(folder):
        new.mkdir(parents=True)
    try:
        yield new
        _check_targets(new, folder)
        with _explaining(folder):
            _flush_all(new)
            rename(new, done)
    finally:
        if new.exists():
            shutil.rmtree(new)
    recover(folder, label)


def recover(folder: Path, label: str = RUN) -> None:
    """Complete a change that was cut off after it counted; undo one that was cut off before."""
    new, done = pending(folder, label)
    with _explaining(folder):
        if new.exists():
            shutil.rmtree(new)
        if not done.exists():
            return
        for file in _files(done):
            target = folder / file.relative_to(done)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(file, target)
            flush_folder(target.parent)
            flush_folder(file.parent)
        shutil.rmtree(done)
        flush_folder(folder)


def settle(folder: Path) -> None:
    """Complete a change of a run folder that was cut off, before anything in it is read.

    A run beside another one, in its folder `compare`, may have changed together with that.
    """
    for place in (folder.absolute().parent.parent, folder):
        started = time.monotonic()
        while pending(place)[1].exists():
            try:
                with working_in(place):
                    recover(place)
            except FolderTaken:
                # Another process is completing it, which takes milliseconds.
                if time.monotonic() - started > PATIENCE:
                    raise
                time.sleep(0.05)


def write_checksums(new: Path, folder: Path, also: Iterable[str] = ()) -> None:
    """Add the checksums of a change: of its files, and of those of `folder` that stay.

    `also` names files that the folder holds already, and that no list names yet. An old file
    that was never listed stays so: nobody can tell whether it is sound.
    """
    digests = read_checksums(folder)
    for name in also:
        if (folder / name).exists():
            digests[name] = digest_of(folder / name)
    for file in sorted(new.iterdir()):
        if file.is_file() and file.name != CHECKSUMS:
            digests[file.name] = digest_of(file)
    write_text(new / CHECKSUMS, checksums_text(digests))


def _files(folder: Path) -> list[Path]:
    """Return all files below a folder; a list of checksums comes after what it lists."""
    files = [path for path in sorted(folder.rglob("*")) if not path.is_dir()]
    return sorted(files, key=lambda path: path.name == CHECKSUMS)


def _check_targets(new: Path, folder: Path) -> None:
    """Refuse a change that could never be completed, before it counts."""
    for file in _files(new):
        inside = file.relative_to(new)
        for part in (inside, *inside.parents[:-1]):
            target, is_last = folder / part, part == inside
            if target.exists() and target.is_dir() == is_last:
                what = "it is a folder" if is_last else f"{target} is a file"
                raise OnesidedError(
                    f"Cannot write {folder / inside}: {what}. Move it away, and give the same "
                    "command again; nothing was changed."
                )


def _flush_all(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            flush_folder(path)
        else:
            with path.open("r+b") as file:
                os.fsync(file.fileno())
    flush_folder(folder)


@contextmanager
def _explaining(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OnesidedError(
            f"Cannot change the files in {folder}: {why(error)}. What belongs together is still "
            "old or new as a whole; make room, or give the same command where it may write."
        ) from error
