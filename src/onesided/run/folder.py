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
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from onesided.core.config import dump_toml
from onesided.core.dist import rank
from onesided.core.errors import FolderTaken, OnesidedError
from onesided.core.threads import MOST_THREADS
from onesided.data.problem.dataset import Scenario
from onesided.engine.model_file import DESCRIPTION, WEIGHTS
from onesided.run.config import RunConfig
from onesided.storage.atomic import half_written, read_json, write_json, write_text
from onesided.storage.lock import LOCK, alone
from onesided.storage.names import printable
from onesided.storage.table import csv_text

CONFIG, MANIFEST, SPLIT, LOG = "config.toml", "manifest.json", "split.csv", "log.jsonl"
LAST, RESULT, SCORES = "last.pt", "result.json", "scores.csv"
OLD_FEATURES = "features.npy"  # of earlier versions; overwriting a run removes it
REPORT_DATA, REPORT, COMPARISON = "report.npz", "report.html", "compare.json"
SCORED = "scores.npz"
OURS = frozenset(
    {CONFIG, MANIFEST, SPLIT, LOG, LAST, RESULT, SCORES, REPORT_DATA, REPORT, COMPARISON}
    | {WEIGHTS, DESCRIPTION, SCORED, OLD_FEATURES}
)
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
AGAIN = "Restore it from a copy, or train again with --overwrite."


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
        self._remove(half_written(self.path, OURS))
        if overwrite:
            self._remove(self.path / name for name in OURS)
            shutil.rmtree(self.path / SEARCH, ignore_errors=True)

    def finished(self) -> dict[str, Any] | None:
        """Return the result of a finished run, or None."""
        return read_result(self.path) if (self.path / RESULT).exists() else None

    def describe(
        self, config: RunConfig, roles: Sequence[tuple[str, str]], facts: Mapping[str, Any]
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
    if set(path.iterdir()) - {*half_written(path, OURS), path / LOCK, path / CHIPS, path / CACHE}:
        raise OnesidedError(
            f"{path} is not empty and holds no run. Choose a new folder, or add a run to it with "
            "--overwrite (files that are not ours stay)."
        )
    return place


# Files of later versions may hold further entries; the known ones must be right.
_STRICT = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)


class _Figure(BaseModel):
    model_config = _STRICT
    assumes: list[str] | str  # ids; a sentence in older files
    value: float | None
    low: float | None
    high: float | None
    bias: Literal["high", "low"] | None = None
    missing: str | None = None


class _KnownNegatives(BaseModel):
    model_config = _STRICT
    count: int
    value: float | None = None
    called_positive: float | None = None  # the value in older files
    low: float
    high: float


class _Estimates(BaseModel):
    model_config = _STRICT
    figures: dict[str, _Figure]
    degenerate: str | None


class _Prior(BaseModel):
    model_config = ConfigDict(**{**_STRICT, "extra": "forbid"})
    value: float
    low: float | None
    high: float | None
    origin: str
    notes: list[str]


class _Tried(BaseModel):
    model_config = _STRICT
    words: str
    proxy_auc: float
    low: float
    high: float
    folds: int
    seconds: float
    tried: int
    won: bool


class _Result(BaseModel):
    model_config = _STRICT
    method: str
    seed: int
    threshold: Annotated[float, Field(ge=0, le=1)]
    test: dict[str, float | None] | None
    pu: _Estimates | None
    warnings: list[str]
    scenario: Scenario
    prior: _Prior | None = None
    known_negatives: _KnownNegatives | None = None
    notices: list[str] = []
    threshold_rule: dict[str, str] | None = None
    leaderboard: list[_Tried] = []  # these three after a search only
    folds: int = 0
    optimism: Annotated[float, Field(ge=0, le=1)] = 0.0


def read_result(folder: Path) -> dict[str, Any]:
    """Return `result.json` of a finished run; raise where `onesided fit` did not write it so."""
    path = folder / RESULT
    content = read_json(path)
    try:
        _Result.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        entry = ".".join(map(str, first["loc"]))
        problem = f"lacks '{entry}'"
        if first["type"] != "missing":
            problem = f"holds a wrong value in '{entry}' ({first['msg']})"
        raise OnesidedError(f"{path} {problem}, so it was changed or damaged. {AGAIN}") from None
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
