"""Which switches of NcPU's variant `budget` matter: each turned alone.

python -m benchmarks.ablation --root DATA     run what is missing, then print the table
python -m benchmarks.ablation --table         print the table of the result file
python -m benchmarks.ablation --docs          write docs/benchmarks/ablation.md from it
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

from benchmarks.budget import QUICK
from benchmarks.command import main as command
from benchmarks.grid import Budget, Grid, entry
from onesided.core.config import Settings, merge
from onesided.run.presets import published_settings

# A third of the unlabelled images: the whole would take three times as long for each row.
SMALL: Settings = {"data": {"unlabelled": 12000}, "train": {"epochs": 6}}
CHANGES: Mapping[str, Settings] = {
    "budget": {},
    "class pairs (robust)": {"alignment": "robust"},
    "no alignment": {"alignment": "none"},
    "three views": {"views": "three"},
    "P and U weigh alike": {"weighing": "sources"},
    "online network judges": {"judge": "online"},
    "prototypes vote": {"voter": "prototype"},
    "no votes": {"disambiguation": "none"},
    "entropy 0.5": {"entropy_weight": 0.5},
}
PUBLISHED_VIEWS = "published views"
WORDS = (
    "NcPU's variant `budget` on a part of CIFAR-10, and what happens when one of its switches is "
    "turned alone: to the paper's form, or off. The choice of these switches was made before, on "
    "training images outside P and U; this table reports it and chose nothing."
)


def grid(data_name: str, given: Settings) -> Grid:
    """Return the study on one data set."""
    quick = published_settings("quick", data_name=data_name, given=given)
    budget = Budget(given.get("data", {}), quick["network"], quick["train"])
    method = merge({"name": "ncpu"}, quick["method"])
    windows = replace(budget, train=merge(quick["train"], {"views": "published"}))
    rows = [
        entry(label, data_name, budget, merge(method, change)) for label, change in CHANGES.items()
    ]
    first, *others = *CHANGES, PUBLISHED_VIEWS
    return Grid(
        name="ablation",
        title="Which switches matter in minutes",
        words=WORDS,
        entries=(*rows, entry(PUBLISHED_VIEWS, data_name, windows, method)),
        pairs=tuple((first, other) for other in others),
        varied=frozenset({"views"}),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    return command(grid("cifar10", SMALL), grid("toy-images", QUICK), argv)


if __name__ == "__main__":
    sys.exit(main())
