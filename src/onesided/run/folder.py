"""The run folder: which files there are, who owns it, and that nothing in it is half written."""

import csv
import io
import json
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from onesided.core.config import dump_toml
from onesided.core.errors import DataNotFound, OnesidedError
from onesided.data.files import printable
from onesided.engine.checkpoint import replacing
from onesided.engine.model_file import DESCRIPTION, WEIGHTS
from onesided.run.config import RunConfig

CONFIG, MANIFEST, SPLIT, LOG = "config.toml", "manifest.json", "split.csv", "log.jsonl"
LAST, RESULT, SCORES = "last.pt", "result.json", "scores.csv"
REPORT_DATA, REPORT, COMPARISON = "report.npz", "report.html", "compare.json"
OURS = frozenset(
    {CONFIG, MANIFEST, SPLIT, LOG, LAST, RESULT, SCORES, REPORT_DATA, REPORT, COMPARISON}
    | {WEIGHTS, DESCRIPTION}
)


@dataclass(frozen=True)
class RunFolder:
    """One folder, one run.

    Attributes:
        path: The folder.
        identity: Fingerprint of configuration and split; another run's folder is refused.
    """

    path: Path
    identity: str

    def claim(self, *, overwrite: bool) -> None:
        """Make the folder ours: new, the same run again, or refused with the reason."""
        if self.path.exists() and not self.path.is_dir():
            raise OnesidedError(f"{self.path} is a file; -o takes a folder.")
        owner = read_json(self.path / MANIFEST).get("identity") if self._has(MANIFEST) else None
        if owner == self.identity and not overwrite:
            return
        if overwrite:
            for name in OURS:
                (self.path / name).unlink(missing_ok=True)
        elif owner is not None:
            raise OnesidedError(
                f"{self.path} holds another run (other settings, data or seed). Choose another "
                "folder, repeat that run's settings to resume it, or replace it with --overwrite."
            )
        elif self.path.exists() and any(self.path.iterdir()):
            raise OnesidedError(
                f"{self.path} is not empty and holds no run. Choose a new folder, or add a run "
                "to it with --overwrite (files that are not ours stay)."
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OnesidedError(f"Cannot make the folder {self.path}: {error.strerror}.") from None

    def finished(self) -> dict[str, Any] | None:
        """Return the result of a finished run, or None."""
        return read_json(self.path / RESULT) if self._has(RESULT) else None

    def describe(
        self, config: RunConfig, roles: Sequence[tuple[str, str]], facts: Mapping[str, Any]
    ) -> None:
        """Write what the run is: configuration, manifest and split. The manifest comes last."""
        self.write_text(CONFIG, dump_toml(config.to_settings()))
        self.write_table(SPLIT, ("item", "role"), ((name, role) for role, name in roles))
        self.write_json(MANIFEST, {"identity": self.identity, **facts, **environment()})

    def write_text(self, name: str, text: str) -> None:
        """Write a text file, complete or not at all."""
        with replacing(self.path / name) as file:
            file.write(text.encode())

    def write_json(self, name: str, content: object) -> None:
        """Write a JSON file; numbers that are not finite are our own mistake and refused."""
        self.write_text(name, json.dumps(content, indent=2, allow_nan=False) + "\n")

    def write_table(
        self, name: str, columns: Sequence[str], rows: Iterable[Sequence[object]]
    ) -> None:
        """Write a CSV file whose first column is a file name, made safe for readers."""
        self.write_text(name, csv_text(columns, rows))

    def _has(self, name: str) -> bool:
        return (self.path / name).exists()


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return CSV with names escaped: no broken encoding, and no formula a spreadsheet runs.

    A cell that starts with = + - @ would be executed by a spreadsheet; a leading
    apostrophe makes it text.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    for first, *rest in rows:
        writer.writerow((spreadsheet_safe(printable(str(first))), *rest))
    return buffer.getvalue()


def spreadsheet_safe(text: str) -> str:
    """Return the text with an apostrophe in front where a spreadsheet would run it."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def read_json(path: Path) -> dict[str, Any]:
    """Return a JSON file of a run folder."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataNotFound(
            f"There is no {path.name} in {path.parent}. Give the folder of a run that onesided fit "
            "finished, or finish it with the same fit command."
        ) from None
    except (OSError, ValueError) as error:
        raise OnesidedError(f"{path} cannot be read ({error}).") from None
    if not isinstance(content, dict):
        raise OnesidedError(f"{path} should hold a table, and does not.")
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
