"""How much memory a run on CIFAR-10 takes at most, with the network and batches of each preset.

    python -m benchmarks.memory --root DATA

One epoch each, in a process of its own, whose peak of memory the system tells: later epochs
allocate nothing that the first did not. The exit code is 1 if a preset takes more than its bound.
The same command goes on after the last preset that was measured; see `benchmarks.rows`.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.budget import PRESETS
from benchmarks.command import REPOSITORY
from benchmarks.folders import stage
from benchmarks.origin import origin
from benchmarks.rows import Row, filled

ROWS = 41_000
BOUND_MB = 1280
"""What no preset may take: a laptop of 4 GB has it to spare beside a browser."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure every preset and write the result file."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.memory",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--root", type=Path, required=True, help="folder that holds CIFAR-10")
    root = options.parse_args(argv).root
    content = filled(
        REPOSITORY / "benchmarks" / "results" / "memory.json",
        {"name": "memory", "origin": origin(), "bound_mb": BOUND_MB},
        key="preset",
        asked=PRESETS,
        measure=partial(measured, root),
    )
    return int(any(row["peak_mb"] > BOUND_MB for row in content["rows"]))


def measured(root: Path, preset: str) -> Row:
    """Return the peak of one epoch with the preset."""
    with tempfile.TemporaryDirectory() as work:
        words = ("--data", "cifar10", "--root", root, "--preset", preset, "--epochs", "1")
        output = ("-o", Path(work) / preset, "--device", "cpu", "--quiet")
        peak = stage(ROWS, "fit", *words, *output, "--allow-degenerate")["peak_mb"]
    print(f"{preset}: at most {peak:.0f} MB", flush=True)
    return {"preset": preset, "peak_mb": peak}


if __name__ == "__main__":
    sys.exit(main())
