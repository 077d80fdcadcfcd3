"""How long the cells that are left take, from the seconds of those that are finished."""

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

from onesided.bench.cells import Cell
from onesided.bench.results import FINISHED, Record, read_records
from onesided.bench.suite import read_suite, suite_names
from onesided.run.config import SetConfig

Rate = tuple[str, str, str]
"""Scale, data set and method."""


class Estimate:
    """Seconds for one training sample in one epoch, by scale, data set and method."""

    def __init__(self, output: Path) -> None:
        self.rates: dict[Rate, list[float]] = {}
        for record in _recorded(output):
            self.learn(record)

    def learn(self, record: Record) -> None:
        """Count a finished cell."""
        work = record["epochs"] * (record["n_positive"] + record["n_unlabelled"])
        rate = (record["scale"], record["data"], record["method"])
        self.rates.setdefault(rate, []).append(record["seconds"] / work)

    def hours(self, cell: Cell) -> float | None:
        """Return the hours of a cell: by its method, else by all methods; None where unknown."""
        rates = self.rates.get((cell.scale, cell.data, cell.what.method)) or [
            one
            for (scale, data, _), many in self.rates.items()
            for one in many
            if (scale, data) == (cell.scale, cell.data)
        ]
        return statistics.mean(rates) * samples(cell) / 3600 if rates else None

    def words(self, left: Sequence[Cell]) -> str:
        """Return a sentence on the time left, where it is known."""
        hours = [self.hours(cell) for cell in left]
        known = [one for one in hours if one is not None]
        if not known:
            return ""
        more = f", and {len(hours) - len(known)} cells more" if len(known) < len(hours) else ""
        return f" About {sum(known):.1f} hours left{more}."


def samples(cell: Cell) -> int:
    """Return how many training samples a run sees in all its epochs."""
    config = cell.config()
    assert isinstance(config.data, SetConfig), "a suite names published data sets only"
    return config.train.epochs * (config.data.positives + config.data.unlabelled)


def _recorded(output: Path) -> Iterable[Record]:
    for suite in suite_names():
        for table in read_suite(suite).tables:
            for record in read_records(output, suite, table):
                if record["status"] == FINISHED:
                    yield record
