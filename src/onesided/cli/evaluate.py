"""`onesided evaluate`: what a run found, and how it compares with the truth if there is one."""

from pathlib import Path
from typing import Annotated

import typer

from onesided.cli.options import Json


def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    labels: Annotated[
        Path | None,
        typer.Option("--labels", help="CSV: item (or path) and label (positive, negative)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell how a finished run did, without negatives or against a table of true labels.

    Example: onesided evaluate runs/quake --labels truth.csv
    """
    from onesided.cli.show import console, print_json, result_tables, truth_table, warn
    from onesided.run.evaluate import compare_with_labels
    from onesided.run.folder import RESULT, read_json

    result = read_json(run / RESULT)
    if labels is None:
        if as_json:
            print_json({"test": result["test"], "pu": result["pu"], "warnings": result["warnings"]})
            return
        for table in result_tables(result):
            console.print(table)
        for sentence in result["warnings"]:
            warn(sentence)
        return
    comparison = compare_with_labels(run, labels)
    if as_json:
        print_json(comparison)
        return
    console.print(
        f"{comparison['matched']} of {comparison['listed']} labelled items are in scores.csv.",
        markup=False,
        highlight=False,
    )
    console.print(truth_table([{**result, "test": comparison["test"], "seconds": None}]))
