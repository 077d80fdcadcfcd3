"""`onesided prior`: how many of the unlabelled are positive, with intervals and doubts."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from onesided.cli.options import (
    Assignments,
    Data,
    Json,
    Positives,
    Quiet,
    Root,
    Seed,
    Table,
    Unlabelled,
)

if TYPE_CHECKING:
    from onesided.priors import PriorEstimate


def prior(
    positives: Positives = None,
    unlabelled: Unlabelled = None,
    table: Table = None,
    data: Data = None,
    root: Root = None,
    estimator: Annotated[
        str,
        typer.Option(
            "--estimator",
            help="Comma-separated: auto (as fit estimates it), km2, km1, bbe.",
        ),
    ] = "auto,km2",
    assignments: Assignments = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Estimate how many of the unlabelled are positive.

    Example: onesided prior -p damaged/ -u buildings/ --estimator auto,km2
    """
    from onesided.cli.options import settings_of
    from onesided.cli.show import print_json
    from onesided.cli.terminal import Terminal
    from onesided.jobs.early import check_data

    given = settings_of(assignments)
    folders = {"-p": positives, "-u": unlabelled}
    check_data(data, table, folders, {"--root": root})
    from onesided.jobs.prior import estimate_prior

    found = estimate_prior(
        positives,
        unlabelled,
        table=table,
        data=data,
        root=root,
        estimators=estimator,
        settings=given,
        seed=seed,
        monitor=Terminal(quiet=quiet or as_json),
    )
    rows, warnings = [_row(estimate) for estimate in found.estimates], list(found.warnings)
    if as_json:
        print_json({"estimates": rows, "warnings": warnings})
        return
    _show(rows, warnings)


def _row(estimate: "PriorEstimate") -> dict[str, Any]:
    return {
        "method": estimate.method,
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "n_positive": estimate.n_positive,
        "n_unlabelled": estimate.n_unlabelled,
        "notes": list(estimate.notes),
    }


def _show(rows: list[dict[str, Any]], warnings: list[str]) -> None:
    from rich import table as rich

    from onesided.cli.show import console, notes, warn

    table = rich.Table(title="Share of positives among the unlabelled", title_justify="left")
    for column in ("estimator", "estimate", "95 % interval", "from"):
        table.add_column(column)
    for row in rows:
        table.add_row(
            row["method"],
            f"{row['value']:.3f}",
            f"{row['low']:.3f} to {row['high']:.3f}",
            f"{row['n_positive']} P, {row['n_unlabelled']} U",
        )
    console.print(table)
    for row in rows:
        for sentence in row["notes"]:
            notes.print(sentence, markup=False, highlight=False)
    for sentence in warnings:
        warn(sentence)
