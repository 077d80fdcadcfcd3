"""NcPU on rows of numbers, beside CE, nnPU and forests: is it for images alone?

python -m benchmarks.tabular            run what is missing, then print the table
python -m benchmarks.tabular --table    print the table of the result file
python -m benchmarks.tabular --docs     write docs/benchmarks/tabular.md from it

Both sets come with scikit-learn, so nothing has to be fetched.
"""

import sys
from collections.abc import Mapping, Sequence

from benchmarks.command import main as command
from benchmarks.grid import Budget, Grid
from benchmarks.methods import row
from onesided.methods import METHODS

# Chosen before any run. The rate, and on digits batches and epochs too, are those of the
# comparison on images (methods.py); the smaller set has more epochs, for about as many steps.
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

# A second or less per method, to see whether it works; its figures mean nothing.
QUICK: Mapping[str, Budget] = {
    "toy-vectors": Budget(
        data={
            "positives": 16,
            "unlabelled": 32,
            "held_out_positives": 10,
            "held_out_unlabelled": 20,
        },
        backbone={"name": "mlp", "width": 0.125},
        train={"epochs": 3, "batch_size": 16, "learning_rate": 0.002},
    ),
}

COMPARED = ("ncpu", "ce", "nnpu", "puet", "supervised")

WORDS = (
    "NcPU was published for images. Here samples are rows of numbers, whose views are made by "
    "dropping features for those of other rows, mixing rows, and noise. CE, which takes the "
    "unlabelled for negative, is what it must beat; nnPU and PUET are given the true class prior; "
    "supervised learning, which sees all true labels, is what nobody can expect to reach."
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
