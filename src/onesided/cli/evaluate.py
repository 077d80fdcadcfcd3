"""`onesided evaluate`: what a run found, where it cuts, and how it compares with the truth."""

from pathlib import Path
from typing import Annotated, Any

import typer

from onesided.cli.options import Json, Quiet, Threshold

TOLD = ("threshold", "threshold_rule", "test", "pu", "known_negatives", "warnings")


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
    """Tell how a finished run did, or give it another threshold.

    Without --labels from held-out P and U, without negatives; with it against the truth.
    A threshold is stored with the model, for rank and for the report; labels never choose it.

    Example: onesided evaluate runs/quake --threshold recall=0.9 --labels truth.csv
    """
    from onesided.cli.show import console, print_json, result_tables, warn_of
    from onesided.run.evaluate import compare_with_labels
    from onesided.run.folder import read_result

    silent = quiet or as_json
    result = read_result(run) if threshold is None else _move(run, threshold, quiet=silent)
    comparison = None if labels is None else compare_with_labels(run, labels)
    if as_json:
        told = {key: result.get(key) for key in TOLD} if comparison is None else comparison
        print_json(told)
        return
    if comparison is None:
        for table in result_tables(result):
            console.print(table)
        warn_of(result)
        return
    assert labels is not None
    _show_truth(result, comparison, labels.name, quiet=quiet)


def _move(run: Path, threshold: str, *, quiet: bool) -> dict[str, Any]:
    """Store another threshold, write the report again, and tell the reason."""
    from onesided.cli.show import note
    from onesided.metrics.threshold_rules import parse_rule
    from onesided.report import write_report
    from onesided.run.compare import move_thresholds

    result = move_thresholds(run, parse_rule(threshold))
    page = write_report(run)
    note(result["threshold_rule"]["explained"], quiet=quiet)
    note(
        f"Stored with the model; decisions, figures and {page} follow it. Pictures nearest the "
        "old threshold are left out of the page.",
        quiet=quiet,
    )
    return result


def _show_truth(
    result: dict[str, Any], comparison: dict[str, Any], name: str, *, quiet: bool
) -> None:
    from onesided.cli.show import beside_truth, console, note, truth_table

    note(
        f"{comparison['matched']} of {comparison['listed']} labelled items are in scores.csv.",
        quiet=quiet,
    )
    table = truth_table([{**result, "test": comparison["test"], "seconds": None}])
    table.title = f"Against {name}"
    console.print(table)
    console.print(beside_truth(comparison, "Estimated without labels, and true"))
