"""Entries times seeds: run them one at a time, and collect their results in one file.

`run_grid` runs what is missing. Tables (tables.py) are made from the collected file alone, and
only this module writes it.
"""

import json
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.grid import Folders, Grid
from benchmarks.names import NAMES, read_content
from benchmarks.origin import Origin, code_in_memory, origin, origin_of_run
from onesided.core.config import Settings
from onesided.core.errors import ConfigError, FolderTaken, Interrupted, OnesidedError
from onesided.run.config import PATHS, RunConfig
from onesided.run.execute import run
from onesided.run.folder import MANIFEST, RESULT, STORE, THREADS, check_place, working_in
from onesided.run.load import LoadedData, load_data
from onesided.run.problem import build_problem
from onesided.storage.atomic import read_json, write_json
from onesided.storage.lock import alone

Record = dict[str, Any]
"""One run in the collected file."""
Key = tuple[str, str, int]
"""Data set, label and seed; unique in a file."""

SAME_ORIGIN = ("commit", "dirty", "cpu", "cores")


def run_grid(
    grid: Grid,
    folders: Folders,
    *,
    seeds: Sequence[int],
    only: str | None = None,
    rows: Sequence[str] = (),
    root: Path | None = None,
    say: Callable[[str], None] = print,
) -> list[Record]:
    """Run what is missing, one at a time; return the records of all chosen runs.

    Finished runs are read from the work folder, and interrupted ones resume.
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
    # Report a wrong setting or a missing file now, not after an hour of training.
    loaded = {
        key: _evaluated_on(grid.evaluated_on, data)
        for key, data in _load_all(config for _, config in chosen).items()
    }
    collected = Collected(grid, folders.results, seeds)
    records = []
    for number, (label, config) in enumerate(chosen, start=1):
        record = run_one(label, config, loaded[_data_key(config)], folders.work)
        collected.put(record)
        records.append(record)
        say(f"{number}/{len(chosen)} {_in_one_line(record)}")
    return records


def run_one(label: str, config: RunConfig, loaded: LoadedData, work: Path) -> Record:
    """Do one run, or read it if it is finished; a failure becomes a record with its message."""
    record = describe(label, config)
    folder = work / folder_name(record)
    finished = (folder / RESULT).exists()
    if not finished:
        add_origin(folder)
    record["origins"] = origins_of(folder)
    try:
        problem, place = build_problem(config, loaded), check_place(folder)
        with working_in(folder):
            result = run(problem, place, features=work / STORE).content
        if not finished:
            record["origins"] = with_threads_of_run(folder)
    except (Interrupted, FolderTaken):
        raise  # not a failed run: it can resume, or another process is running it
    except OnesidedError as error:
        return {**record, "status": "failed", "failure": str(error)}
    except Exception as error:
        # A bug in one method must not stop the others. It is printed here and named in the
        # table, and the exit code is not 0.
        traceback.print_exc(file=sys.stderr)
        sentence = f"A bug in the program, {type(error).__name__}: {error}"
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
        """Add a record; write the file only if it changed."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with alone(self.path.with_suffix(".lock")):
            # Read the file again: another process may have added rows.
            self.records = self._planned()
            if self.path.exists() and self.records[key_of(record)] == record:
                return
            self.records[key_of(record)] = record
            write_json(self.path, self._content())

    def _planned(self) -> dict[Key, Record]:
        """Return a record of every run of the grid: the file's if there is one."""
        old = {key_of(record): record for record in self._still_valid()}
        every_seed = sorted({*self.seeds, *(seed for _, _, seed in old)})
        entries = self.grid.entries
        planned = [describe(one.label, one.config(s)) for one in entries for s in every_seed]
        # In the order of the grid: runs in parts and runs at once give the same file.
        return {key_of(record): old.get(key_of(record), record) for record in planned}

    def _content(self) -> dict[str, Any]:
        return {
            "name": self.grid.name,
            "title": self.grid.title,
            **origin(),
            "budget": {"words": self.grid.words, "exact": self._exact_budgets()},
            "judged_on": self.grid.evaluated_on,
            "pairs": [list(pair) for pair in self.grid.pairs],
            "runs": list(self.records.values()),
        }

    def _exact_budgets(self) -> dict[str, Settings]:
        """Return every setting of data, backbone and training, defaults included."""
        budgets = {}
        for name in self.grid.data_names:
            own = [one for one in self.grid.entries if one.data_name == name]
            shared = next((one for one in own if one.label not in self.grid.unequal), own[0])
            settings = shared.config(0).to_settings()
            budgets[name] = {
                "data": {key: value for key, value in settings["data"].items() if key not in PATHS},
                "backbone": settings["backbone"],
                "train": settings["train"],
            }
        return budgets

    def _still_valid(self) -> Iterator[Record]:
        """Yield earlier records whose settings are still those of the grid."""
        if not self.path.exists():
            return
        entries = {(one.data_name, one.label): one for one in self.grid.entries}
        for record in read_content(self.path)["runs"]:
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


def _evaluated_on(part: str, loaded: LoadedData) -> LoadedData:
    """Return the data with this part instead of the test set, which is then not used."""
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


def describe(label: str, config: RunConfig) -> Record:
    """Return the record of a run that has not been run."""
    defaults = type(config.method)().model_dump(mode="json")
    settings = config.method.model_dump(mode="json")
    needs = config.method.needs
    return {
        "label": label,
        "data": config.data.name,
        "method": config.method_name,
        "settings": {key: value for key, value in settings.items() if value != defaults[key]},
        "names": NAMES,
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
    """Return the key of a record."""
    return record["data"], record["label"], record["seed"]


def folder_name(record: Record) -> str:
    """Return the name of the run's folder; other settings get another folder."""
    words = re.sub(r"[^a-z0-9]+", "-", f"{record['data']} {record['label']}".lower())
    return f"{words.strip('-')}-{record['seed']}-{record['fingerprint'][:8]}"


def condensed(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result without lists of files and without sentences for the report."""
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
    """Return the origins of the run in this folder; several if it was interrupted."""
    path = _origins_file(folder)
    return list(read_json(path)["origins"]) if path.exists() else []


def add_origin(folder: Path) -> None:
    """Record that the run in this folder starts, or resumes, here and now.

    The file is beside the folder, not in it: a folder with a foreign file would be refused.
    """
    known, now = origins_of(folder), origin_of_run()
    if known and all(known[-1][key] == now[key] for key in SAME_ORIGIN):
        return
    path = _origins_file(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"origins": [*known, now]})


def with_threads_of_run(folder: Path) -> list[Origin]:
    """Return the origins with the number of threads that the run chose, and record it.

    A resumed run keeps its number, so all of its origins have the same.
    """
    threads = read_json(folder / MANIFEST)[THREADS]
    origins = [{**place, "threads": threads} for place in origins_of(folder)]
    write_json(_origins_file(folder), {"origins": origins})
    return origins


def _origins_file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.origin.json")
