"""Figures of a finished run, another threshold, true labels: the job of `onesided evaluate`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onesided.core.monitor import Monitor
from onesided.jobs.settings import PathLike
from onesided.metrics.threshold_rules import parse_rule
from onesided.report import write_report
from onesided.run.compare import move_thresholds
from onesided.run.evaluate import compare_with_labels
from onesided.run.folder import REPORT, read_result, working_in
from onesided.storage.together import settle


@dataclass(frozen=True)
class Evaluation:
    """The figures of a finished run.

    Attributes:
        result: The content of `result.json`: figures from held-out P and U, without negatives.
        truth: The decisions against the labels that were given; None where none were.
    """

    result: Mapping[str, Any]
    truth: Mapping[str, Any] | None = None


def evaluate(
    run: PathLike,
    *,
    labels: PathLike | None = None,
    threshold: float | str | None = None,
    monitor: Monitor | None = None,
) -> Evaluation:
    """Return the figures of a finished run, or give it another threshold.

    A threshold is stored with the model, for `rank` and for the report; labels never choose it.

    Examples:
        >>> import onesided
        >>> found = onesided.evaluate("runs/toy", threshold="top-k=30")
        >>> found.result["threshold_rule"]["rule"]
        'top-k=30'

    Args:
        run: Folder of a finished run.
        labels: CSV file of true classes: item (or path) and label.
        threshold: A number, or a rule such as "recall=0.9"; None leaves it as it is.
        monitor: Receives notices and progress.
    """
    run, monitor = Path(run), monitor or Monitor()
    settle(run)
    result = read_result(run) if threshold is None else _move(run, threshold, monitor)
    truth = None if labels is None else compare_with_labels(run, Path(labels))
    return Evaluation(result, truth)


def _move(run: Path, threshold: float | str, monitor: Monitor) -> dict[str, Any]:
    """Store another threshold, write the report again, and report the reason."""
    rule = parse_rule(threshold)
    read_result(run)  # refuses a folder that is not there, which the lock would make
    with working_in(run):
        result = move_thresholds(run, rule, lambda new: write_report(run, new=new))
    monitor.note(result["threshold_rule"]["explained"])
    monitor.note(
        f"Stored with the model; decisions, figures and {run / REPORT} follow it. Pictures "
        "nearest the old threshold are left out of the page."
    )
    return result
