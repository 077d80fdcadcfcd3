"""`onesided bench`: tables and figures of a publication, measured and shown beside its numbers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onesided.cli.options import Json, Quiet, Root

if TYPE_CHECKING:
    from rich.table import Table

    from onesided.bench.tables import Shown

bench = typer.Typer(
    help="Measure every table and figure of a publication.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Targets = Annotated[
    list[str], typer.Argument(metavar="TABLE...", help="ncpu/table2, or ncpu for all of it.")
]
Output = Annotated[Path, typer.Option("-o", "--output", help="Folder of runs and results.")]


@bench.command("run")
def run(
    targets: Targets,
    output: Output,
    scale: Annotated[
        str, typer.Option("--scale", help="paper, features, features-all, small or smoke.")
    ],
    root: Root = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Repeats, seeds 0, 1, ...")] = 3,
    data: Annotated[
        str | None, typer.Option("--data", help="Data sets, as cifar10,digits; all if left out.")
    ] = None,
    only: Annotated[
        str | None, typer.Option("--only", help="Rows in this order, as ncpu,ce; all if left out.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Processes that share the work.")] = 1,
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
        scale=scale,
        output=output,
        root=root,
        seeds=seeds,
        data=_names(data),
        only=_names(only),
        jobs=jobs,
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
    said = "measured (published)" if shown.any_published else "measured"
    for column in ("row", *(f"{TITLES[one]} {said}" for one in shown.figures), "seeds", "remark"):
        table.add_column(column)
    for row in shown.rows:
        cells = [row.measured[one] for one in shown.figures]
        if shown.any_published:
            pairs = zip(cells, shown.figures, strict=True)
            cells = [f"{cell} ({row.published[one]})" for cell, one in pairs]
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
