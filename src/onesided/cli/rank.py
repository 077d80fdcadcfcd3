"""`onesided rank`: a trained model over a folder or table, best first."""

from pathlib import Path
from typing import Annotated

import typer

from onesided.cli.options import Json, Quiet


def rank(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    items: Annotated[Path, typer.Argument(help="Folder of images to rank.")],
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
    """Score every image of a folder with a trained model; write path, score, rank, decision.

    Example: onesided rank runs/quake buildings/ -o ranked.csv --top 500
    """
    from onesided.cli.show import console, counting, note, print_json
    from onesided.engine.checkpoint import replacing
    from onesided.run.folder import csv_text
    from onesided.run.rank import rank_folder

    with counting("ranking", quiet=quiet or as_json) as counter:
        ranking = rank_folder(run, items, tolerate=tolerate, progress=counter)
    rows = ranking.rows[:top]
    with replacing(output) as file:
        file.write(csv_text(("path", "score", "rank", "decision"), rows).encode())
    for name, reason in ranking.skipped:
        note(f"Skipped {name}: it {reason}.", quiet=quiet or as_json)
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
        console.print(
            f"{len(ranking.rows)} items ranked, {called} called positive, "
            f"{len(ranking.skipped)} skipped: {output}",
            markup=False,
            highlight=False,
        )
