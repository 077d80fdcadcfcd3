"""`onesided rank`: a trained model over a folder or table, best first."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onesided.cli.options import Address, Engine, Json, LargestImage, Quiet, Workers

if TYPE_CHECKING:
    from onesided.run.rank import Ranking


def rank(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Finished run, or .onnx file.")],
    items: Annotated[
        Path,
        typer.Argument(
            metavar="ITEMS",
            help="Folder of images or texts, or a table: paths, or the columns of training.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="CSV or Parquet file to write.")
    ] = Path("ranked.csv"),
    top: Annotated[int | None, typer.Option("--top", min=1, help="Write only the N best.")] = None,
    page: Annotated[
        Path | None, typer.Option("--page", help="HTML file with thumbnails of the best.")
    ] = None,
    tolerate: Annotated[
        float, typer.Option("--tolerate", min=0, max=1, help="Share of unreadable files to accept.")
    ] = 0.05,
    largest_image: LargestImage = None,
    engine: Engine = "local",
    workers: Workers = 2,
    address: Address = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score every item of a folder or table with a trained model. The same command resumes.

    Writes a CSV file with item, score, rank and decision, best first; with a probability too where
    the model has some.

    Example: onesided rank runs/quake buildings/ -o ranked.csv --top 500 --page ranked.html
    """
    from onesided.cli.show import print_json, say
    from onesided.cli.terminal import Terminal
    from onesided.jobs.early import check_items, check_run

    check_run(run)
    check_items(items)
    from onesided.jobs.rank import in_words
    from onesided.jobs.rank import rank as run_job

    ranking = run_job(
        run,
        items,
        output,
        top=top,
        page=page,
        tolerate=tolerate,
        largest_image=largest_image,
        engine=engine,
        workers=workers,
        address=address,
        monitor=Terminal(quiet=quiet or as_json),
    )
    if as_json:
        print_json(_as_json(ranking, output, page))
    else:
        skipped, written = ranking.skipped, ranking.written
        say(f"{in_words(ranking)}, {skipped} skipped, {written} written: {output}")


def _as_json(ranking: "Ranking", output: Path, page: Path | None) -> dict[str, object]:
    return {
        "output": str(output),
        "items": ranking.items,
        "called_positive": ranking.called_positive,
        "written": ranking.written,
        "skipped_count": ranking.skipped,
        "skipped_file": None if ranking.skipped_file is None else str(ranking.skipped_file),
        "skipped": [list(item) for item in ranking.first_skipped],
        "page": None if page is None else str(page),
        "compared": ranking.compared.to_json() if ranking.compared else None,
    }
