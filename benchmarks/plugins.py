"""Does alignment help a risk that was made without it? The plug-in study, on a small budget.

CE, uPU and nnPU, each alone and with NcPU's robust alignment (NoiSNCL; Table 3 of the NcPU
paper), on digits and on a part of CIFAR-10.
"""

import sys
from collections.abc import Mapping, Sequence

from benchmarks.command import main as command
from benchmarks.grid import TOY_DATA, Budget, Entry, Grid, entry
from onesided.core.config import Settings
from onesided.methods import METHODS

# Chosen before any run, so that the grid takes about 25 minutes on two cores without a GPU.
# Rows with and without alignment share a learning rate: one tuned for either would favour it.
BUDGETS: Mapping[str, Budget] = {
    "digits": Budget(
        data={},  # as published by the library: 40 labelled, 800 unlabelled
        backbone={"name": "small", "width": 0.25},
        train={"epochs": 60, "batch_size": 64, "learning_rate": 0.002},
    ),
    "cifar10": Budget(
        data={
            "positives": 500,
            "unlabelled": 3000,
            "held_out_positives": 100,
            "held_out_unlabelled": 1000,
        },
        backbone={"name": "small", "width": 0.25},
        train={"epochs": 10, "batch_size": 64, "learning_rate": 0.005},
    ),
}
RISKS = ("ce", "upu", "nnpu")
ALIGNMENT: Settings = {
    "alignment": "robust",
    "alignment_weight": 50.0,  # w_r of the paper, on every data set
}
WARMUP_SHARE = 1 / 3  # pairs are self pairs until features have formed; 30 of 1300 in the paper

QUICK: Mapping[str, Budget] = {
    "toy-images": Budget(
        data=TOY_DATA,
        backbone={"name": "small", "width": 0.125},
        train={"epochs": 1, "batch_size": 16, "learning_rate": 0.002},
    ),
}

WORDS = (
    "Does NcPU's noisy-pair robust alignment help a classification risk that was made without it? "
    "CE, uPU and nnPU are trained alone and with `alignment = robust`. All else is equal: data, "
    "split, backbone, training, and the true class prior for the risks that need one. The budget "
    "is far below the paper's, and was tuned for neither side."
)


def grid(budgets: Mapping[str, Budget]) -> Grid:
    """Return the study at these budgets."""
    return Grid(
        name="plugins",
        title="Alignment as a plug-in",
        words=WORDS,
        entries=tuple(
            row for name, budget in budgets.items() for row in _rows_of_data(name, budget)
        ),
        pairs=tuple((_title(risk), _with_alignment(risk)) for risk in RISKS),
    )


def _rows_of_data(name: str, budget: Budget) -> list[Entry]:
    warmup = {"warmup_epochs": max(1, round(budget.epochs * WARMUP_SHARE))}
    rows = []
    for risk in RISKS:
        rows.append(entry(_title(risk), name, budget, {"name": risk}))
        aligned = {"name": risk, **ALIGNMENT, **warmup}
        rows.append(entry(_with_alignment(risk), name, budget, aligned))
    return rows


def _title(risk: str) -> str:
    return METHODS[risk].card.title


def _with_alignment(risk: str) -> str:
    return f"{_title(risk)} + {ALIGNMENT['alignment']}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    return command(grid(BUDGETS), grid(QUICK), argv)


if __name__ == "__main__":
    sys.exit(main())
