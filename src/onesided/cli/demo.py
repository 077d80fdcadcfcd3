"""`onesided demo`: auto beside an ordinary classifier, on real images that need no download."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onesided.cli.options import Json, Quiet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.table import Table


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the runs.")] = Path(
        "runs/demo"
    ),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare auto, the default, with CE on handwritten digits.

    Three seeds each, on data that comes with the library, and a report at the end.

    Example: onesided demo
    """
    from onesided.cli.show import console, leaderboard_table, print_json, say, truth_table
    from onesided.cli.terminal import Terminal
    from onesided.jobs.demo import demonstrate
    from onesided.run.compare import kept_of

    monitor = Terminal(quiet=quiet or as_json)
    monitor.note(
        "Which digits are even? A few even ones are labelled, all others are not. "
        "CE takes the unlabelled as odd; auto, the default, tries several models and keeps the "
        "one that ranks labelled ones highest among others that it did not see."
    )
    found = demonstrate(output, monitor)
    results = [run.result for run in found.runs]
    if as_json:
        print_json({"runs": [kept_of(result) for result in results], "report": str(found.report)})
        return
    console.print(leaderboard_table(results[0]))
    console.print(truth_table(results))
    console.print(_means(results))
    say(f"Report: {found.report}")


def _means(results: "Sequence[Mapping[str, Any]]") -> "Table":
    """Return mean and standard deviation over seeds; auto is one row, whatever it kept."""
    import numpy as np
    from rich.table import Table

    from onesided.metrics.stored import method_asked_for

    table = Table(title="Mean ± standard deviation over seeds", title_justify="left")
    for column in ("method", "OA", "F1", "AUC"):
        table.add_column(column, justify="left" if column == "method" else "right")
    for method in dict.fromkeys(map(method_asked_for, results)):
        rows = [result["test"] for result in results if method_asked_for(result) == method]
        cells = []
        for key in ("oa", "f1", "auc"):
            values = 100 * np.array([row[key] for row in rows])
            cells.append(f"{values.mean():.1f} ± {values.std(ddof=1):.1f}")
        table.add_row(method, *cells)
    return table
