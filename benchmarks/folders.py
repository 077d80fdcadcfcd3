"""How much memory folders of any size need, and how many files go through in a second.

python -m benchmarks.folders                     200 000 pictures, and a tenth of them
python -m benchmarks.folders --images 20000      fewer
python -m benchmarks.folders --quick             a few hundred, in a minute: does it work here?

Draws small pictures into a temporary folder, trains for one epoch by `onesided fit`, and ranks
the same pictures by `onesided rank`, each in a process of its own, whose peak of memory
the system tells. Both folders are decoded into a file, though the small one alone would stay
in memory: the two are compared. No cache is left from one for the other. The exit code is 1 if
a command takes more memory than the bound. The same command goes on after the last folder that
was measured; see `benchmarks.rows`.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.command import REPOSITORY
from benchmarks.origin import origin
from benchmarks.rows import Row, filled

POSITIVES = 200
CHUNK = 4096
BOUND_MB = 960
"""What no command may take, meant for 200 000 pictures of 64 pixels and fewer.

As far above the most that was measured (779 MB, by `fit`) as the bound of `benchmarks.memory` is
above its own (1280 to 1035 MB): room for another version of torch, but not for all the pictures
once they are decoded.
"""
STAGES = ("fit", "fit_again", "rank")
FIT = (
    *("--method", "ce", "--epochs", "1", "--set", "backbone.width=0.25"),
    *("--set", "train.batch_size=128", "--device", "cpu", "--allow-degenerate", "--quiet"),
)
PROGRAM = """
from onesided.data.read import cache
cache.WORTH_A_FILE = 0
from onesided.cli import main
main()
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure at a tenth of the number and at the number; write the result file."""
    options = parser().parse_args(argv)
    images = 600 if options.quick else options.images
    head = {
        "title": "Memory and speed on image folders",
        "fit": list(FIT),
        "side": options.side,
        "origin": origin(),
        "bound_mb": BOUND_MB,
    }
    with tempfile.TemporaryDirectory(dir=options.work) as work:
        results = Path(work) if options.quick else REPOSITORY / "benchmarks" / "results"
        content = filled(
            results / "folders.json",
            head,
            key="images",
            asked=(max(images // 10, POSITIVES + 50), images),
            measure=lambda count: measured(Path(work) / str(count), count, options.side),
        )
    print(json.dumps(content, indent=2))
    return int(highest_peak(content["rows"]) > BOUND_MB)


def highest_peak(rows: Sequence[Row]) -> float:
    """Return the most memory that any command took, in megabytes."""
    return max(float(row[name]["peak_mb"]) for row in rows for name in STAGES)


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="python -m benchmarks.folders", description=__doc__)
    options.formatter_class = argparse.RawDescriptionHelpFormatter
    options.add_argument("--images", type=int, default=200_000, help="pictures in the large folder")
    options.add_argument("--side", type=int, default=64, help="pixels of a picture's side")
    options.add_argument("--work", type=Path, help="where the temporary folder goes")
    options.add_argument("--quick", action="store_true", help="600 pictures; writes no result file")
    return options


def measured(folder: Path, images: int, side: int) -> Row:
    """Return what fit and rank took for this number of pictures, drawn into the folder."""
    draw(folder / "P", POSITIVES, side)
    draw(folder / "U", images - POSITIVES, side)
    folders = ("-p", folder / "P", "-u", folder / "U", "-o", folder / "run")
    rank = ("rank", folder / "run", folder / "U", "-o", folder / "ranked.csv", "--quiet")
    decoded = images * 3 * side * side
    row = {
        "images": images,
        "decoded_mb": round(decoded / 2**20, 1),
        "fit": stage(images, "fit", *folders, *FIT),
        # The run is done, so this is what reading from the cache alone costs.
        "fit_again": stage(images, "fit", *folders, *FIT),
        "rank": stage(images - POSITIVES, *rank),
    }
    shutil.rmtree(folder)
    return row


def stage(files: int, *words: object) -> dict[str, float]:
    """Run `onesided WORDS` in a process; return its peak of memory, time, and files per second."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, words)], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"onesided {' '.join(map(str, words))} failed")
    return {
        "peak_mb": round(usage.ru_maxrss / 1024, 1),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "files_per_second": round(files / seconds, 1),
    }


def draw(folder: Path, count: int, side: int) -> None:
    """Write pictures without compression, all different, brighter among the positives."""
    folder.mkdir(parents=True)
    header = b"P6 %d %d 255\n" % (side, side)
    random = np.random.default_rng(count)
    size = 3 * side * side
    for start in range(0, count, CHUNK):
        noise = random.integers(0, 200, (min(CHUNK, count - start), size), dtype=np.uint8)
        bright = random.random(len(noise)) < 0.4
        noise[bright] += 55
        for place, pixels in enumerate(noise, start=start):
            # As people keep them: a hundred thousand files are in folders within the folder.
            path = folder / f"{place // 1000:04}" / f"{place:07}.ppm"
            if place % 1000 == 0:
                path.parent.mkdir()
            path.write_bytes(header + pixels.tobytes())


if __name__ == "__main__":
    sys.exit(main())
