"""A trained model over a folder or table, best first: the job of `onesided rank`."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from onesided.core.errors import ConfigError, OnesidedError
from onesided.core.monitor import Monitor
from onesided.data.read.picture import reading_up_to
from onesided.jobs.settings import PathLike
from onesided.jobs.words import MOST_SKIPPED, count, skipped_lines
from onesided.report.ranking import write_ranking_page
from onesided.run.folder import MANIFEST, OURS, working_in
from onesided.run.rank import Ranking, alarm_of, rank_items
from onesided.run.ray_engine import engine_named
from onesided.storage.names import printable
from onesided.storage.optional import library
from onesided.storage.parquet import is_parquet

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
    largest_image: float | None = None,
    engine: str = "local",
    workers: int = 2,
    address: str | None = None,
    monitor: Monitor | None = None,
) -> Ranking:
    """Score every item of a folder or table with a trained model; write them best first.

    The same call resumes a stopped one.

    Examples:
        >>> import onesided
        >>> ranking = onesided.rank("runs/toy", "images", "ranked.csv", top=5)
        >>> ranking.written
        5

    Args:
        run: Folder of a finished run, or a file that `export` wrote as ONNX.
        items: Folder of images or texts, or CSV file with a column `path` or with the columns
            that the model was trained on.
        output: CSV file to write: item, score, rank, decision, and a probability where the model
            has some.
        top: Only the best so many are written; None writes all.
        page: HTML file with thumbnails of the best, if one is wanted.
        tolerate: Share of unreadable files to accept.
        largest_image: Millions of pixels up to which images are read; None means 64.
        engine: local, or ray for several processes and machines.
        workers: Processes of Ray.
        address: Of a Ray cluster that runs already; None starts Ray on this machine.
        monitor: Receives notices and progress.
    """
    run, items, output = Path(run), Path(items), Path(output)
    page = None if page is None else Path(page)
    monitor = monitor or Monitor()
    if top is not None and top < 1:
        raise ConfigError(f"top is {top}; expected a whole number from 1 on, or None for all.")
    if not 0 <= tolerate <= 1:
        raise ConfigError(f"tolerate is {tolerate}; expected a share from 0 to 1, such as 0.05.")
    by = engine_named(engine, workers=workers, address=address)
    if by is not None and largest_image is not None:
        raise ConfigError("largest_image is not passed on to Ray's workers; leave one of them out.")
    for path, option in ((output, "-o"), (page, "--page")):
        _check_writable(path, option)
    if is_parquet(output):
        library("pyarrow.parquet", "Writing a Parquet file")  # now, not when all is scored
    with (
        _lock_run_of(output),
        monitor.phase("ranking") as phase,
        reading_up_to(largest_image),
    ):
        ranking = rank_items(
            run,
            items,
            output,
            tolerate=tolerate,
            top=top,
            best=min(ON_PAGE, top or ON_PAGE) if page else 0,
            progress=phase,
            notify=monitor.note,
            add=lambda new, found: _write_page(new, output, page, items, found),
            engine=by,
        )
    for sentence in skipped_lines(ranking.first_skipped[:MOST_SKIPPED]):
        monitor.note(sentence)
    if ranking.skipped_file:
        monitor.note(f"All that was skipped is listed in {ranking.skipped_file}.")
    if ranking.compared and ranking.compared.warning:
        monitor.warn(ranking.compared.warning)
    alarm = alarm_of(run)
    if alarm:
        monitor.warn(alarm)
    return ranking


def in_words(ranking: Ranking) -> str:
    """Return how many items were ranked, and how many of them are called positive."""
    return f"{count(ranking.items, 'item')} ranked, {ranking.called_positive} called positive"


def _write_page(new: Path, output: Path, page: Path | None, items: Path, ranking: Ranking) -> None:
    """Write the page together with the ranking, if they are to be in one folder."""
    if page is None:
        return
    write_ranking_page(
        new / page.name if page.parent.samefile(output.parent) else page,
        title=printable(items.name or str(items)),
        headline=f"The first {count(len(ranking.best), 'item')} of {ranking.items}",
        lede=f"{in_words(ranking)}. Best first: place and score are below each.",
        items=[(best.name, best.score, best.picture) for best in ranking.best],
    )


def _lock_run_of(output: Path) -> AbstractContextManager[None]:
    """Return the lock of the run folder that the output is written into; else nothing."""
    return working_in(output.parent) if (output.parent / MANIFEST).exists() else nullcontext()


def _check_writable(path: Path | None, option: str) -> None:
    """Refuse a place that cannot be written before an hour is spent on scores."""
    if path is None:
        return
    if path.name in OURS and (path.parent / MANIFEST).exists():
        raise OnesidedError(
            f"{path} is a file of the run in {path.parent}, and {option} would overwrite it. "
            "Choose another name."
        )
    if path.is_dir():
        raise OnesidedError(f"{path} is a folder, and {option} takes a file, such as ranked.csv.")
    if not path.parent.is_dir():
        raise OnesidedError(
            f"There is no folder {path.parent} to write {path.name} into. Make it first, or "
            "choose another place."
        )
