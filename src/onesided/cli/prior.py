"""`onesided prior`: how many of the unlabelled are positive, with intervals and doubts."""

from typing import Annotated, Any

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
    data_name,
)


def prior(
    positives: Positives = None,
    unlabelled: Unlabelled = None,
    table: Table = None,
    data: Data = None,
    root: Root = None,
    estimator: Annotated[
        str, typer.Option("--estimator", help="Comma-separated: km2, km1, bbe.")
    ] = "km2,bbe",
    assignments: Assignments = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Estimate how many of the unlabelled are positive.

    Example: onesided prior -p damaged/ -u buildings/ --estimator km2,bbe
    """
    from onesided.cli.fit import flag_settings
    from onesided.cli.show import counting, print_json
    from onesided.core.config import merge, nearest, parse_assignment
    from onesided.core.errors import ConfigError
    from onesided.engine.fit import Watcher
    from onesided.priors import agreement
    from onesided.run.config import data_config
    from onesided.run.load import load_data
    from onesided.run.prior import ESTIMATORS, bbe_prior, kernel_prior

    names = [name.strip() for name in estimator.split(",") if name.strip()]
    for name in names:
        if name not in ESTIMATORS:
            raise ConfigError(f"There is no estimator '{name}'.{nearest(name, ESTIMATORS)}")
    folders = {"-p": positives, "-u": unlabelled}
    given = merge(
        flag_settings(
            {
                "data.name": data_name(data, table, folders, {"--root": root}),
                "data.root": root,
                "data.positive_folder": positives,
                "data.unlabelled_folder": unlabelled,
                "data.table": table,
            }
        ),
        *map(parse_assignment, assignments or []),
    )
    silent = quiet or as_json
    with counting("reading", quiet=silent) as counter:
        loaded = load_data(data_config(given.get("data", {}), "configuration"), counter)
    estimates = []
    for name in names:
        with counting(f"estimating by {name}", quiet=silent) as counter:
            watcher = Watcher(step=counter.step)
            estimates.append(
                bbe_prior(loaded, seed, watcher)
                if name == "bbe"
                else kernel_prior(name, loaded.split, seed)
            )
    warnings = agreement(estimates)
    if as_json:
        print_json({"estimates": [_row(estimate) for estimate in estimates], "warnings": warnings})
        return
    _show([_row(estimate) for estimate in estimates], warnings)


def _row(estimate: Any) -> dict[str, Any]:  # noqa: ANN401 - its class is imported lazily
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
