"""The run folder: which files there are, who owns it, and that nothing in it is half written."""

import os
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from onesided.core.config import dump_toml
from onesided.core.dist import rank
from onesided.core.errors import FolderTaken, OnesidedError
from onesided.engine.model_file import DESCRIPTION, WEIGHTS
from onesided.run.config import RunConfig
from onesided.run.result_file import check_result
from onesided.storage.atomic import half_written, read_json, write_json, write_text
from onesided.storage.lock import LOCK, alone
from onesided.storage.names import printable
from onesided.storage.table import csv_text

CONFIG, MANIFEST, SPLIT, LOG = "config.toml", "manifest.json", "split.csv", "log.jsonl"
LAST, RESULT, SCORES, FEATURES = "last.pt", "result.json", "scores.csv", "features.npy"
REPORT_DATA, REPORT, COMPARISON = "report.npz", "report.html", "compare.json"
SCORED = "scores.npz"
OURS = frozenset(
    {CONFIG, MANIFEST, SPLIT, LOG, LAST, RESULT, SCORES, FEATURES, REPORT_DATA, REPORT, COMPARISON}
    | {WEIGHTS, DESCRIPTION, SCORED}
)
CHIPS = "chips"
"""Folder in which `onesided map` prepares its data before the run begins."""
CACHE = "cache"
"""Folder for decoded images that are too many for memory; it may be deleted."""
HELD_OUT = "held_out_hash"
"""Entry of the manifest."""


def make_folder(folder: Path, *, instead: str) -> None:
    """Make a folder and those above it; where that fails, say what to do instead."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OnesidedError(
            f"Cannot make the folder {folder} ({error.strerror}). {instead}"
        ) from None


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Let one command at a time into a folder: a second one would undo the first's work.

    A job holds it for all that it does inside, and of several processes of one command the first
    holds it for all of them.
    """
    if rank() > 0:
        yield
        return
    make_folder(folder, instead="Choose another with -o.")
    taken = FolderTaken(
        f"Another command is at work in {folder}. Wait for it, or choose another folder."
    )
    with alone(folder, taken):
        yield


@dataclass(frozen=True)
class RunFolder:
    """One folder, one run.

    Attributes:
        path: The folder.
        identity: Fingerprint of configuration, split and what is trained on; another run's
            folder is refused.
        held_out: Hash of the samples that the run is judged by; other ones are refused, but not
            where the manifest is of a version that kept no such hash.
    """

    path: Path
    identity: str
    held_out: str | None = None

    def claim(self, *, overwrite: bool) -> None:
        """Make the folder ours: new, the same run again, or refused with the reason."""
        if not overwrite and self._has(MANIFEST):
            self._check_owner()
        make_folder(self.path, instead="Choose another with -o.")
        self._remove(half_written(self.path, OURS))
        if overwrite:
            self._remove(self.path / name for name in OURS)

    def finished(self) -> dict[str, Any] | None:
        """Return the result of a finished run, or None."""
        return read_result(self.path) if self._has(RESULT) else None

    def describe(
        self, config: RunConfig, roles: Sequence[tuple[str, str]], facts: Mapping[str, Any]
    ) -> None:
        """Write what the run is: manifest, configuration and split.

        The manifest comes first, because it says whose folder this is: killed after the
        first file, the same command must still find its own run here, and not a stranger's.
        """
        whose = {"identity": self.identity, HELD_OUT: self.held_out}
        write_json(self.path / MANIFEST, {**whose, **facts, **environment()})
        write_text(self.path / CONFIG, dump_toml(config.to_settings()))
        rows = ((name, role) for role, name in roles)
        write_text(self.path / SPLIT, csv_text(("item", "role"), rows))

    def _has(self, name: str) -> bool:
        return (self.path / name).exists()

    def _check_owner(self) -> None:
        manifest = read_json(self.path / MANIFEST)
        if manifest.get("identity") != self.identity:
            raise OnesidedError(
                f"{self.path} holds another run (other settings, data or seed). Choose another "
                "folder, repeat that run's settings to resume it, or replace it with --overwrite."
            )
        if self.held_out and manifest.get(HELD_OUT) not in (None, self.held_out):
            raise OnesidedError(
                f"{self.path} holds this run, but the samples it is judged by (held-out, test or "
                "known negatives) changed since, under the same names. Restore them to resume it, "
                "choose another folder, or replace it with --overwrite."
            )

    def _remove(self, paths: Iterable[Path]) -> None:
        for path in paths:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise OnesidedError(
                    f"Cannot remove {path} ({error.strerror}). Remove it by hand, or choose "
                    "another folder with -o."
                ) from None


@dataclass(frozen=True)
class Place:
    """A folder that a run may be written to; `check_place` says so.

    Attributes:
        path: The folder; it need not be there yet.
        overwrite: Whether another run in it is replaced.
    """

    path: Path
    overwrite: bool = False


def check_place(path: Path, *, overwrite: bool = False) -> Place:
    """Refuse a file, or a folder with files of other people; a run, ours or not, is let pass."""
    place = Place(path, overwrite)
    if path.exists() and not path.is_dir():
        raise OnesidedError(f"{path} is a file, and -o takes a folder. Choose another name.")
    if overwrite or not path.exists() or (path / MANIFEST).exists():
        return place
    if set(path.iterdir()) - {*half_written(path, OURS), path / LOCK, path / CHIPS, path / CACHE}:
        raise OnesidedError(
            f"{path} is not empty and holds no run. Choose a new folder, or add a run to it with "
            "--overwrite (files that are not ours stay)."
        )
    return place


def read_result(folder: Path) -> dict[str, Any]:
    """Return `result.json` of a finished run."""
    content = read_json(folder / RESULT)
    check_result(content, folder / RESULT)
    return content


def environment() -> dict[str, Any]:
    """Return where the run happened: versions, machine, command."""
    names = ("onesided", "torch", "numpy", "scipy", "scikit-learn", "pillow")
    versions = {}
    for name in names:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "source"
    return {
        "versions": {"python": platform.python_version(), **versions},
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "command": [printable(word) for word in sys.argv],
    }
