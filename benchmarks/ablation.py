"""Which switches and settings of Teacher matter? Each is changed alone.

Figures are of training images that are neither in P nor in U, on which the presets were chosen.
"""

import sys
from collections.abc import Mapping, Sequence

from benchmarks.budget import QUICK
from benchmarks.command import main as command
from benchmarks.grid import Budget, Entry, Grid, entry
from onesided.core.config import Settings, merge
from onesided.core.former import TITLE
from onesided.run.presets import published_settings

# A third of the unlabelled images: all of them would take three times as long per row. And
# 2,000 images of each class to evaluate on.
SMALL: Settings = {"data": {"unlabelled": 12000, "clean": 2000}, "train": {"epochs": 6}}
BASE = TITLE
SWITCHES: Mapping[str, Settings] = {
    "class pairs (robust)": {"alignment": "robust"},
    "no alignment": {"alignment": "none"},
    "alignment weight 4": {"alignment_weight": 4.0},
    "three views": {"views": "three"},
    "P and U weigh alike": {"weighing": "sources"},
    "online network judges": {"judge": "online"},
    "prototypes vote": {"voter": "prototype"},
    "no votes": {"disambiguation": "none"},
    "votes after one pass": {"warmup_epochs": 1},
    "entropy 0.5": {"entropy_weight": 0.5},
}
TRAINING: Mapping[str, Settings] = {
    "published views": {"views": "published"},
    "half the rate": {"learning_rate": 0.025},
    "twice the rate": {"learning_rate": 0.1},
    "8 positives a batch": {"positives_per_batch": 8},
    "64 positives a batch": {"positives_per_batch": 64},
}
WORDS = (
    "Teacher on a part of CIFAR-10, with one switch or setting changed at a time: to NcPU's "
    "form, off, or to another number. Figures are of training images that are "
    "neither in P nor in U, on which the presets were chosen; the test set is not used. A pass is "
    "as many steps as U fills, so more positives per batch mean more steps."
)


def grid(data_name: str, given: Settings) -> Grid:
    """Return the study on one data set."""
    quick = published_settings("quick", data_name=data_name, method_name="teacher", given=given)

    def row(label: str, switch: Settings, training: Settings) -> Entry:
        train = merge(quick["train"], training)
        budget = Budget(given.get("data", {}), quick["backbone"], train)
        return entry(label, data_name, budget, merge(quick["method"], switch))

    return Grid(
        name="ablation",
        title="Which switches and settings matter in minutes",
        words=WORDS,
        entries=(
            row(BASE, {}, {}),
            *(row(label, switch, {}) for label, switch in SWITCHES.items()),
            *(row(label, {}, training) for label, training in TRAINING.items()),
        ),
        pairs=tuple((BASE, label) for label in (*SWITCHES, *TRAINING)),
        varied=frozenset(name for training in TRAINING.values() for name in training),
        evaluated_on="clean",
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    toy = merge(QUICK, {"data": {"clean": 4}})
    return command(grid("cifar10", SMALL), grid("toy-images", toy), argv)


if __name__ == "__main__":
    sys.exit(main())
