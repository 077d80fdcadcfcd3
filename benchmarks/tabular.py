"""Does NcPU work on rows of numbers too? It runs beside CE, nnPU and forests.

Both data sets come with scikit-learn, so nothing is downloaded.
"""

import sys
from collections.abc import Mapping, Sequence

from benchmarks.command import main as command
from benchmarks.grid import TOY_DATA, Budget, Grid
from benchmarks.methods import row
from onesided.methods import METHODS

# Chosen before any run. The learning rate, and on digits batches and epochs too, are those of
# methods.py. The smaller set has more epochs, for about as many steps.
BUDGETS: Mapping[str, Budget] = {
    "breast-cancer": Budget(
        data={},  # as published by the library: 30 labelled, 200 unlabelled
        backbone={"name": "mlp", "width": 0.25},
        train={"epochs": 100, "batch_size": 32, "learning_rate": 0.002},
    ),
    "digit-vectors": Budget(
        data={},  # as published by the library: 40 labelled, 800 unlabelled
        backbone={"name": "mlp", "width": 0.5},
        train={"epochs": 60, "batch_size": 64, "learning_rate": 0.002},
    ),
}

QUICK: Mapping[str, Budget] = {
    "toy-vectors": Budget(
        data=TOY_DATA,
        backbone={"name": "mlp", "width": 0.125},
        train={"epochs": 3, "batch_size": 16, "learning_rate": 0.002},
    ),
}

COMPARED = ("ncpu", "ce", "nnpu", "puet", "supervised")

WORDS = (
    "NcPU was published for images. Here samples are rows of numbers. Their views are made by "
    "replacing features with those of other rows, by mixing rows, and by noise. CE, which treats "
    "the unlabelled as negative, is what it must beat. nnPU and PUET get the true class prior. "
    "Supervised learning sees all true labels and is an upper bound."
)


def grid(budgets: Mapping[str, Budget]) -> Grid:
    """Return the comparison at these budgets."""
    rows = [row(method, name, budget) for name, budget in budgets.items() for method in COMPARED]
    return Grid(
        name="tabular",
        title="Rows of numbers instead of images",
        words=WORDS,
        entries=tuple(rows),
        pairs=tuple(
            (METHODS[other].card.title, METHODS["ncpu"].card.title) for other in ("ce", "nnpu")
        ),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    return command(grid(BUDGETS), grid(QUICK), argv)


if __name__ == "__main__":
    sys.exit(main())
