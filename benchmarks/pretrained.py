"""What does a pretrained backbone add? The preset `quick` on frozen ImageNet features.

Not comparable with tables from scratch: ImageNet's labels name most of what CIFAR shows. These
figures show what a practitioner gets, not how good a PU method is.
"""

import sys
from collections.abc import Sequence

from benchmarks.budget import QUICK, rows_of
from benchmarks.command import main as command
from benchmarks.grid import Grid
from onesided.core.config import Settings, merge

FROZEN: Settings = {"backbone": {"name": "efficientnet_lite0", "freeze": True}}
WORDS = (
    "The preset `quick` with `--backbone efficientnet_lite0 --freeze`: every image goes once "
    "through a backbone that was trained on ImageNet, and the methods train on its features. Not "
    "comparable with the tables from scratch, because ImageNet's labels name most of what these "
    "images show. Seconds are those of training; computing the features comes before, once for "
    "all rows."
)


def grid(names: Sequence[str], given: Settings) -> Grid:
    """Return the comparison on these data sets."""
    return Grid(
        name="pretrained",
        title="What a pretrained network adds",
        words=WORDS,
        entries=tuple(row for name in names for row in rows_of(name, merge(FROZEN, given))),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    return command(grid(("cifar10",), {}), grid(("toy-images",), QUICK), argv)


if __name__ == "__main__":
    sys.exit(main())
