"""What the collected file says about one run: its settings, its result, where it was made."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.origin import Origin, origin_of_run
from onesided.run.config import RunConfig
from onesided.storage.atomic import read_json, write_json

Record = dict[str, Any]
"""One run in the collected file."""
Key = tuple[str, str, int]
"""Data set, label, seed: what makes a record unique."""

SAME_ORIGIN = ("commit", "dirty", "cpu", "cores", "threads")


def describe(label: str, config: RunConfig) -> Record:
    """Return the record of a run that has not been done."""
    defaults = type(config.method)().model_dump(mode="json")
    settings = config.method.model_dump(mode="json")
    needs = config.method.needs
    return {
        "label": label,
        "data": config.data.name,
        "method": config.method_name,
        "settings": {key: value for key, value in settings.items() if value != defaults[key]},
        "needs": [name for name, needed in vars(needs).items() if needed],
        "prior": config.prior if needs.prior else None,
        "seed": config.seed,
        "fingerprint": config.fingerprint(),
        "status": "missing",
        "failure": None,
        "seconds": None,
        "origins": [],
        "result": None,
    }


def key_of(record: Record) -> Key:
    """Return what makes the record unique in its file."""
    return record["data"], record["label"], record["seed"]


def folder_name(record: Record) -> str:
    """Return the run's folder; other settings are another folder, not a refusal."""
    words = re.sub(r"[^a-z0-9]+", "-", f"{record['data']} {record['label']}".lower())
    return f"{words.strip('-')}-{record['seed']}-{record['fingerprint'][:8]}"


def condensed(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result without lists of files and without the sentences the report prints."""
    kept = {key: value for key, value in result.items() if key not in ("skipped", "notices")}
    if result["pu"] is not None:
        kept["pu"] = {
            "degenerate": result["pu"]["degenerate"],
            "figures": {
                name: {part: figure[part] for part in ("value", "low", "high")}
                for name, figure in result["pu"]["figures"].items()
            },
        }
    return kept


def origins_of(folder: Path) -> list[Origin]:
    """Return where the run in this folder was made; several places if it was interrupted."""
    path = _origins_file(folder)
    return list(read_json(path)["origins"]) if path.exists() else []


def add_origin(folder: Path) -> None:
    """Note that the run in this folder is begun, or goes on, here and now.

    Beside the folder and not in it: a folder with a strange file would be refused.
    """
    known, now = origins_of(folder), origin_of_run()
    if known and all(known[-1][key] == now[key] for key in SAME_ORIGIN):
        return
    path = _origins_file(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path.parent / path.name, {"origins": [*known, now]})


def _origins_file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.origin.json")
