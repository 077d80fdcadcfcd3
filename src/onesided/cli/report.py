"""`onesided report`: the page of a finished run, made again."""

from pathlib import Path
from typing import Annotated

import typer

from onesided.cli.options import Json, Quiet


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished run.")],
    labels: Annotated[
        Path | None,
        typer.Option("--labels", help="CSV of true classes, to be shown beside the estimates."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write report.html of a finished run.

    Example: onesided report runs/quake
    """
    from onesided.cli.show import print_json, say
    from onesided.jobs.early import check_run

    check_run(run)
    from onesided.jobs.report import report as write_report

    path = write_report(run, labels=labels)
    if as_json:
        print_json({"report": str(path)})
    elif not quiet:
        say(f"Report: {path}")
