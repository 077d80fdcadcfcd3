"""`onesided bench`: tables and figures of a publication, measured and shown beside its numbers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onesided.cli.options import Address, Engine, Json, Names, Quiet, Root

if TYPE_CHECKING:
    from rich.table import Table

    from onesided.bench.tables import Shown
    from onesided.jobs.bench import Listed

bench = typer.Typer(
    help="Measure every table and figure of a publication.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Targets = Annotated[
    list[str], typer.Argument(metavar="TABLE...", help="ncpu/table2, or ncpu for all of it.")
]
Data = Annotated[
    str | None, typer.Option("--data", help="Data sets, as cifar10,digits; all if left out.")
]
Output = Annotated[Path, typer.Option("-o", "--output", help="Folder of runs and results.")]


@bench.command("list")
def list_tables(
    suite: Annotated[
        str | None, typer.Argument(metavar="[SUITE]", help="Name of a suite; all if left out.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Results whose seconds count.")
    ] = None,
    measure: Annotated[
        str | None, typer.Option("--measure", help="Time some steps at this scale, into -o.")
    ] = None,
    scale: Annotated[
        str | None, typer.Option("--scale", help="Cells and hours at this scale alone.")
    ] = None,
    data: Data = None,
    as_json: Json = False,
    quiet: Names = False,
) -> None:
    """List tables and figures, their cells, and the hours that one seed costs at each scale.

    Example: onesided bench list ncpu
    """
    from dataclasses import asdict

    from onesided.cli.show import print_json, print_table, say
    from onesided.cli.terminal import Terminal
    from onesided.core.errors import ConfigError
    from onesided.jobs.bench import list_tables, measure_costs

    if measure is not None:
        if output is None:
            raise ConfigError("--measure writes costs.json: say where with -o.")
        watched = Terminal(quiet=quiet or as_json)
        measure_costs(suite or "ncpu", measure, output, data=_names(data), monitor=watched)
    found = list_tables(suite, output, scale=scale)
    if as_json:
        print_json([asdict(one) for one in found])
    elif quiet:
        say("\n".join(f"{one.suite}/{one.name}" for one in found))
    else:
        print_table(_what_there_is(found, scale))
        if scale is None:
            timed = _timed(found)
            for first in range(0, len(timed), SIDE_BY_SIDE):
                say("")
                print_table(_hours_by_scale(found, timed[first : first + SIDE_BY_SIDE]))
        say(HOURS)
        if scale is None:
            unknown = [name for name in _scales(found) if name not in _timed(found)]
            if unknown:
                say(f"Nothing was timed yet at {', '.join(unknown)}.")
            say("Cells and hours at one scale, a table in a line: --scale NAME.")


HOURS = "Hours of one seed on one core. +: and cells of unknown length. ?: nothing is known."


WORDS = ("what it is", "row")
"""Columns that may take several lines, so that no number is broken."""


def _what_there_is(found: "list[Listed]", scale: str | None) -> "Table":
    """Return a line for each table and figure, with its cells and hours at one scale."""
    table = plain_table("name", *(("cells", "hours") if scale else ()), "what it is")
    for one in found:
        numbers = (str(one.cells[scale]), _hours(one, scale)) if scale else ()
        table.add_row(f"{one.suite}/{one.name}", *numbers, one.title)
    return table


SIDE_BY_SIDE = 6
"""Scales that fit into 80 columns."""


def _hours_by_scale(found: "list[Listed]", scales: list[str]) -> "Table":
    """Return the hours of each table at some scales."""
    table = plain_table("hours", *(name.replace("-", "-\n") for name in scales), gap=1)
    for one in found:
        if any(one.cells.values()):
            table.add_row(f"{one.suite}/{one.name}", *(_hours(one, name) for name in scales))
    return table


def _scales(found: "list[Listed]") -> list[str]:
    return list(found[0].cells) if found else []


def _timed(found: "list[Listed]") -> list[str]:
    """Return the scales at which the hours of some table are known."""
    return [name for name in _scales(found) if any(one.hours[name] is not None for one in found)]


def plain_table(first: str, *others: str, gap: int = 2) -> "Table":
    """Return a table without lines between cells: words first, numbers to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, padding=(0, gap - 1, 0, 0), pad_edge=False, show_edge=False)
    for name in (first, *others):
        left = name in (first, *WORDS)
        table.add_column(name, justify="left" if left else "right", no_wrap=name not in WORDS)
    return table


def _hours(one: "Listed", scale: str) -> str:
    hours = one.hours[scale]
    if not one.cells[scale]:
        return "-"
    if hours is None:
        return "?"
    return (f"{hours:.1f}" if hours < 100 else f"{hours:.0f}") + ("+" if one.unknown[scale] else "")


@bench.command("run")
def run(
    targets: Targets,
    output: Output,
    scale: Annotated[
        str,
        typer.Option(
            "--scale",
            help="paper, features or features-all (with -early: in 100 or 30 epochs), "
            "features-views, small (small-400, small-100 and small-30: in so many epochs) or "
            "smoke; several as small-30,small-100 in this order.",
        ),
    ],
    root: Root = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Repeats, seeds 0, 1, ...")] = 3,
    data: Data = None,
    only: Annotated[
        str | None, typer.Option("--only", help="Rows in this order, as ncpu,ce; all if left out.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Processes that share the work.")] = 1,
    engine: Engine = "local",
    address: Address = None,
    cpus: Annotated[
        int, typer.Option("--cpus", min=1, help="Cores that Ray keeps for each run.")
    ] = 1,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run what is not finished of some tables. The same command resumes.

    Example: onesided bench run ncpu/table2 --scale features -o results --root DATA --seeds 3
    """
    from onesided.cli.show import print_json, say
    from onesided.cli.terminal import Terminal
    from onesided.jobs.bench import run_tables

    found = run_tables(
        targets,
        scale=_names(scale) or (scale,),
        output=output,
        root=root,
        seeds=seeds,
        data=_names(data),
        only=_names(only),
        jobs=jobs,
        engine=engine,
        address=address,
        cpus=cpus,
        monitor=Terminal(quiet=quiet or as_json),
    )
    if as_json:
        print_json({"cells": list(found.records)})
    else:
        counts = ", ".join(f"{found.count(one)} {one}" for one in ("finished", "failed", "not run"))
        say(f"{len(found.records)} cells: {counts}. Results: {output}")
    if found.failed:
        raise typer.Exit(1)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip()) if text else ()


@bench.command("show")
def show(
    target: Annotated[str, typer.Argument(metavar="TABLE", help="ncpu/table2, or ncpu.")],
    output: Output,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Print published and measured figures side by side: mean and deviation over seeds.

    Example: onesided bench show ncpu/table2 -o results
    """
    from dataclasses import asdict

    from onesided.cli.show import print_json, print_table, say
    from onesided.jobs.bench import show_table

    found = show_table(target, output)
    if as_json:
        print_json(
            [{"title": title, "parts": [asdict(one) for one in many]} for title, many in found]
        )
        return
    for title, many in found:
        if not quiet:
            say(title)
        for one in many:
            if not (one.was_run or one.has_published):
                say(f"\n{one.data}: {one.words}, and nothing is published.")
                continue
            say(f"\n{one.data}: {one.words}" + ("" if one.was_run else ". Published:"))
            print_table(_figures(one))
            for remark, rows in _remarks(one).items():
                say(f"{'; '.join(rows)}: {remark}")


def _figures(shown: "Shown") -> "Table":
    """Return the figures of each row: those of the paper, and under them those measured here."""
    from onesided.bench.tables import NOTHING, TITLES

    both = shown.has_published and shown.was_run
    titles = [TITLES[one] for one in shown.figures] + (["seeds"] if shown.was_run else [])
    table = plain_table("row", *(("",) if both else ()), *titles, gap=1 if both else 2)
    for row in shown.rows:
        lines = [("paper", row.published, "")] if shown.has_published else []
        lines += [("here", row.measured, str(row.seeds))] if shown.was_run else []
        lines = [line for line in lines if {*line[1].values()} != {NOTHING}] or lines[-1:]
        for number, (of, values, seeds) in enumerate(lines):
            cells = [values[one] for one in shown.figures] + ([seeds] if shown.was_run else [])
            table.add_row("" if number else row.title, *((of,) if both else ()), *cells)
    return table


def _remarks(shown: "Shown") -> dict[str, list[str]]:
    """Return what is to be said of rows, with the rows that it is said of."""
    said: dict[str, list[str]] = {}
    for row in shown.rows:
        for remark in (row.status if shown.was_run else "", row.note):
            if remark:
                said.setdefault(remark, []).append(row.title)
    return said


@bench.command("page")
def page(
    output: Output,
    suite: Annotated[str, typer.Option("--suite", help="Name of the suite.")] = "ncpu",
    claims: Annotated[
        Path | None, typer.Option("--claims", help="Markdown file of the claims to write.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write one HTML page: all tables and figures, where they were measured, what was not run.

    Example: onesided bench page -o results
    """
    from onesided.cli.show import print_json, say
    from onesided.jobs.bench import write_page

    path = write_page(output, suite=suite, claims=claims)
    if as_json:
        print_json({"page": str(path)})
    elif not quiet:
        say(f"Page: {path}")
