"""What an hour buys: the preset `standard` beside other methods at the same budget.

    python -m benchmarks.standard --root DATA     run what is missing, then print the table
    python -m benchmarks.standard --table         print the table of the result file
    python -m benchmarks.standard --docs          write docs/benchmarks/standard.md from it

The rows of `benchmarks.budget`, with more steps and a wider network.
"""

import sys
from collections.abc import Sequence

from benchmarks.budget import DATA, QUICK, rows_of
from benchmarks.command import main as command
from benchmarks.grid import Grid
from onesided.core.config import Settings

WORDS = (
    "The preset `standard`: the rows of the study of `quick` with more steps and a wider network. "
    "`Supervised` sees all true classes and is the ceiling, not a competitor. No test set chose "
    "anything."
)


def grid(names: Sequence[str], given: Settings) -> Grid:
    """Return the comparison on these data sets."""
    return Grid(
        name="standard",
        title="What an hour buys",
        words=WORDS,
        entries=tuple(row for name in names for row in rows_of(name, given, "standard")),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    return command(grid(DATA, {}), grid(("toy-images",), QUICK), argv)


if __name__ == "__main__":
    sys.exit(main())
