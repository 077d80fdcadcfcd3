"""Result files: one JSON file per table, with a record of every cell that was run.

A record is made from the files of a finished run and holds machine, commit, settings, seconds
and figures: a table can be shown, and a claim judged, without the run folders.
"""

import itertools
import json
import statistics
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from onesided.bench.cells import Cell, scale_words
from onesided.bench.suite import read_suite
from onesided.core.errors import OnesidedError
from onesided.core.former import rules_then
from onesided.run.folder import CONFIG, LOG, REPORT_DATA, RESULT, read_result
from onesided.storage.atomic import read_json, write_json
from onesided.storage.lock import alone
from onesided.storage.own_file import read_arrays

Record = dict[str, Any]
"""One cell in a result file."""
Key = tuple[str, str, str, int]
"""Row, data set, scale and seed; unique in a file."""
FINISHED, FAILED, NO_DATA = "finished", "failed", "not run"
FIGURES = ("oa", "f1", "precision", "recall", "auc")
EXTRA = {"curve": "curve", "tsne": "points", "cost": "cost"}
"""What a record holds beside the figures, by the kind of table that shows it."""


def result_file(output: Path, suite: str, table: str) -> Path:
    """Return the result file of a table."""
    return output / suite / f"{table}.json"


def beside(folder: Path) -> Path:
    """Return the file about a run that its folder does not hold: where it ran, true classes.

    It is beside the folder, not in it: a folder with a foreign file would be refused.
    """
    return folder.with_name(f"{folder.name}.bench.json")


def read_records(output: Path, suite: str, table: str) -> list[Record]:
    """Return the records of a table; none where no cell was run."""
    path = result_file(output, suite, table)
    if not path.exists():
        return []
    records = read_json(path).get("cells")
    if not isinstance(records, list) or not all(map(_is_sound, records)):
        raise OnesidedError(
            f"{path} is damaged: it should hold a list of cells, each with row, data, scale, seed "
            "and status. Remove it; onesided bench run writes it again from the run folders."
        )
    return [_with_rules_then(one) for one in records]


def _with_rules_then(record: Record) -> Record:
    """Return a record that says by which rules it was measured, where they are others today."""
    if "then" in record:
        return record
    return {**record, "then": rules_then(str(record.get("method")), _method_settings(record))}


def _method_settings(record: Record) -> Record:
    settings: Record = record.get("settings", {}).get("method", {})
    return settings


def _is_sound(record: object) -> bool:
    """Return whether a record has what every reader uses."""
    if not isinstance(record, dict):
        return False
    words = all(isinstance(record.get(name), str) for name in ("row", "data", "scale", "status"))
    if not words or type(record.get("seed")) is not int:
        return False
    settings, then = record.get("settings", {}), record.get("then", {})
    if not (isinstance(settings, dict) and isinstance(then, dict)):
        return False
    if not isinstance(settings.get("method", {}), dict):
        return False
    if record["status"] != FINISHED:
        return isinstance(record.get("failure"), str)
    figures, seconds = record.get("figures"), record.get("seconds")
    if not isinstance(figures, dict) or not isinstance(seconds, int | float):
        return False
    return all(isinstance(figures.get(name), float | int | None) for name in FIGURES)


def all_records(output: Path, suite: str) -> dict[Key, Record]:
    """Return the records of all tables of a suite; those of a shared run are the same."""
    tables = read_suite(suite).tables
    return {key_of(one): one for table in tables for one in read_records(output, suite, table)}


def put(output: Path, cells: Iterable[Cell], records: Iterable[Record]) -> None:
    """Add records to the files of their tables; several processes may do so at once."""
    for cell, record in zip(cells, records, strict=True):
        path = result_file(output, cell.suite, cell.table)
        path.parent.mkdir(parents=True, exist_ok=True)
        with alone(path.with_suffix(".lock")):
            # Read again: another process may have added cells.
            known = {key_of(one): one for one in read_records(output, cell.suite, cell.table)}
            if known.get(key_of(record)) == record:
                continue
            known[key_of(record)] = record
            suite = read_suite(cell.suite)
            head = {
                "suite": cell.suite,
                "table": cell.table,
                "title": suite.tables[cell.table].title,
            }
            cells_ = [known[key] for key in sorted(known)]
            write_json(path, {**head, "source": suite.source, "cells": cells_})


def key_of(record: Mapping[str, Any]) -> Key:
    """Return the key of a record."""
    return record["row"], record["data"], record["scale"], record["seed"]


def finished(output: Path, cell: Cell) -> Record | None:
    """Return the record of a cell from its run folder; None where the run is not finished."""
    folder = cell.folder(output)
    if not (folder / RESULT).exists():
        return None
    result = read_result(folder)
    aside = read_json(beside(folder)) if beside(folder).exists() else {}
    test, pu = result["test"] or {}, result["pu"] or {}
    return {
        **_head(cell),
        "status": FINISHED,
        "seconds": result["seconds"],
        "epochs": result["epochs"],
        "n_positive": result["n_positive"],
        "n_unlabelled": result["n_unlabelled"],
        "precision_of_numbers": result["precision"],
        "prior": None if result["prior"] is None else result["prior"]["value"],
        "origins": aside.get("origins", []),
        "then": rules_then(cell.what.method, _settings_of_run(folder).get("method", {})),
        "degenerate": pu.get("degenerate"),
        "figures": {name: test.get(name) for name in FIGURES},
        **_extra(cell, folder, aside),
    }


def _settings_of_run(folder: Path) -> dict[str, Any]:
    """Return all settings that a run wrote down."""
    return tomllib.loads((folder / CONFIG).read_text(encoding="utf-8"))


def recorded(output: Path, cells: Iterable[Cell]) -> list[Record]:
    """Return finished records of cells, with the same settings; none unless all have one.

    A record of another table serves too, if it holds what the cell's own table shows.
    """
    found = []
    for cell in cells:
        suite = read_suite(cell.suite)
        extra = EXTRA.get(suite.tables[cell.table].kind)
        known = next(
            (
                one
                for table in dict.fromkeys((cell.table, *suite.tables))
                for one in read_records(output, cell.suite, table)
                if key_of(one) == (cell.row, cell.data, cell.scale, cell.seed)
                and one["status"] == FINISHED
                and one.get("key") == cell.key()
                and not one["then"]
                and (extra is None or extra in one)
            ),
            None,
        )
        if known is None:
            return []
        others = set(EXTRA.values()) - {extra}
        found.append({name: value for name, value in known.items() if name not in others})
    return found


def unfinished(cell: Cell, status: str, reason: str) -> Record:
    """Return the record of a cell that failed, or that could not begin."""
    return {**_head(cell), "status": status, "failure": reason}


def _head(cell: Cell) -> Record:
    return {
        "row": cell.row,
        "data": cell.data,
        "scale": cell.scale,
        "seed": cell.seed,
        "key": cell.key(),
        "method": cell.what.method,
        "at": scale_words(cell.suite, cell.scale),
        "settings": cell.settings(),
    }


def _extra(cell: Cell, folder: Path, aside: Mapping[str, Any]) -> Record:
    """Return what only this kind of table shows of a run."""
    name = EXTRA.get(read_suite(cell.suite).tables[cell.table].kind)
    match name:
        case "curve":
            return {name: _curve(folder)}
        case "points":
            return {name: _points(folder, aside)}
        case "cost":
            return {name: {"epoch_seconds": _epoch_seconds(folder), **aside.get("cost", {})}}
        case _:
            return {}


def _log(folder: Path) -> list[dict[str, Any]]:
    path = folder / LOG
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def _curve(folder: Path) -> dict[str, list[float]]:
    """Return true accuracy by epoch, counted over all stages."""
    found: dict[str, list[float]] = {"epoch": [], "test_oa": [], "unlabelled_oa": []}
    for epoch, row in enumerate(_log(folder), start=1):
        if measured := row.get("measured"):
            found["epoch"].append(epoch)
            for name in ("test_oa", "unlabelled_oa"):
                found[name].append(round(measured.get(name, float("nan")), 4))
    return found


def _points(folder: Path, aside: Mapping[str, Any]) -> list[tuple[float, float, int]]:
    """Return the map of features with true classes: x, y, class."""
    path = folder / REPORT_DATA
    arrays = read_arrays(path) if path.exists() else {}
    if "embedding" not in arrays:
        return []
    classes = aside.get("map_truth", [])
    rounded = [(round(float(x), 1), round(float(y), 1)) for x, y in arrays["embedding"]]
    return [(x, y, int(label)) for (x, y), label in zip(rounded, classes, strict=False)]


def _epoch_seconds(folder: Path) -> float | None:
    """Return the median duration of an epoch, so that rare work after one does not count."""
    times = [row["seconds"] for row in _log(folder)]
    steps = [after - before for before, after in itertools.pairwise(times)]
    return round(statistics.median(steps), 4) if steps else None
