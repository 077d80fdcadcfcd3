"""`onesided data`: which data sets there are, how to get them, whether they are whole."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onesided.cli.options import Json, Names, Quiet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onesided.data.sources.download import FileStatus, PreparedFiles

data = typer.Typer(
    help="List, get, prepare and check data sets.", no_args_is_help=True, rich_markup_mode=None
)
MOST_SHOWN = 20

Name = Annotated[str, typer.Argument(metavar="NAME", help="Data set, see onesided data list.")]
Root = Annotated[Path, typer.Option("--root", help="Folder for the files.")]


@data.command("list")
def list_sets(as_json: Json = False, quiet: Names = False) -> None:
    """List the data sets that have a name.

    Example: onesided data list
    """
    from onesided.cli.show import print_json, say
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
            "embedded": entry.embedded,
        }
        for name, entry in SOURCES.items()
        if entry.listed
    ]
    if as_json:
        print_json(rows)
        return
    if quiet:
        say("\n".join(str(row["name"]) for row in rows))
        return
    _print_table(rows)


def _print_table(rows: "Sequence[Mapping[str, object]]") -> None:
    from rich.table import Table

    from onesided.cli.show import console

    table = Table()
    for column in ("name", "P", "U", "prior", "what it is", "licence"):
        table.add_column(column)
    for row in rows:
        prior = "unknown" if row["prior"] is None else f"{row['prior']:g}"
        counts = (row["positives"], row["unlabelled"], prior)
        table.add_row(*map(str, (row["name"], *counts, row["summary"], row["licence"])))
    console.print(table)


@data.command("get")
def get(name: Name, root: Root, as_json: Json = False, quiet: Quiet = False) -> None:
    """Download a data set from its official address.

    What arrives is checked; the same command continues where it broke off.

    Example: onesided data get cifar10 --root DATA
    """
    from onesided.cli.progress import counting
    from onesided.data.sources import source_named
    from onesided.data.sources.download import fetch

    if source_named(name).by_hand is not None:
        check(name, root, as_json=as_json, quiet=quiet)
        return
    with counting(f"getting {name}", quiet=quiet or as_json) as counter:
        statuses = fetch(name, root, counter)
    _show(name, root, statuses, as_json=as_json, quiet=quiet)


@data.command("prepare")
def prepare(
    name: Name,
    root: Root,
    accept_licence: Annotated[
        bool, typer.Option("--accept-licence", help="Say that you accept the data set's licence.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Cut the samples out of a data set that you fetched from its publisher.

    After an interruption the same command continues.

    Example: onesided data prepare xbd --root DATA --accept-licence
    """
    from onesided.cli.progress import counting
    from onesided.core.errors import ConfigError
    from onesided.data.sources import source_named

    entry = source_named(name)
    if entry.by_hand is None or entry.by_hand.prepare is None:
        raise ConfigError(f"{name} needs no preparation: it is read as it comes.")
    if not accept_licence:
        raise ConfigError(
            f"{entry.title} has a licence that is for you to accept: {entry.licence} "
            "If you do, repeat the command with --accept-licence."
        )
    with counting(f"preparing {name}", quiet=quiet or as_json) as counter:
        prepared = entry.by_hand.prepare(root, counter)
    _show_prepared(prepared, as_json=as_json, quiet=quiet)


def _show_prepared(prepared: "PreparedFiles", *, as_json: bool, quiet: bool) -> None:
    """Print what became of the files."""
    from onesided.cli.show import note, print_json, say
    from onesided.jobs.words import skipped_lines

    if as_json:
        skipped = [{"file": file, "reason": reason} for file, reason in prepared.skipped]
        counts = {"counts": prepared.counts, "left_out": prepared.left_out}
        print_json({"folder": str(prepared.folder), **counts, "skipped": skipped})
        return
    for line in skipped_lines(prepared.skipped):
        note(line, quiet=quiet)
    lines = {str(prepared.folder): prepared.counts, "Left out": prepared.left_out}
    for title, counted in lines.items():
        if counted and not quiet:
            say(f"{title}: {', '.join(f'{count} {what}' for what, count in counted.items())}.")


@data.command("check")
def check(name: Name, root: Root, as_json: Json = False, quiet: Quiet = False) -> None:
    """Check that the files of a data set are there and whole.

    Example: onesided data check cifar10 --root DATA
    """
    from onesided.data.sources import source_named
    from onesided.data.sources.download import check as check_files

    by_hand = source_named(name).by_hand
    statuses = check_files(name, root) if by_hand is None else by_hand.inspect(root)
    _show(name, root, statuses, as_json=as_json, quiet=quiet)


def _show(
    name: str, root: Path, statuses: "Sequence[FileStatus]", *, as_json: bool, quiet: bool
) -> None:
    """Print the state of every file, or of the bad ones if quiet; fail where there are any."""
    from onesided.cli.show import print_json, say
    from onesided.core.errors import DataNotFound
    from onesided.data.sources import source_named

    bad = [status for status in statuses if status.state != "good"]
    if as_json:
        print_json([{"path": str(status.path), "state": status.state} for status in statuses])
    else:
        for status in bad if quiet or len(statuses) > MOST_SHOWN else statuses:
            sizes = ""
            if status.state == "wrong size":
                sizes = f" ({status.found_size} bytes instead of {status.expected_size})"
            say(f"{status.state}: {status.path}{sizes}")
        if len(statuses) > MOST_SHOWN and not quiet:
            say(f"good: {len(statuses) - len(bad)} of {len(statuses)} files")
        if not statuses and not quiet:
            say(f"{name} is embedded: there is nothing to get or check.")
    if bad:
        by_hand = source_named(name).by_hand
        way = f"Get them with: onesided data get {name} --root {root}"
        raise DataNotFound(
            f"{len(bad)} of {len(statuses)} files of {name} are missing or damaged in {root}. "
            f"{way if by_hand is None else by_hand.way(name, root)}"
        )
