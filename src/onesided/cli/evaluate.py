"""`onesided evaluate`: figures of a finished run, its threshold, and true labels."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from onesided.cli.options import Json, Quiet, Threshold

TOLD = (
    *("threshold", "threshold_rule", "test", "pu", "known_negatives", "warnings"),
    *("calibration", "typical"),
)


def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished run.")],
    labels: Annotated[
        Path | None,
        typer.Option("--labels", help="CSV: item (or path) and label (positive, negative)."),
    ] = None,
    threshold: Threshold = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the figures of a finished run, or set another threshold.

    Without --labels from held-out P and U, without negatives; with it against the truth.
    A threshold is stored with the model, for rank and for the report; labels never choose it.

    Example: onesided evaluate runs/quake --threshold recall=0.9 --labels truth.csv
    """
    from onesided.cli.show import console, print_json, result_tables, warn_of
    from onesided.cli.terminal import Terminal
    from onesided.jobs.early import check_finished, check_training

    check_finished(run)
    check_training(threshold=threshold)
    from onesided.jobs.evaluate import evaluate as run_job

    monitor = Terminal(quiet=quiet or as_json)
    found = run_job(run, labels=labels, threshold=threshold, monitor=monitor)
    result, truth = found.result, found.truth
    if as_json:
        print_json({key: result.get(key) for key in TOLD} if truth is None else truth)
        return
    if truth is None:
        for table in result_tables(result):
            console.print(table)
        warn_of(result)
        return
    assert labels is not None
    _show_truth(result, truth, labels.name, quiet=quiet)


def _show_truth(
    result: Mapping[str, Any], comparison: Mapping[str, Any], name: str, *, quiet: bool
) -> None:
    from onesided.cli.show import beside_truth, console, note, say, truth_table

    note(
        f"{comparison['matched']} of {comparison['listed']} labelled items are in scores.csv.",
        quiet=quiet,
    )
    if left_out := comparison["matched"] - comparison["tested"]:
        note(
            f"{left_out} of them were trained on, or are copies of others; the figures are of the "
            f"other {comparison['tested']}.",
            quiet=quiet,
        )
    table = truth_table([{**result, "test": comparison["test"], "seconds": None}])
    table.title = f"Against {name}"
    console.print(table)
    console.print(beside_truth(comparison, "Estimated without labels, and true"))
    if error := comparison["reliability"]:
        say(
            f"Probabilities are off by {error['error']:.1%} on average on these items (95 % "
            f"interval {error['low']:.1%} to {error['high']:.1%}); right ones would show "
            f"{error['by_chance']:.1%} by chance."
        )
