"""Tables and figures of a publication by command: the jobs of `onesided bench`."""

import multiprocessing
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from onesided.bench.cells import Cell, planned
from onesided.bench.claims import claims_page, judge
from onesided.bench.facts import describe_all
from onesided.bench.origin import origin
from onesided.bench.page import suite_page
from onesided.bench.progress import COSTS, Estimate, Kind
from onesided.bench.results import FAILED, Record, all_records, read_records
from onesided.bench.scale import read_scale, scale_names
from onesided.bench.suite import MEASURED, read_suite, suite_names, tables_named
from onesided.bench.tables import Shown, shown
from onesided.bench.timing import kinds, rate
from onesided.bench.work import Work
from onesided.core.config import nearest
from onesided.core.errors import ConfigError, Interrupted
from onesided.core.monitor import Monitor
from onesided.engine.interrupt import stop_requests
from onesided.run.ray_engine import engine_named
from onesided.storage.atomic import read_json, write_json, write_text

DEFAULT_SUITE = "ncpu"
"""The suite of a page where none is named."""


@dataclass(frozen=True)
class BenchRun:
    """What `bench run` did.

    Attributes:
        records: A record of every cell, in order.
    """

    records: tuple[Record, ...]

    def count(self, status: str) -> int:
        """Return how many cells ended like this."""
        return sum(record["status"] == status for record in self.records)

    @property
    def failed(self) -> bool:
        """Whether a cell failed; one whose data is missing did not."""
        return self.count(FAILED) > 0


def run_tables(
    targets: Sequence[str],
    *,
    scale: str | Sequence[str],
    output: Path,
    root: Path | None = None,
    seeds: int = 3,
    data: Sequence[str] = (),
    only: Sequence[str] = (),
    jobs: int = 1,
    engine: str = "local",
    address: str | None = None,
    cpus: int = 1,
    monitor: Monitor | None = None,
) -> BenchRun:
    """Run the cells of tables that are not finished; the same call resumes.

    Args:
        targets: `ncpu/table2`, or `ncpu` for all of its tables and figures.
        scale: How much to spend, see `onesided.bench.scales`; several are run in this order.
        output: Folder of runs and result files; several processes may share it.
        root: Folder of the data sets.
        seeds: How many repeats, with the seeds 0, 1, ...
        data: Names of data sets; empty means all.
        only: Names of rows, which are run in this order; empty means all.
        jobs: Processes that share the cells.
        engine: local, or ray: each run is a task of Ray, on this or another machine.
        address: Of a Ray cluster that runs already; None starts Ray on this machine.
        cpus: Cores that Ray keeps for a run, which has as many threads.
        monitor: Receives notices and progress.
    """
    by = engine_named(engine, workers=jobs, address=address)
    scales = [scale] if isinstance(scale, str) else scale
    cells = [cell for one in scales for cell in chosen_cells(targets, one, seeds, data, only)]
    monitor = monitor or Monitor()
    output.mkdir(parents=True, exist_ok=True)
    _describe_data(targets, output, root)
    if by is not None:
        return BenchRun(tuple(Work(cells, output, root, monitor).do_by(by, cpus)))
    if jobs > 1:
        _share(cells, output, root, jobs)
        monitor = Monitor()  # all is done: the rest only reads
    return BenchRun(tuple(Work(cells, output, root, monitor).do()))


def _describe_data(targets: Sequence[str], output: Path, root: Path | None) -> None:
    """Describe the data sets of tables and figures that show them."""
    for suite, table in (one for target in targets for one in tables_named(target)):
        plan = read_suite(suite).tables[table]
        if plan.kind in ("data", "examples"):
            describe_all(plan.data, root, output)


def chosen_cells(
    targets: Sequence[str], scale: str, seeds: int, data: Sequence[str], only: Sequence[str]
) -> list[Cell]:
    """Return the cells asked for; a name that no table has is refused."""
    tables = [table for target in targets for table in tables_named(target)]
    everything = planned(tables, scale, range(seeds))
    rows, sets = {cell.row for cell in everything}, {cell.data for cell in everything}
    for flag, asked, known in (("--only", only, rows), ("--data", data, sets)):
        for name in asked:
            if name not in known:
                raise ConfigError(
                    f"{flag} {name}: none of these tables has it at the scale '{scale}'."
                    f"{nearest(name, known)}"
                )
    return planned(tables, scale, range(seeds), data=data, only=only)


def _share(cells: Sequence[Cell], output: Path, root: Path | None, jobs: int) -> None:
    """Let several processes work on the cells; wait for all of them."""
    threads = max(1, (os.cpu_count() or 1) // jobs)
    spawn = multiprocessing.get_context("spawn")
    workers = [
        spawn.Process(target=_work, args=(cells, output, root, threads)) for _ in range(jobs)
    ]
    for worker in workers:
        worker.start()
    with stop_requests() as request:
        while any(worker.is_alive() for worker in workers):
            for worker in workers:
                worker.join(timeout=0.2)
            if stopped := request.agreed():
                for worker in workers:
                    worker.terminate()  # it ends its step, saves, and leaves
                for worker in workers:
                    worker.join()
                raise Interrupted("Stopped; every run is saved. The same command resumes.", stopped)


def _work(cells: Sequence[Cell], output: Path, root: Path | None, threads: int) -> None:
    torch.set_num_threads(threads)
    try:
        Work(cells, output, root).do()
    except Interrupted:
        return  # the parent says so


def show_table(target: str, output: Path) -> list[tuple[str, list[Shown]]]:
    """Return the tables of a target as they are shown: title, then one per data set and scale."""
    found = []
    for suite, table in tables_named(target):
        plan = read_suite(suite).tables[table]
        if plan.kind in MEASURED:
            found.append((plan.title, shown(suite, table, read_records(output, suite, table))))
    return found


def write_page(output: Path, *, suite: str = DEFAULT_SUITE, claims: Path | None = None) -> Path:
    """Write the page of a suite into the folder of its results, and the page of its claims.

    Args:
        output: Folder of result files.
        suite: Name of the suite.
        claims: Markdown file of the claims, written if it is given.
    """
    page = output / f"{suite}.html"
    output.mkdir(parents=True, exist_ok=True)
    write_text(page, suite_page(output, suite))
    if claims is not None:
        write_text(claims, claims_text(suite, output))
    return page


def claims_text(suite: str, output: Path) -> str:
    """Return the claims of a suite as Markdown, judged from result files."""
    plan, records = read_suite(suite), all_records(output, suite)
    named = "" if suite == DEFAULT_SUITE else f" --suite {suite}"
    command = f"onesided bench page{named} --claims"
    return claims_page(plan.title, plan.source, judge(plan, records), command)


@dataclass(frozen=True)
class Listed:
    """A table or figure, how many cells it has, and what they cost at each scale.

    Attributes:
        cells: By scale: how many cells one seed has.
        hours: By scale: hours of one seed; None where nothing is known of any cell.
        unknown: By scale: cells of unknown length.
    """

    suite: str
    name: str
    title: str
    kind: str
    cells: Mapping[str, int]
    hours: Mapping[str, float | None]
    unknown: Mapping[str, int]


def list_tables(
    target: str | None = None, output: Path | None = None, *, scale: str | None = None
) -> list[Listed]:
    """Return the tables and figures of a suite, or of all, with what one seed costs here.

    At every scale, or at the one that is named.
    """
    estimate, found = Estimate(output), []
    if scale is not None:
        read_scale(scale)  # a name that is none is refused
    scales = scale_names() if scale is None else [scale]
    for one in [target] if target else suite_names():
        for suite, table in tables_named(one):
            plan = read_suite(suite).tables[table]
            by_scale = {scale: planned([(suite, table)], scale, [0]) for scale in scales}
            totals = {scale: estimate.total(cells) for scale, cells in by_scale.items()}
            found.append(
                Listed(
                    suite=suite,
                    name=table,
                    title=plan.title,
                    kind=plan.kind,
                    cells={scale: len(cells) for scale, cells in by_scale.items()},
                    hours={
                        scale: hours if unknown < len(by_scale[scale]) else None
                        for scale, (hours, unknown) in totals.items()
                    },
                    unknown={scale: unknown for scale, (_, unknown) in totals.items()},
                )
            )
    return found


def measure_costs(
    target: str,
    scale: str,
    output: Path,
    *,
    data: Sequence[str] = (),
    monitor: Monitor | None = None,
) -> Path:
    """Time a few steps of every kind of run at a scale; write them to `costs.json`."""
    monitor = monitor or Monitor()
    output.mkdir(parents=True, exist_ok=True)
    path = output / COSTS
    known = read_json(path) if path.exists() else {"rates": []}
    rates = {_kind(one): one for one in known["rates"]}
    chosen = kinds(planned(tables_named(target), scale, [0], data=data))
    with monitor.phase(f"timing {scale}") as phase:
        for number, cell in enumerate(chosen.values(), start=1):
            if (found := rate(cell)) is not None:
                rates[_kind(found)] = found
            phase(number, len(chosen))
    write_json(path, {**origin(), "rates": [rates[key] for key in sorted(rates)]})
    return path


def _kind(rate: Mapping[str, Any]) -> Kind:
    return Kind(rate["scale"], rate["data"], rate["method"], rate["alignment"])
