"""What a table shows: published and measured figures side by side, from result files alone."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onesided.bench.cells import scale_words
from onesided.bench.results import FINISHED, Record
from onesided.bench.scale import read_scale
from onesided.bench.suite import Figure, Numbers, read_suite

TITLES: Mapping[str, str] = {
    "oa": "OA",
    "f1": "F1",
    "precision": "P",
    "recall": "R",
    "auc": "AUC",
    "epoch_seconds": "s/epoch",
    "inference_ms": "ms/256",
    "gflops": "GFLOPs",
}
NOTHING = "-"
NOT_RUN = "not run"


@dataclass(frozen=True)
class ShownRow:
    """One row on one data set at one scale.

    Attributes:
        name: Its name in the suite.
        published: By figure, as text.
        measured: By figure, as text.
        seeds: How many seeds are finished.
        status: What became of it, where that is not just finished.
        note: What it has that other rows lack.
    """

    name: str
    title: str
    published: Mapping[str, str]
    measured: Mapping[str, str]
    seeds: int
    status: str
    note: str

    @property
    def remark(self) -> str:
        """Status and note, as sentences."""
        if not (self.status and self.note):
            return self.status or self.note
        return f"{self.status.removesuffix('.')}. {self.note}"


@dataclass(frozen=True)
class Shown:
    """A table on one data set at one scale."""

    data: str
    scale: str
    figures: tuple[str, ...]
    rows: tuple[ShownRow, ...]
    words: str  # run at the paper's scale, reduced (how), or not run

    @property
    def was_run(self) -> bool:
        """Whether it has any cell."""
        return self.words != NOT_RUN

    @property
    def has_published(self) -> bool:
        """Whether the publication has any figure on this data set."""
        return any(map(self.is_published, self.figures))

    def is_published(self, figure: str) -> bool:
        """Return whether the publication has this figure of a row on this data set."""
        return any(row.published[figure] != NOTHING for row in self.rows)


def shown(suite: str, table: str, records: Sequence[Record]) -> list[Shown]:
    """Return a table as it is shown: on each data set, at each scale that has a cell there.

    A data set of the publication without any cell is shown too, as not run.
    """
    plan = read_suite(suite).tables[table]
    places = sorted({(one["scale"], one["data"]) for one in records})
    missing = [("paper", data) for data in plan.data if data not in {data for _, data in places}]
    order = {data: number for number, data in enumerate(plan.data)}
    places = sorted([*places, *missing], key=lambda place: (order.get(place[1], 99), place))
    return [_shown(suite, table, scale, data, records) for scale, data in places]


def _shown(suite_name: str, table: str, scale: str, data: str, records: Sequence[Record]) -> Shown:
    suite = read_suite(suite_name)
    here = [one for one in records if (one["scale"], one["data"]) == (scale, data)]
    words = scale_words(suite_name, scale) if here else NOT_RUN
    rows = []
    for name in suite.rows_of(table):
        own = [one for one in here if one["row"] == name]
        rows.append(_row(suite_name, table, data, name, own))
    return Shown(data, scale, suite.tables[table].figures, tuple(rows), words)


def _row(suite_name: str, table: str, data: str, name: str, own: Sequence[Record]) -> ShownRow:
    suite = read_suite(suite_name)
    row = suite.rows_of(table)[name]
    done = [one for one in own if one["status"] == FINISHED]
    figures = suite.tables[table].figures
    costs = suite.published_cost.get(data, {}).get(name, {})
    numbers = suite.published.get(data, {}).get(name, {})
    return ShownRow(
        name=name,
        title=row.title,
        published={one: _published(one, numbers, costs) for one in figures},
        measured={one: measured(done, one) for one in figures},
        seeds=len(done),
        status=_status(own, done),
        note=row.note,
    )


def _status(own: Sequence[Record], done: Sequence[Record]) -> str:
    if not own:
        return NOT_RUN
    problems = [f"{one['status']}: {one['failure']}" for one in own if one["status"] != FINISHED]
    problems += [f"Seed {one['seed']} is degenerate." for one in done if one["degenerate"]]
    problems += [
        f"Seed {one['seed']} was measured with {key} = {value}."
        for one in done
        for key, value in one.get("then", {}).items()
    ]
    return " ".join(problems)


def _published(
    figure: str,
    numbers: Mapping[str, Numbers],
    costs: Mapping[str, float],
) -> str:
    if figure in costs:
        return f"{costs[figure]:g}"
    if figure not in numbers:
        return NOTHING
    mean, *deviation = numbers[figure]
    return f"{mean:.2f} ± {deviation[0]:.1f}" if deviation else f"{mean:.1f}"


def values(done: Sequence[Record], figure: str) -> list[float]:
    """Return a figure of finished cells: per cent, or as it is for costs."""
    if figure in ("epoch_seconds", "inference_ms", "gflops"):
        found = [one.get("cost", {}).get(figure) for one in done]
        return [value for value in found if value is not None]
    shares = [one["figures"][figure] for one in done]
    return [100 * share for share in shares if share is not None]


def measured(done: Sequence[Record], figure: Figure) -> str:
    """Return mean ± standard deviation over seeds; of one seed the number alone."""
    numbers = values(done, figure)
    if not numbers:
        return NOTHING
    if figure in ("epoch_seconds", "inference_ms", "gflops"):
        return f"{statistics.mean(numbers):.3g}"
    mean = f"{statistics.mean(numbers):.2f}"
    return f"{mean} ± {statistics.stdev(numbers):.1f}" if len(numbers) > 1 else mean


def scale_summary(scale: str) -> str:
    """Return what a scale is."""
    return read_scale(scale).summary
