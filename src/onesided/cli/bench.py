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
    data: Data = None,
    as_json: Json = False,
    quiet: Names = False,
) -> None:
    """List tables and figures, their cells, and the hours that one seed costs at each scale.

    Example: onesided bench list ncpu
    """
    from dataclasses import asdict

    from onesided.cli.show import console, print_json, say
    from onesided.cli.terminal import Terminal
    from onesided.core.errors import ConfigError
    from onesided.jobs.bench import list_tables, measure_costs

    if measure is not None:
        if output is None:
            raise ConfigError("--measure writes costs.json: say where with -o.")
        watched = Terminal(quiet=quiet or as_json)
        measure_costs(suite or "ncpu", measure, output, data=_names(data), monitor=watched)
    found = list_tables(suite, output)
    if as_json:
        print_json([asdict(one) for one in found])
    elif quiet:
        say("\n".join(f"{one.suite}/{one.name}" for one in found))
    else:
        console.print(_list(found))


def _list(found: "list[Listed]") -> "Table":
    from rich.table import Table

    scales = list(found[0].cells) if found else []
    table = Table(caption="Cells of one seed, and their hours on one core; ? is not known.")
    for column in ("name", "what it is", *scales):
        table.add_column(column)
    for one in found:
        cells = [_cost(one.cells[name], one.hours[name], one.unknown[name]) for name in scales]
        table.add_row(f"{one.suite}/{one.name}", one.title, *cells)
    return table


def _cost(cells: int, hours: float | None, unknown: int) -> str:
    if not cells:
        return "-"
    if hours is None:
        return f"{cells}: ?"
    return f"{cells}: {hours:.1f} h" + (" + ?" if unknown else "")


@bench.command("run")
def run(
    targets: Targets,
    output: Output,
    scale: Annotated[
        str,
        typer.Option(
            "--scale",
            help="paper, features, features-all, small (small-400, small-100 and small-30: in so "
            "many epochs) or smoke; several as small-30,small-100 in this order.",
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

    from onesided.cli.show import console, print_json, say
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
            console.print(_table(one))


def _table(shown: "Shown") -> "Table":
    from rich.table import Table

    from onesided.bench.tables import TITLES

    table = Table(title=f"{shown.data}: {shown.words}", title_justify="left")
    said = {one: " (published)" if shown.is_published(one) else "" for one in shown.figures}
    titles = (f"{TITLES[one]} measured{said[one]}" for one in shown.figures)
    for column in ("row", *titles, "seeds", "remark"):
        table.add_column(column)
    for row in shown.rows:
        cells = [
            row.measured[one] + (f" ({row.published[one]})" if said[one] else "")
            for one in shown.figures
        ]
        table.add_row(row.title, *cells, str(row.seeds), row.status)
    return table


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
