"""A trained model over a folder or table, best first: the job of `onesided rank`."""

from pathlib import Path

from onesided.core.errors import ConfigError, OnesidedError
from onesided.core.monitor import Monitor
from onesided.jobs.choices import MOST_SKIPPED, count, skipped_lines
from onesided.jobs.settings import PathLike
from onesided.report.ranking import write_ranking_page
from onesided.run.rank import Ranking, alarm_of, rank_items
from onesided.storage.names import printable

ON_PAGE = 64
"""Thumbnails on the page; they keep it below 3 MB."""


def rank(
    run: PathLike,
    items: PathLike,
    output: PathLike = "ranked.csv",
    *,
    top: int | None = None,
    page: PathLike | None = None,
    tolerate: float = 0.05,
    monitor: Monitor | None = None,
) -> Ranking:
    """Score every item of a folder or table with a trained model; write them best first.

    The same call resumes a stopped one.

    Example:
        >>> import onesided
        >>> ranking = onesided.rank("runs/toy", "images", "ranked.csv", top=5)
        >>> ranking.written
        5

    Args:
        run: Folder of a finished run.
        items: Folder of images or texts, or CSV file with a column `path` or with the columns
            that the model was trained on.
        output: CSV file to write: path, score, rank, decision.
        top: Only the best so many are written; None writes all.
        page: HTML file with thumbnails of the best, if one is wanted.
        tolerate: Share of unreadable files to accept.
        monitor: Receives notices and progress.
    """
    run, items, output = Path(run), Path(items), Path(output)
    page = None if page is None else Path(page)
    monitor = monitor or Monitor()
    if top is not None and top < 1:
        raise ConfigError(f"top is {top}; expected a whole number from 1 on, or None for all.")
    if not 0 <= tolerate <= 1:
        raise ConfigError(f"tolerate is {tolerate}; expected a share from 0 to 1, such as 0.05.")
    for path, option in ((output, "-o"), (page, "--page")):
        _check_writable(path, option)
    with monitor.phase("ranking") as phase:
        ranking = rank_items(
            run,
            items,
            output,
            tolerate=tolerate,
            top=top,
            best=min(ON_PAGE, top or ON_PAGE) if page else 0,
            progress=phase,
            notify=monitor.note,
        )
    if page:
        _write_page(page, items, ranking)
    for sentence in skipped_lines(ranking.first_skipped[:MOST_SKIPPED]):
        monitor.note(sentence)
    if ranking.skipped_file:
        monitor.note(f"All that was skipped is listed in {ranking.skipped_file}.")
    alarm = alarm_of(run)
    if alarm:
        monitor.warn(alarm)
    return ranking


def in_words(ranking: Ranking) -> str:
    """Return how many items were ranked, and how many of them are called positive."""
    return f"{count(ranking.items, 'item')} ranked, {ranking.called_positive} called positive"


def _write_page(page: Path, items: Path, ranking: Ranking) -> None:
    write_ranking_page(
        page,
        title=printable(items.name or str(items)),
        headline=f"The first {count(len(ranking.best), 'item')} of {ranking.items}",
        lede=f"{in_words(ranking)}. Best first: place and score are below each.",
        items=[(best.name, best.score, best.picture) for best in ranking.best],
    )


def _check_writable(path: Path | None, option: str) -> None:
    """Refuse a place that cannot be written before an hour is spent on scores."""
    if path is None:
        return
    if path.is_dir():
        raise OnesidedError(f"{path} is a folder, and {option} takes a file, such as ranked.csv.")
    if not path.parent.is_dir():
        raise OnesidedError(
            f"There is no folder {path.parent} to write {path.name} into. Make it first, or "
            "choose another place."
        )
