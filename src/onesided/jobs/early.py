"""Mistakes that can be told at once. Imports no torch, which takes seconds.

A command calls these before it imports its job, which checks the same again, for Python.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onesided.core.config import read_toml
from onesided.core.errors import DataNotFound
from onesided.data.read.files import ACCEPTED_ENDINGS, check_folder
from onesided.data.sources import source_named
from onesided.jobs.settings import PathLike, data_name, minutes_of, names_in
from onesided.methods import check_name
from onesided.metrics.threshold_rules import parse_rule
from onesided.run.preset_files import preset_path
from onesided.storage.atomic import read_json
from onesided.storage.names import shown_path
from onesided.storage.table import check_table
from onesided.storage.together import settle

MANIFEST = "manifest.json"


def check_training(
    *,
    method: str | None = None,
    compare: str | None = None,
    preset: str | None = None,
    budget: str | None = None,
    threshold: str | None = None,
    config: Path | None = None,
) -> None:
    """Refuse names and values that no training takes."""
    minutes_of(budget)
    if config is not None:
        read_toml(config)
    if preset is not None:
        preset_path(preset)
    named = [method] if method else []
    for name in (*named, *(names_in(compare, "--compare") if compare else [])):
        check_name(name)
    if threshold is not None:
        parse_rule(threshold)


def check_data(
    data: str | None,
    table: PathLike | None,
    folders: Mapping[str, Path | None],
    others: Mapping[str, Any],
    *,
    output: Path | None = None,
) -> None:
    """Refuse data that cannot be: two kinds of it, an unknown name, a folder that is not there."""
    data_name(data, table, folders, others)
    if output is not None and output.exists() and not (output / MANIFEST).exists():
        return  # the job refuses most such places, and says so before it speaks of the data
    if data is not None:
        source_named(data)
    if table is not None:
        check_table(Path(table))
    for folder in folders.values():
        if folder is not None and not folder.is_file():  # a file may hold vectors
            check_folder(folder, accepted=ACCEPTED_ENDINGS, noun="image")


def check_run(run: Path) -> None:
    """Refuse a run folder that is not there."""
    if not run.is_dir() and not (run.suffix.lower() == ".onnx" and run.is_file()):
        raise DataNotFound(
            f"There is no run folder {run}. Give the folder that onesided fit wrote with -o."
        )


def check_finished(run: Path) -> None:
    """Refuse the folder of a run that has no result; complete a change that was cut off first."""
    settle(run)
    read_json(run / "result.json")


def check_items(items: Path) -> None:
    """Refuse a folder or table of items that is not there."""
    if not items.exists():
        raise DataNotFound(f"There is no folder {shown_path(items)}. Check its name.")
