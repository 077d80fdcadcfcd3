"""`onesided demo`: NcPU beside an ordinary classifier, on real images that need no download."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onesided.cli.options import Json, Quiet

if TYPE_CHECKING:
    from rich.table import Table

METHODS = ("ncpu", "ce")
SEEDS = (0, 1, 2)


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the runs.")] = Path(
        "runs/demo"
    ),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare NcPU with CE on handwritten digits.

    Three seeds each, on data that comes with the library, and a report at the end.

    Example: onesided demo
    """
    from onesided.cli.fit import fit_settings
    from onesided.cli.show import console, note, print_json, say, truth_table
    from onesided.report import write_report
    from onesided.run.compare import write_comparison
    from onesided.run.demo import demo_settings

    note(
        "Which digits are even? A few even ones are labelled, all others are not. "
        "CE takes the unlabelled as odd; NcPU does not.",
        quiet=quiet or as_json,
    )
    results: list[dict[str, Any]] = []
    for seed in SEEDS:
        for method in METHODS:
            given = demo_settings(method, seed)
            folder = output / f"{method}-{seed}"
            result = fit_settings(
                given, folder, preset=None, overwrite=False, quiet=quiet or as_json
            )
            results.append(result.content)
    first = output / f"{METHODS[0]}-{SEEDS[0]}"
    comparison = write_comparison(first, results)
    page = write_report(first)
    if as_json:
        print_json({"runs": comparison, "report": str(page)})
        return
    console.print(truth_table(results))
    console.print(_means(results))
    say(f"Report: {page}")


def _means(results: list[dict[str, Any]]) -> "Table":
    """Return mean and standard deviation over seeds, last epoch."""
    import numpy as np
    from rich.table import Table

    table = Table(title="Mean ± standard deviation over seeds, last epoch", title_justify="left")
    for column in ("method", "OA", "F1", "AUC"):
        table.add_column(column, justify="left" if column == "method" else "right")
    for method in METHODS:
        rows = [result["test"] for result in results if result["method"] == method]
        cells = []
        for key in ("oa", "f1", "auc"):
            values = 100 * np.array([row[key] for row in rows])
            cells.append(f"{values.mean():.1f} ± {values.std(ddof=1):.1f}")
        table.add_row(method, *cells)
    return table
