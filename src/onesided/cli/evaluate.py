"""`onesided evaluate`: what a run found, and how it compares with the truth if there is one."""

from pathlib import Path
from typing import Annotated

import typer

from onesided.cli.options import Json, Quiet


def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished run.")],
    labels: Annotated[
        Path | None,
        typer.Option("--labels", help="CSV: item (or path) and label (positive, negative)."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Tell how a finished run did.

    Without --labels from held-out P and U, without negatives; with it against the truth.

    Example: onesided evaluate runs/quake --labels truth.csv
    """
    from onesided.cli.show import console, note, print_json, result_tables, truth_table, warn_of
    from onesided.run.evaluate import compare_with_labels
    from onesided.run.folder import read_result

    result = read_result(run)
    if labels is None:
        if as_json:
            print_json({key: result[key] for key in ("test", "pu", "warnings")})
            return
        for table in result_tables(result):
            console.print(table)
        warn_of(result)
        return
    comparison = compare_with_labels(run, labels)
    if as_json:
        print_json(comparison)
        return
    note(
        f"{comparison['matched']} of {comparison['listed']} labelled items are in scores.csv.",
        quiet=quiet,
    )
    table = truth_table([{**result, "test": comparison["test"], "seconds": None}])
    table.title = f"Against {labels.name}"
    console.print(table)
