"""Runs cells: one after another, resumed where they were stopped, shared between processes.

A cell is a run folder with a lock. A process takes the first cell whose folder nobody works in;
several processes with one output folder so share the work, and take over what a killed one left.
A cell whose run folder is elsewhere, but whose record is here, is not run again: result files go
from machine to machine, run folders stay.
"""

import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from onesided.bench.cells import Cell
from onesided.bench.cost import measure_inference
from onesided.bench.origin import Origin, code_in_memory, origin_of_run
from onesided.bench.progress import Estimate
from onesided.bench.results import (
    FAILED,
    FINISHED,
    NO_DATA,
    Record,
    beside,
    finished,
    put,
    recorded,
    unfinished,
)
from onesided.bench.scale import read_scale
from onesided.bench.suite import read_suite
from onesided.core.errors import DataNotFound, FolderTaken, Interrupted, OnesidedError
from onesided.core.monitor import Monitor
from onesided.engine.fit import Watcher
from onesided.run.config import RunConfig
from onesided.run.execute import run
from onesided.run.folder import RESULT, STORE, check_place, working_in
from onesided.run.gallery import map_rows
from onesided.run.load import LoadedData, load_data
from onesided.run.problem import Problem, build_problem
from onesided.run.ray_engine import RayEngine
from onesided.storage.atomic import read_json, write_json

WAIT = 5.0
"""Seconds before a cell that another process works on is looked at again."""
SAME_ORIGIN = ("commit", "dirty", "cpu", "cores", "threads")


@dataclass
class Work:
    """The cells of one command, and what is needed to run them."""

    cells: Sequence[Cell]
    output: Path
    root: Path | None = None
    monitor: Monitor = field(default_factory=Monitor)
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        """Check every setting now, not after an hour of training; group cells by their run."""
        code_in_memory()
        self.shared: dict[Path, list[Cell]] = {}
        for cell in self.cells:
            cell.config(self.root)
            self.shared.setdefault(cell.folder(self.output), []).append(cell)
        self._loaded: tuple[str, LoadedData] | None = None

    def do(self) -> list[Record]:
        """Run all cells that are not finished; return the records of all, in order."""
        estimate = Estimate(self.output)
        waiting = list(self.shared)
        found: dict[Path, list[Record]] = {}
        while waiting:
            taken = []
            for folder in waiting:
                try:
                    found[folder] = self._one(folder)
                except FolderTaken:
                    taken.append(folder)
                    continue
                self._tell(found, folder, estimate)
            if taken and len(taken) == len(waiting):
                self.sleep(WAIT)  # others work on all that is left
            waiting = taken
        return [record for folder in self.shared for record in found[folder]]

    def do_by(self, engine: RayEngine, cpus: int) -> list[Record]:
        """Do the same by tasks of Ray: each run has its own folder, and so many cores."""
        estimate, found = Estimate(self.output), dict[Path, list[Record]]()
        root = self.root and self.root.resolve()
        tasks = [
            RunTask(tuple(cells), self.output.resolve(), root, cpus)
            for cells in self.shared.values()
        ]
        for task, records in engine.results(run_cells, tasks, cpus=cpus):
            folder = task.cells[0].folder(self.output)
            found[folder] = records
            self._tell(found, folder, estimate)
        return [record for folder in self.shared for record in found[folder]]

    def _one(self, folder: Path) -> list[Record]:
        """Do one run, or read it if it is finished; return a record for each cell it serves."""
        cells = self.shared[folder]
        if not folder.exists() and (known := recorded(self.output, cells)):
            put(self.output, cells, known)
            return known
        failure: tuple[str, str] | None = None
        if not _complete(folder, cells):
            failure = self._attempt(folder, cells)
        records = [
            unfinished(cell, *failure) if failure else finished(self.output, cell) for cell in cells
        ]
        kept = [record for record in records if record is not None]
        put(self.output, cells, kept)
        return kept

    def _attempt(self, folder: Path, cells: Sequence[Cell]) -> tuple[str, str] | None:
        """Run a cell; return status and reason where that fails."""
        try:
            self._run(folder, cells)
        except (Interrupted, FolderTaken):
            raise  # not a failed run: it can resume, or another process is running it
        except DataNotFound as error:
            return NO_DATA, str(error)
        except OnesidedError as error:
            return FAILED, str(error)
        except Exception as error:
            # A bug in one method must not stop the others. It is printed here and named in the
            # table, and the exit code is not 0.
            traceback.print_exc(file=sys.stderr)
            return FAILED, f"A bug in the program, {type(error).__name__}: {error}"
        return None

    def _run(self, folder: Path, cells: Sequence[Cell]) -> None:
        cell = cells[0]
        config = cell.config(self.root)
        problem, place = build_problem(config, self._data(config)), check_place(folder)
        with working_in(folder), self.monitor.phase(cell.words) as phase:
            add_origin(folder)
            watcher = Watcher(step=phase.step, epoch=phase.epoch, embed=phase.embed)
            scale = read_scale(cell.scale)
            run(problem, place, watcher, features=self.output / STORE, log_truth=scale.log_truth)
            _add_facts(folder, problem, cells)

    def _data(self, config: RunConfig) -> LoadedData:
        """Return the data of a run; that of the last run is kept."""
        key = config.data.model_dump_json()
        if self._loaded is None or self._loaded[0] != key:
            self._loaded = None  # free the memory first
            self._loaded = (key, load_data(config.data))
        return self._loaded[1]

    def _tell(self, found: dict[Path, list[Record]], folder: Path, estimate: "Estimate") -> None:
        record = found[folder][0]
        if record["status"] == FINISHED:
            estimate.learn(self.shared[folder][0], record)
        left = [cells[0] for path, cells in self.shared.items() if path not in found]
        self.monitor.note(
            f"{len(found)}/{len(self.shared)} {in_words(record)}{estimate.words(left)}"
        )


@dataclass(frozen=True)
class RunTask:
    """The cells of one run, which a worker of Ray does."""

    cells: tuple[Cell, ...]
    output: Path
    root: Path | None
    threads: int


def run_cells(task: RunTask) -> list[Record]:
    """Do one run, or resume it; wait where another process is at work in its folder."""
    torch.set_num_threads(task.threads)
    return Work(task.cells, task.output, task.root).do()


def in_words(record: Record) -> str:
    """Return a record in one line."""
    who = f"{record['data']}, {record['row']}, seed {record['seed']}"
    if record["status"] != FINISHED:
        return f"{who}: {record['status']}. {record['failure']}"
    oa, f1 = record["figures"]["oa"], record["figures"]["f1"]
    shown = "no test set" if oa is None else f"OA {oa:.1%}, F1 {f1:.1%}"
    return f"{who}: {shown}, {record['seconds']:.0f} s."


def add_origin(folder: Path) -> None:
    """Record that the run in this folder starts, or resumes, here and now."""
    path = beside(folder)
    known = read_json(path) if path.exists() else {"origins": []}
    origins: list[Origin] = known["origins"]
    now = origin_of_run()
    if origins and all(origins[-1][key] == now[key] for key in SAME_ORIGIN):
        return
    write_json(path, {**known, "origins": [*origins, now]})


def _complete(folder: Path, cells: Sequence[Cell]) -> bool:
    """Return whether a run is finished, and everything about it is known that is shown."""
    if not ((folder / RESULT).exists() and beside(folder).exists()):
        return False
    known = read_json(beside(folder))
    return "map_truth" in known and (not _wants_cost(cells) or "cost" in known)


def _wants_cost(cells: Sequence[Cell]) -> bool:
    return any(read_suite(cell.suite).tables[cell.table].kind == "cost" for cell in cells)


def _add_facts(folder: Path, problem: Problem, cells: Sequence[Cell]) -> None:
    """Write beside the run what its folder lacks: true classes of the map, cost of inference."""
    train = problem.split.train
    truth = train.truth[map_rows(len(train))]
    facts: dict[str, object] = {"map_truth": [int(label) for label in truth]}
    if _wants_cost(cells):
        facts["cost"] = measure_inference(problem)
    write_json(beside(folder), {**read_json(beside(folder)), **facts})
