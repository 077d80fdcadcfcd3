"""Entries times seeds: run them one at a time, and collect their result files into one.

`run_grid` does what is missing. The collected file is the only thing tables are made
from (tables.py), and only this module writes it.
"""

import hashlib
import json
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.grid import Grid, Places
from benchmarks.origin import code_in_memory, origin
from benchmarks.records import (
    Key,
    Record,
    add_origin,
    condensed,
    describe,
    folder_name,
    key_of,
    origins_of,
)
from onesided.core.config import Settings
from onesided.core.errors import ConfigError, FolderTaken, Interrupted, OnesidedError
from onesided.run.config import PATHS, RunConfig
from onesided.run.execute import run
from onesided.run.folder import RESULT, check_place, working_in
from onesided.run.load import LoadedData, load_data
from onesided.run.problem import build_problem
from onesided.storage.atomic import read_json, write_json
from onesided.storage.lock import alone


def run_grid(
    grid: Grid,
    places: Places,
    *,
    seeds: Sequence[int],
    only: str | None = None,
    rows: Sequence[str] = (),
    root: Path | None = None,
    say: Callable[[str], None] = print,
) -> list[Record]:
    """Run what is missing, one at a time; return the records of what was asked for.

    Finished runs are found in the work folder, interrupted ones go on where they stopped.
    """
    code_in_memory()
    if only is not None and only not in grid.data_names:
        raise ConfigError(f"--only takes one of {', '.join(grid.data_names)}; got {only!r}.")
    labels = tuple(dict.fromkeys(one.label for one in grid.entries))
    if unknown := [label for label in rows if label not in labels]:
        raise ConfigError(f"--rows takes some of {', '.join(labels)}; got {unknown[0]!r}.")
    chosen = [
        (one.label, one.config(seed, root))
        for one in grid.entries
        for seed in seeds
        if only in (None, one.data_name) and (not rows or one.label in rows)
    ]
    # A wrong setting or a missing file is told at once, not after an hour of training.
    loaded = {
        key: _judged_on(grid.judged_on, data)
        for key, data in _load_all(config for _, config in chosen).items()
    }
    collected = Collected(grid, places.results, seeds)
    records = []
    for number, (label, config) in enumerate(chosen, start=1):
        record = run_one(label, config, loaded[_data_key(config)], places.work)
        collected.put(record)
        records.append(record)
        say(f"{number}/{len(chosen)} {_in_one_line(record)}")
    return records


def run_one(label: str, config: RunConfig, loaded: LoadedData, work: Path) -> Record:
    """Do one run, or find it done; a failure is a record too, with its sentence."""
    record = describe(label, config)
    folder = work / folder_name(record)
    if not (folder / RESULT).exists():
        add_origin(folder)
    record["origins"] = origins_of(folder)
    try:
        problem, place = build_problem(config, loaded), check_place(folder)
        with working_in(folder):
            result = run(problem, place, features=_features_file(config, work)).content
    except (Interrupted, FolderTaken):
        raise  # no failure of the run: it can go on, or another process is at it
    except OnesidedError as error:
        return {**record, "status": "failed", "failure": str(error)}
    except Exception as error:
        # A mistake of ours in one method must not cost the night of all others: it is
        # shown here, told in the table, and the exit code is not 0.
        traceback.print_exc(file=sys.stderr)
        sentence = f"A mistake in the program, {type(error).__name__}: {error}"
        return {**record, "status": "failed", "failure": sentence}
    return {
        **record,
        "status": "finished",
        "seconds": result["seconds"],
        "result": condensed(result),
    }


class Collected:
    """The collected file of a grid: complete after every run, never half written."""

    def __init__(self, grid: Grid, folder: Path, seeds: Sequence[int]) -> None:
        self.grid = grid
        self.path = folder / f"{grid.name}.json"
        self.seeds = seeds
        self.records = self._planned()

    def put(self, record: Record) -> None:
        """Take the record in; the file changes only if that says something new."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with alone(self.path.with_suffix(".lock")):
            # Anew from the file: another process may have put rows of its own there meanwhile.
            self.records = self._planned()
            if self.path.exists() and self.records[key_of(record)] == record:
                return
            self.records[key_of(record)] = record
            write_json(self.path.parent / self.path.name, self._content())

    def _planned(self) -> dict[Key, Record]:
        """Return a record of every run there should be, as the file has it where it does."""
        old = {key_of(record): record for record in self._still_asked_for()}
        every_seed = sorted({*self.seeds, *(seed for _, _, seed in old)})
        entries = self.grid.entries
        planned = [describe(one.label, one.config(s)) for one in entries for s in every_seed]
        # In the order of the grid: a run in parts and a run at once give the same file.
        return {key_of(record): old.get(key_of(record), record) for record in planned}

    def _content(self) -> dict[str, Any]:
        return {
            "name": self.grid.name,
            "title": self.grid.title,
            **origin(),
            "budget": {"words": self.grid.words, "exact": self._exact_budgets()},
            "judged_on": self.grid.judged_on,
            "pairs": [list(pair) for pair in self.grid.pairs],
            "runs": list(self.records.values()),
        }

    def _exact_budgets(self) -> dict[str, Settings]:
        """Return every setting of data, network and training, defaults included."""
        budgets = {}
        for name in self.grid.data_names:
            shared = next(one for one in self.grid.entries if one.data_name == name)
            settings = shared.config(0).to_settings()
            budgets[name] = {
                "data": {key: value for key, value in settings["data"].items() if key not in PATHS},
                "backbone": settings["backbone"],
                "train": settings["train"],
            }
        return budgets

    def _still_asked_for(self) -> Iterator[Record]:
        """Yield earlier records whose settings are those of the grid today."""
        if not self.path.exists():
            return
        entries = {(one.data_name, one.label): one for one in self.grid.entries}
        for record in read_json(self.path)["runs"]:
            one = entries.get((record["data"], record["label"]))
            if one and record["fingerprint"] == one.config(record["seed"]).fingerprint():
                yield record


def _load_all(configs: Iterable[RunConfig]) -> dict[str, LoadedData]:
    loaded: dict[str, LoadedData] = {}
    for config in configs:
        key = _data_key(config)
        if key not in loaded:
            loaded[key] = load_data(config.data)
    return loaded


def _features_file(config: RunConfig, work: Path) -> Path:
    """Return where features are kept: images go through a frozen network once for all runs."""
    return work / f"features-{hashlib.sha256(_data_key(config).encode()).hexdigest()[:8]}.npy"


def _judged_on(part: str, loaded: LoadedData) -> LoadedData:
    """Return the data with that part in the place of the test set, which then nobody sees."""
    if part == "test":
        return loaded
    split = loaded.split
    if split.clean is None:
        raise ConfigError("A study on training samples outside P and U needs data.clean.")
    return replace(loaded, split=replace(split, test=split.clean, clean=None))


def _data_key(config: RunConfig) -> str:
    data = config.data.model_dump(mode="json", exclude={"root"})
    network = config.backbone.identity() if config.backbone.freeze else None
    return json.dumps([data, network], sort_keys=True)


def _in_one_line(record: Record) -> str:
    who = f"{record['data']}, {record['label']}, seed {record['seed']}"
    if record["status"] != "finished":
        return f"{who}: failed. {record['failure']}"
    test = record["result"]["test"]
    shown = "no test set" if test is None else f"OA {test['oa']:.1%}, F1 {test['f1']:.1%}"
    return f"{who}: {shown}, {record['seconds']:.0f} s"
