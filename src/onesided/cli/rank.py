"""`onesided rank`: a trained model over a folder or table, best first."""

from pathlib import Path
from typing import Annotated

import typer

from onesided.cli.options import Json, Quiet


def rank(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished run.")],
    items: Annotated[Path, typer.Argument(metavar="ITEMS", help="Folder of images to rank.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="CSV file to write.")] = Path(
        "ranked.csv"
    ),
    top: Annotated[int | None, typer.Option("--top", min=1, help="Only the best so many.")] = None,
    tolerate: Annotated[
        float, typer.Option("--tolerate", min=0, max=1, help="Share of unreadable files to accept.")
    ] = 0.05,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score every image of a folder with a trained model.

    Writes a CSV file with path, score, rank and decision, best first.

    Example: onesided rank runs/quake buildings/ -o ranked.csv --top 500
    """
    from onesided.cli.show import count, counting, note, print_json, say, skipped_lines, warn
    from onesided.engine.checkpoint import replacing
    from onesided.run.folder import csv_text
    from onesided.run.rank import alarm_of, rank_folder

    _check_output(output)
    with counting("ranking", quiet=quiet or as_json) as counter:
        ranking = rank_folder(run, items, tolerate=tolerate, progress=counter)
    rows = ranking.rows[:top]
    with replacing(output) as file:
        file.write(csv_text(("path", "score", "rank", "decision"), rows).encode())
    for sentence in skipped_lines(ranking.skipped):
        note(sentence, quiet=quiet or as_json)
    alarm = alarm_of(run)
    if alarm:
        warn(alarm)
    called = sum(row[3] == "positive" for row in ranking.rows)
    if as_json:
        print_json(
            {
                "output": str(output),
                "items": len(ranking.rows),
                "called_positive": called,
                "written": len(rows),
                "skipped": [list(item) for item in ranking.skipped],
            }
        )
    else:
        say(
            f"{count(len(ranking.rows), 'item')} ranked, {called} called positive, "
            f"{len(ranking.skipped)} skipped, {len(rows)} written: {output}"
        )


def _check_output(output: Path) -> None:
    """Refuse a place that cannot be written before an hour is spent on scores."""
    from onesided.core.errors import OnesidedError

    if output.is_dir():
        raise OnesidedError(f"{output} is a folder, and -o takes a file, such as ranked.csv.")
    if not output.parent.is_dir():
        raise OnesidedError(
            f"There is no folder {output.parent} to write {output.name} into. Make it first, or "
            "choose another place."
        )
