"""How much memory does a run on CIFAR-10 take, with the backbone and batches of each preset?

    python -m benchmarks.memory --root DATA

Each preset trains one epoch in its own process, and the system reports the peak memory; later
epochs need no more. The exit code is 1 if a preset takes more than the bound. After a stop, the
same command continues with the next preset.
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
from benchmarks.origin import Row, filled, origin

ROWS = 41_000
BOUND_MB = 1280
"""Most memory a preset may take: a laptop of 4 GB has that much free beside a browser."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure every preset and write the result file."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.memory",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--root", type=Path, required=True, help="folder of CIFAR-10")
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
    """Return the peak memory of one epoch with the preset."""
    with tempfile.TemporaryDirectory() as work:
        words = ("--data", "cifar10", "--root", root, "--preset", preset, "--epochs", "1")
        output = ("-o", Path(work) / preset, "--device", "cpu", "--quiet")
        peak = stage(ROWS, "fit", *words, *output, "--allow-degenerate")["peak_mb"]
    print(f"{preset}: at most {peak:.0f} MB", flush=True)
    return {"preset": preset, "peak_mb": peak}


if __name__ == "__main__":
    sys.exit(main())
