"""Every method of the library at one small budget, beside the paper's figures.

python -m benchmarks.methods --root DATA     run what is missing, then print the table
python -m benchmarks.methods --table         print the table of the result file
python -m benchmarks.methods --docs          write docs/benchmarks/methods.md from it
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.command import main as command
from benchmarks.grid import Budget, Entry, Grid, entry
from onesided.core.config import Settings, merge
from onesided.methods import METHODS

# The budget: the same for every method, chosen before any run, for two cores without a
# GPU. `clean` is dealt after P, U and the held-out part: it changes nothing for methods
# that do not ask for it, and so all methods have the same split.
BUDGETS: Mapping[str, Budget] = {
    "digits": Budget(
        data={"clean": 20},  # else as published by the library: 40 labelled, 800 unlabelled
        backbone={"name": "small", "width": 0.25},
        train={"epochs": 60, "batch_size": 64, "learning_rate": 0.002},
    ),
    "cifar10": Budget(
        data={
            "positives": 500,
            "unlabelled": 3000,
            "held_out_positives": 100,
            "held_out_unlabelled": 1000,
            "clean": 100,  # of each class, the paper's number
        },
        backbone={"name": "small", "width": 0.25},
        train={"epochs": 10, "batch_size": 64, "learning_rate": 0.005},
    ),
}

# A second or less per method, to see whether it works; its figures mean nothing.
QUICK: Mapping[str, Budget] = {
    "toy-images": Budget(
        data={
            "positives": 16,
            "unlabelled": 32,
            "held_out_positives": 10,
            "held_out_unlabelled": 20,
            "clean": 8,
        },
        backbone={"name": "small", "width": 0.125},
        train={"epochs": 3, "batch_size": 16, "learning_rate": 0.002},  # fewer do not suit all
    ),
}


@dataclass(frozen=True)
class Own:
    """Settings of one method at this budget, and why its defaults would not do.

    Attributes:
        settings: From the number of epochs to settings.
        reason: Why; a method without one has no business here.
    """

    settings: Callable[[int], Settings]
    reason: str


# Methods that are not here run with their defaults, adapted by their own `for_budget`.
OWN: Mapping[str, Own] = {
    "ncpu": Own(
        lambda epochs: {"warmup_epochs": max(1, round(epochs / 3)), "target_momentum": 0.9},
        "A row votes once per epoch: at the paper's 0.99 it needs 69 of its 1300 epochs to change "
        "its mind, more than there are here; and votes before features have formed mean nothing.",
    ),
}

WORDS = (
    "All methods of the library, each as published unless the settings below say otherwise, at one "
    "small budget: same data, split, network, optimizer and number of epochs, and the true class "
    "prior for those that need one. Such a budget favours methods that learn fast; it says what "
    "to expect of a run of minutes, not which method is best in the end."
)


def grid(budgets: Mapping[str, Budget]) -> Grid:
    """Return the comparison at these budgets, over whatever methods there are."""
    return Grid(
        name="methods",
        title="All methods at one small budget",
        words=WORDS,
        entries=tuple(
            row(method, name, budget) for name, budget in budgets.items() for method in METHODS
        ),
    )


def row(method: str, data_name: str, budget: Budget) -> Entry:
    """Return a method at a budget: its defaults in that pace, and what it needs of its own."""
    own = OWN[method].settings(budget.epochs) if method in OWN else {}
    planned = METHODS[method].from_settings(own).for_budget(budget.epochs)
    settings = merge({"name": method}, planned.model_dump(mode="json"), own)
    return entry(METHODS[method].card.title, data_name, budget, settings)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    return command(grid(BUDGETS), grid(QUICK), argv)


if __name__ == "__main__":
    sys.exit(main())
