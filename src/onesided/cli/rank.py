"""`onesided rank`: a trained model over a folder or table, best first."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onesided.cli.options import Json, Quiet

if TYPE_CHECKING:
    from onesided.run.rank import Ranking

ON_PAGE = 64
"""Thumbnails on the page; they keep it below 3 MB."""


def rank(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished run.")],
    items: Annotated[
        Path,
        typer.Argument(
            metavar="ITEMS", help="Folder of images, or CSV with a column path or with numbers."
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="CSV file to write.")] = Path(
        "ranked.csv"
    ),
    top: Annotated[int | None, typer.Option("--top", min=1, help="Only the best so many.")] = None,
    page: Annotated[
        Path | None, typer.Option("--page", help="HTML file with thumbnails of the best.")
    ] = None,
    tolerate: Annotated[
        float, typer.Option("--tolerate", min=0, max=1, help="Share of unreadable files to accept.")
    ] = 0.05,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score every item of a folder or table with a trained model. The same command resumes.

    Writes a CSV file with path, score, rank and decision, best first.

    Example: onesided rank runs/quake buildings/ -o ranked.csv --top 500 --page ranked.html
    """
    from onesided.cli.show import counting, note, print_json, say, skipped_lines, warn
    from onesided.run.rank import alarm_of, rank_items

    for path, option in ((output, "-o"), (page, "--page")):
        _check_place(path, option)
    silent = quiet or as_json
    with counting("ranking", quiet=silent) as counter:
        ranking = rank_items(
            run,
            items,
            output,
            tolerate=tolerate,
            top=top,
            best=min(ON_PAGE, top or ON_PAGE) if page else 0,
            progress=counter,
            notify=lambda sentence: note(sentence, quiet=silent),
        )
    if page:
        _write_page(page, items, ranking)
    for sentence in skipped_lines(ranking.told[:5]):
        note(sentence, quiet=silent)
    if ranking.skipped_file:
        note(f"All that was skipped is listed in {ranking.skipped_file}.", quiet=silent)
    alarm = alarm_of(run)
    if alarm:
        warn(alarm)
    if as_json:
        print_json(_as_json(ranking, output, page))
    else:
        say(f"{_summary(ranking)}, {ranking.skipped} skipped, {ranking.written} written: {output}")


def _summary(ranking: "Ranking") -> str:
    from onesided.cli.show import count

    return f"{count(ranking.items, 'item')} ranked, {ranking.called_positive} called positive"


def _as_json(ranking: "Ranking", output: Path, page: Path | None) -> dict[str, object]:
    return {
        "output": str(output),
        "items": ranking.items,
        "called_positive": ranking.called_positive,
        "written": ranking.written,
        "skipped_count": ranking.skipped,
        "skipped_file": None if ranking.skipped_file is None else str(ranking.skipped_file),
        "skipped": [list(item) for item in ranking.told],
        "page": None if page is None else str(page),
    }


def _write_page(page: Path, items: Path, ranking: "Ranking") -> None:
    from onesided.cli.show import count
    from onesided.report.ranking import write_ranking_page
    from onesided.storage.names import printable

    write_ranking_page(
        page,
        title=printable(items.name or str(items)),
        headline=f"The first {count(len(ranking.best), 'item')} of {ranking.items}",
        lede=f"{_summary(ranking)}. Best first: place and score are below each.",
        items=[(best.name, best.score, best.picture) for best in ranking.best],
    )


def _check_place(path: Path | None, option: str) -> None:
    """Refuse a place that cannot be written before an hour is spent on scores."""
    from onesided.core.errors import OnesidedError

    if path is None:
        return
    if path.is_dir():
        raise OnesidedError(f"{path} is a folder, and {option} takes a file, such as ranked.csv.")
    if not path.parent.is_dir():
        raise OnesidedError(
            f"There is no folder {path.parent} to write {path.name} into. Make it first, or "
            "choose another place."
        )
