"""`onesided review`: look at items, answer, train again."""

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onesided.cli.options import Json, Quiet
from onesided.core.errors import ConfigError

if TYPE_CHECKING:
    from onesided.core.monitor import Monitor
    from onesided.jobs.review import ReviewSession


def review(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished run.")],
    apply: Annotated[
        bool, typer.Option("--apply", help="Train the next round with the answers.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="New run folder for --apply; of a map, the new file."),
    ] = None,
    audit: Annotated[
        bool, typer.Option("--audit", help="Answer what onesided audit draw drew.")
    ] = False,
    blind: Annotated[
        bool | None, typer.Option("--blind/--show-scores", help="Hide scores [in an audit].")
    ] = None,
    reviewer: Annotated[
        str | None, typer.Option("--reviewer", help="Your name [that of your login].")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            "--export",
            help="Write answers: .csv, .jsonl, .json (Label Studio), .coco.json, .geojson, .gpkg.",
        ),
    ] = None,
    imported: Annotated[
        Path | None, typer.Option("--import", help="Add the answers of such a file.")
    ] = None,
    map_file: Annotated[
        Path | None, typer.Option("--map", help="Map whose buildings get the answers.")
    ] = None,
    status: Annotated[bool, typer.Option("--status", help="Tell what was answered.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the random order.")] = 0,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port on this machine [a free one].")
    ] = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Look at items of a run in a page on this machine, answer, and train again.

    Every answer is on disk before the next item appears. Without --apply, --export, --import or
    --status the page is served until Ctrl-C.

    Example: onesided review runs/quake --reviewer Anna
    """
    from onesided.jobs.early import check_finished

    check_finished(run)
    if output is not None and not apply:
        raise ConfigError("-o is the folder of the next round; it goes with --apply.")
    if map_file is not None and export is None:
        raise ConfigError("--map names the buildings for --export.")
    serves = not (apply or export or imported or status)
    from onesided.review.server import check_libraries

    if serves:
        check_libraries()
    from onesided.cli.terminal import Terminal
    from onesided.jobs.review import ReviewSession

    monitor = Terminal(quiet=quiet or as_json)
    session = ReviewSession(
        run,
        reviewer=reviewer or _login(),
        audit=audit,
        blind=blind,
        seed=seed,
        monitor=monitor,
    )
    told: dict[str, Any] = {}
    if imported is not None:
        told["imported"] = session.import_file(imported)
    if export is not None:
        told["exported"] = str(session.export(export, map_file=map_file))
    if apply:
        done = session.apply(output)
        told |= {"run": str(done.folder), "report": str(done.report), "changes": done.changes}
        if done.files:
            told["files"] = [str(path) for path in done.files]
    if serves:
        _serve(session, port, monitor, as_json=as_json)
    if not (serves and as_json):  # the address was the one object
        _tell(session, told, as_json=as_json)


def _serve(session: "ReviewSession", port: int, monitor: "Monitor", *, as_json: bool) -> None:
    from onesided.cli.show import print_json, say
    from onesided.core.monitor import Monitor
    from onesided.review.server import Page, serve

    def train(told: Monitor) -> str:
        done = session.apply(monitor=told)
        map_words = f" The map is {done.files[0]}." if done.files else ""
        return (
            f"Round {done.changes['round']} is trained.{map_words} Next: onesided review "
            f"{done.folder}"
        )

    def announce(address: str) -> None:
        if as_json:
            print_json({"address": address})
        else:
            say(f"Review at {address}")
            monitor.note("Only this machine can open it. Ctrl-C stops; answers are kept.")

    serve(Page(session, train), port=port, announce=announce)


def _tell(session: "ReviewSession", told: dict[str, Any], *, as_json: bool) -> None:
    from onesided.cli.show import print_json, say
    from onesided.jobs.review import summary_lines

    if as_json:
        done = session.progress()
        counts = {"answered": done.answered, "items": done.items, **done.counts}
        print_json({**told, **counts, "contested": done.contested})
        return
    if "imported" in told:
        say(f"{told['imported']} new answers imported.")
    if "exported" in told:
        say(f"Wrote {told['exported']}")
    for line in summary_lines(session):
        say(line)
    if "run" in told:
        say(f"Next round: {told['run']}")
        say(f"Report: {told['report']}")
    for file in told.get("files", ()):  # of a map
        say(f"Wrote {file}")


def _login() -> str:
    """Return the name under which a person is logged in, or a word for nobody."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no such user, as in some containers
        return "reviewer"
