"""`onesided data`: which data sets there are, how to get them, whether they are whole."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onesided.cli.options import Json, Quiet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onesided.data.download import FileStatus

data = typer.Typer(
    help="List, get and check data sets.", no_args_is_help=True, rich_markup_mode=None
)

Name = Annotated[str, typer.Argument(help="Data set, see onesided data list.")]
Root = Annotated[Path, typer.Option("--root", help="Folder for the files.")]


@data.command("list")
def list_sets(as_json: Json = False) -> None:
    """List the data sets that have a name.

    Example: onesided data list
    """
    from rich.table import Table

    from onesided.cli.show import console, print_json
    from onesided.data.sources import SOURCES

    rows = [
        {
            "name": name,
            "title": entry.title,
            "summary": entry.summary,
            "licence": entry.licence,
            "positives": entry.positives,
            "unlabelled": entry.unlabelled,
            "prior": entry.prior,
            "embedded": not entry.archives,
        }
        for name, entry in SOURCES.items()
        if entry.listed
    ]
    if as_json:
        print_json(rows)
        return
    table = Table()
    for column in ("name", "P", "U", "prior", "what it is", "licence"):
        table.add_column(column)
    for row in rows:
        prior = "unknown" if row["prior"] is None else f"{row['prior']:g}"
        table.add_row(
            str(row["name"]),
            str(row["positives"]),
            str(row["unlabelled"]),
            prior,
            str(row["summary"]),
            str(row["licence"]),
        )
    console.print(table)


@data.command("get")
def get(name: Name, root: Root, as_json: Json = False, quiet: Quiet = False) -> None:
    """Download a data set from its official address, checked and continued where it broke off.

    Example: onesided data get cifar10 --root DATA
    """
    from onesided.cli.show import counting
    from onesided.data.download import fetch

    with counting(f"getting {name}", quiet=quiet or as_json) as counter:
        statuses = fetch(name, root, counter)
    _show(statuses, as_json)


@data.command("check")
def check(name: Name, root: Root, as_json: Json = False) -> None:
    """Check that the files of a data set are there and whole.

    Example: onesided data check cifar10 --root DATA
    """
    from onesided.data.download import check as check_files

    _show(check_files(name, root), as_json)


def _show(statuses: "Sequence[FileStatus]", as_json: bool) -> None:
    """Print the state of every file; exit with 2 where one is not good."""
    from onesided.cli.show import console, print_json

    bad = [status for status in statuses if status.state != "good"]
    if as_json:
        print_json([{"path": str(status.path), "state": status.state} for status in statuses])
    else:
        for status in statuses:
            console.print(f"{status.state}: {status.path}", markup=False, highlight=False)
        if not statuses:
            console.print("Embedded: there is nothing to get or check.")
    if bad:
        raise typer.Exit(2)
