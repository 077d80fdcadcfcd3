"""How long cells take: from finished ones, else from steps that were timed, see `timing.py`."""

import statistics
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from onesided.bench.cells import Cell
from onesided.bench.results import FINISHED, Record, read_records
from onesided.bench.scale import base_of_scale
from onesided.bench.suite import read_suite, suite_names
from onesided.run.config import SetConfig
from onesided.storage.atomic import read_json

PACKAGED = Path(str(resources.files("onesided") / "bench" / "costs.json"))
"""Seconds that were measured once, with their machine; `onesided bench list --measure` wrote it."""
COSTS = "costs.json"


class Kind(NamedTuple):
    """Runs of one kind take as long per training sample."""

    scale: str
    data: str
    method: str
    alignment: str


class Estimate:
    """Seconds for one training sample, by kind of run."""

    def __init__(self, output: Path | None = None) -> None:
        self.rates: dict[Kind, list[float]] = {}
        self.timed: dict[Kind, float] = {}
        for path in (PACKAGED, output / COSTS if output else None):
            if path is not None and path.exists():
                for one in read_json(path)["rates"]:
                    kind = Kind(one["scale"], one["data"], one["method"], one["alignment"])
                    self.timed[kind] = one["seconds"]
        for cell, record in _recorded(output) if output else ():
            self.learn(cell, record)

    def learn(self, cell: Cell, record: Record) -> None:
        """Count a finished cell."""
        self.rates.setdefault(kind_of(cell), []).append(record["seconds"] / samples(cell))

    def hours(self, cell: Cell) -> float | None:
        """Return the hours of a cell, None where nothing is known of its kind.

        A scale that changes the epochs or the data of another costs as much for each sample.
        """
        kind: Kind | None = kind_of(cell)
        while kind is not None:
            if kind in self.rates:
                return statistics.mean(self.rates[kind]) * samples(cell) / 3600
            if kind in self.timed:
                return self.timed[kind] * samples(cell) / 3600
            base = base_of_scale(kind.scale)
            kind = None if base is None else kind._replace(scale=base)
        return None

    def total(self, cells: Sequence[Cell]) -> tuple[float, int]:
        """Return the hours of cells, and of how many nothing is known."""
        hours = [self.hours(cell) for cell in cells]
        known = [one for one in hours if one is not None]
        return sum(known), len(hours) - len(known)

    def words(self, left: Sequence[Cell]) -> str:
        """Return a sentence on the time left, where it is known."""
        hours, unknown = self.total(left)
        if unknown == len(left):
            return ""
        noun = "cell" if unknown == 1 else "cells"
        more = f", and {unknown} {noun} of unknown length" if unknown else ""
        return f" About {hours:.1f} hours left{more}."


def kind_of(cell: Cell) -> Kind:
    """Return the kind of run that a cell is."""
    alignment = str(getattr(cell.config().method, "alignment", ""))
    return Kind(cell.scale, cell.data, cell.what.method, alignment)


def samples(cell: Cell) -> int:
    """Return how many training samples a run sees in all its epochs."""
    config = cell.config()
    assert isinstance(config.data, SetConfig), "a suite names published data sets only"
    rows = config.data.positives + config.data.unlabelled
    fixed: int = getattr(config.method, "steps_per_epoch", 0)
    return config.train.epochs * (fixed * config.train.batch_size or rows)


def _recorded(output: Path) -> Iterator[tuple[Cell, Record]]:
    for suite in suite_names():
        for table in read_suite(suite).tables:
            known = read_suite(suite).all_rows()
            for one in read_records(output, suite, table):
                if one["status"] == FINISHED and one["row"] in known:
                    place = (one["row"], one["data"], one["scale"], one["seed"])
                    yield Cell(suite, table, *place), one
