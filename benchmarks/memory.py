"""How much memory a run on CIFAR-10 takes at most, with the network and batches of each preset.

    python -m benchmarks.memory --root DATA

One epoch each, in a process of its own, whose peak of memory the system tells: later epochs
allocate nothing that the first did not.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.budget import STUDIES
from benchmarks.command import REPOSITORY
from benchmarks.folders import stage
from benchmarks.origin import origin
from onesided.run.folder import RunFolder

ROWS = 41_000


def main(argv: Sequence[str] | None = None) -> int:
    """Measure every preset and write the result file."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.memory",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--root", type=Path, required=True, help="folder that holds CIFAR-10")
    root = options.parse_args(argv).root
    started, rows = origin(), []
    with tempfile.TemporaryDirectory() as work:
        for preset in STUDIES:
            words = ("--data", "cifar10", "--root", root, "--preset", preset, "--epochs", "1")
            output = ("-o", Path(work) / preset, "--device", "cpu", "--quiet")
            used = stage(ROWS, "fit", *words, *output, "--allow-degenerate")
            rows.append({"preset": preset, "peak_mb": used["peak_mb"]})
            print(f"{preset}: at most {used['peak_mb']:.0f} MB")
    content = {"name": "memory", "origin": started, "rows": rows}
    RunFolder(REPOSITORY / "benchmarks" / "results", "").write_json("memory.json", content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
