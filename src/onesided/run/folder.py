"""The run folder: its files, the run that owns it, and the check of its `result.json`."""

import os
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onesided.core.config import dump_toml
from onesided.core.errors import OnesidedError
from onesided.core.threads import MOST_THREADS
from onesided.engine.files import DESCRIPTION, REFERENCE, WEIGHTS
from onesided.metrics.result_schema import fault_in
from onesided.storage.atomic import half_written, read_json, write_json, write_text
from onesided.storage.lock import LOCK
from onesided.storage.lock import working_in as lock_folder
from onesided.storage.names import printable
from onesided.storage.own_file import AGAIN, CHECKSUMS, check_all, open_own
from onesided.storage.table import csv_text
from onesided.storage.together import pending, recover

if TYPE_CHECKING:  # it imports torch, which an exported model does without
    from onesided.run.config import RunConfig

CONFIG, MANIFEST, SPLIT, LOG = "config.toml", "manifest.json", "split.csv", "log.jsonl"
LAST, RESULT, SCORES = "last.pt", "result.json", "scores.csv"
OLD_FEATURES = "features.npy"  # of earlier versions; overwriting a run removes it
REPORT_DATA, REPORT, COMPARISON = "report.npz", "report.html", "compare.json"
SCORED = "scores.npz"
MAP = "map.json"
"""What `onesided map` was asked for, so that the next round can ask for it again."""
OURS = frozenset(
    {CONFIG, MANIFEST, SPLIT, LOG, LAST, RESULT, SCORES, REPORT_DATA, REPORT, COMPARISON}
    | {WEIGHTS, DESCRIPTION, REFERENCE, SCORED, OLD_FEATURES, CHECKSUMS, MAP}
)
CARDS = ("README.md", "DATA.md")
"""What people read beside the files: the model card, and notes on the data."""
REPAIRED = frozenset({REPORT, COMPARISON, LOG, *CARDS})
"""Files that may differ from their checksums: pages are made again, a log keeps its whole rows,
and people write into cards."""
WRITTEN = "Written by onesided. Remove this line, and no command will change the file again."
"""Stands in a card; one without it is a person's."""
APPLIED = "answers.csv"
"""Answers that a run learns from, which `onesided review --apply` writes before the run begins."""
REGION = "region"
"""Folder of the pieces of a region and their scores."""
CHIPS = "chips"
"""Folder in which `onesided map` prepares its data before the run begins."""
SEARCH = "search"
"""Folder of a search among methods: the scores of finished folds."""
CACHE = "cache"
"""Folder for decoded images that are too many for memory, and for features; it may be deleted."""
STORE = "features"
"""Folder in it for the features of frozen backbones."""
HELD_OUT = "held_out_hash"
THREADS, THREADS_BEFORE = "threads", "threads_before"
"""Entries of the manifest."""
DESCRIBED = (CONFIG, MANIFEST, SPLIT, LOG)
"""Files of a finished run that its training wrote; `checksums.txt` lists them with the others."""


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
    """Lock the folder: two commands at once would overwrite each other's files.

    A job holds the lock for all that it does inside. Of several processes of one command only
    the first locks.
    """
    if not _is_first_process():
        yield
        return
    make_folder(folder, instead="Choose another with -o.")
    with lock_folder(folder):
        yield


def _is_first_process() -> bool:
    """Return whether this is the only process of a command, or the first of several."""
    if "torch" not in sys.modules:
        return True  # processes find each other by torch alone
    from onesided.core.dist import rank

    return rank() == 0


@dataclass(frozen=True)
class RunFolder:
    """One folder, one run.

    The folder is refused to another run, and to the same run with other samples to evaluate
    it, unless the manifest is of a version that kept no hash of these.
    """

    path: Path
    identity: str  # of settings, split and training samples
    held_out: str | None = None  # hash of the samples that evaluate the run

    def claim(self, *, overwrite: bool) -> None:
        """Make the folder, or check that it holds this run; raise where it holds another."""
        if not overwrite and (self.path / MANIFEST).exists():
            self._check_owner()
        make_folder(self.path, instead="Choose another with -o.")
        recover(self.path)
        self._remove(half_written(self.path, OURS))
        self._remove((self.path / SEARCH).rglob(".*.part"))
        if not (self.path / RESULT).exists():
            # Somebody removed the result, to go on training: what is listed will change.
            self._remove([self.path / CHECKSUMS])
        if overwrite:
            # The result first: a folder that has one is taken for a finished run. The manifest
            # last: a folder without one is taken for no run at all.
            order = (RESULT, *sorted(OURS - {RESULT, MANIFEST}), MANIFEST)
            self._remove(self.path / name for name in order)
            self._remove(self.path / name for name in own_cards(self.path))
            shutil.rmtree(self.path / SEARCH, ignore_errors=True)

    def finished(self) -> dict[str, Any] | None:
        """Return the result of a finished run, or None; raise where a file of it is damaged.

        Whoever repeats the command relies on the model and its scores, not on the result alone.
        """
        if not (self.path / RESULT).exists():
            return None
        result = read_result(self.path)
        check_all(self.path, but=REPAIRED)
        return result

    def describe(
        self, config: "RunConfig", roles: Sequence[tuple[str, str]], facts: Mapping[str, Any]
    ) -> None:
        """Write manifest, configuration and split.

        The manifest comes first, because it holds the identity: killed after the first file,
        the same command must still find its own run here.
        """
        identity = {"identity": self.identity, HELD_OUT: self.held_out}
        write_json(self.path / MANIFEST, {**identity, **facts, **environment()})
        write_text(self.path / CONFIG, dump_toml(config.to_settings()))
        rows = ((name, role) for role, name in roles)
        write_text(self.path / SPLIT, csv_text(("item", "role"), rows))

    def threads(self) -> int | None:
        """Return how many threads the run has so far, or None where it has not begun."""
        if not (self.path / MANIFEST).exists():
            return None
        threads = read_json(self.path / MANIFEST).get(THREADS)
        if threads is None or (type(threads) is int and 1 <= threads <= MOST_THREADS):
            return threads
        raise OnesidedError(
            f"{self.path / MANIFEST} holds {threads!r} as the number of threads; expected one "
            f"from 1 to {MOST_THREADS}, so it was changed or damaged. {AGAIN}"
        )

    def change_threads(self, threads: int) -> None:
        """Record that the run continues with another number of threads."""
        manifest = read_json(self.path / MANIFEST)
        earlier = manifest.get(THREADS_BEFORE)
        before = [*(earlier if isinstance(earlier, list) else []), manifest.get(THREADS)]
        changed = {**manifest, THREADS: threads, THREADS_BEFORE: before}
        write_json(self.path / MANIFEST, changed)

    def _check_owner(self) -> None:
        manifest = read_json(self.path / MANIFEST)
        if manifest.get("identity") != self.identity:
            raise OnesidedError(
                f"{self.path} holds another run (other settings, data or seed). Choose another "
                "folder, repeat that run's settings to resume it, or replace it with --overwrite."
            )
        if self.held_out and manifest.get(HELD_OUT) not in (None, self.held_out):
            raise OnesidedError(
                f"{self.path} holds this run, but the samples that evaluate it (held-out, test or "
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
    """A folder that a run may be written to, as `check_place` returns it.

    It need not exist yet. With `overwrite`, another run in it is replaced.
    """

    path: Path
    overwrite: bool = False


def check_place(path: Path, *, overwrite: bool = False) -> Place:
    """Return where a run may be written; refuse a file, or a folder of files that are no run."""
    place = Place(path, overwrite)
    if path.exists() and not path.is_dir():
        raise OnesidedError(f"{path} is a file, and -o takes a folder. Choose another name.")
    if overwrite or not path.exists() or (path / MANIFEST).exists():
        return place
    begun = {*half_written(path, OURS), *pending(path)}
    prepared = {path / name for name in (LOCK, CHIPS, CACHE, REGION, APPLIED)}
    if set(path.iterdir()) - {*begun, *prepared}:
        raise OnesidedError(
            f"{path} is not empty and holds no run. Choose a new folder, or add a run to it with "
            "--overwrite (files that are not ours stay)."
        )
    return place


def own_cards(folder: Path) -> list[str]:
    """Return which cards a run may write here: those that are missing, or that a run wrote."""
    return [name for name in CARDS if _is_own_card(folder / name)]


def _is_own_card(path: Path) -> bool:
    try:
        with open_own(path) as file:
            return WRITTEN.encode() in file.read(1024)
    except FileNotFoundError:
        return True
    except OSError:
        return False  # a folder or a pipe of this name is no card of ours


def read_result(folder: Path) -> dict[str, Any]:
    """Return `result.json` of a finished run; raise where `onesided fit` did not write it so."""
    path = folder / RESULT
    content = read_json(path)
    if problem := fault_in(content):
        raise OnesidedError(f"{path} {problem}, so it was changed or damaged. {AGAIN}")
    return content


def environment() -> dict[str, Any]:
    """Return versions, machine and command, for the manifest."""
    versions = {}
    for name in ("onesided", "torch", "numpy", "scipy", "scikit-learn", "pillow"):
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
