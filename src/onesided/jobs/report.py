"""The page of a finished run, written again: the job of `onesided report`. Imports no torch."""

from pathlib import Path

from onesided.jobs.settings import PathLike
from onesided.report import write_report
from onesided.storage.lock import working_in
from onesided.storage.together import recover


def report(run: PathLike, *, labels: PathLike | None = None) -> Path:
    """Write the page of a finished run again, beside true labels where they are given.

    Args:
        run: Folder of a finished run.
        labels: CSV file of true classes, to be shown beside the estimates.
    """
    run = Path(run)
    if not run.is_dir():
        return write_report(run)  # which says what is missing
    with working_in(run):
        recover(run)
        if labels is None:
            return write_report(run)
        # It imports torch, which takes seconds, and most pages have no labels.
        from onesided.run.evaluate import compare_with_labels

        return write_report(run, labelled=compare_with_labels(run, Path(labels)))
