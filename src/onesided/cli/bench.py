"""`onesided bench`: tables and figures of a publication, measured and shown beside its numbers."""

from pathlib import Path
from typing import Annotated

import typer

from onesided.cli.options import Json, Quiet, Root

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
