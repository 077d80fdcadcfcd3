"""How much memory do folders of any size need, and how many files per second are processed?

python -m benchmarks.folders                     200 000 images, and a tenth of them
python -m benchmarks.folders --images 20000      fewer
python -m benchmarks.folders --quick             a few hundred, in a minute: does it work here?

It writes small images into a temporary folder, trains for one epoch with `onesided fit`, and ranks
the same images with `onesided rank`. Each runs in its own process, and the system reports its peak
memory. Both folders are decoded into a file, also the small one that would fit into memory, so
that the two are comparable. They share no cache. The exit code is 1 if a command takes more memory
than the bound. After a stop, the same command continues with the next folder.
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
from benchmarks.origin import Row, filled, origin

POSITIVES = 200
CHUNK = 4096
BOUND_MB = 960
"""Most memory a command may take, for up to 200 000 images of 64 pixels.

It is a quarter above the most that was measured (779 MB, by `fit`), like the bound of
`benchmarks.memory` (1280 for 1035 MB). That leaves room for another version of torch, but not for
all decoded images.
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
    """Return the highest peak memory of any command, in megabytes."""
    return max(float(row[name]["peak_mb"]) for row in rows for name in STAGES)


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="python -m benchmarks.folders", description=__doc__)
    options.formatter_class = argparse.RawDescriptionHelpFormatter
    options.add_argument("--images", type=int, default=200_000, help="images in the large folder")
    options.add_argument("--side", type=int, default=64, help="side of an image in pixels")
    options.add_argument("--work", type=Path, help="parent of the temporary folder")
    options.add_argument("--quick", action="store_true", help="600 images; writes no result file")
    return options


def measured(folder: Path, images: int, side: int) -> Row:
    """Write so many images into the folder; return what fit and rank took."""
    draw(folder / "P", POSITIVES, side)
    draw(folder / "U", images - POSITIVES, side)
    folders = ("-p", folder / "P", "-u", folder / "U", "-o", folder / "run")
    rank = ("rank", folder / "run", folder / "U", "-o", folder / "ranked.csv", "--quiet")
    decoded = images * 3 * side * side
    row = {
        "images": images,
        "decoded_mb": round(decoded / 2**20, 1),
        "fit": stage(images, "fit", *folders, *FIT),
        # The run is finished, so this measures reading from the cache alone.
        "fit_again": stage(images, "fit", *folders, *FIT),
        "rank": stage(images - POSITIVES, *rank),
    }
    shutil.rmtree(folder)
    return row


def stage(files: int, *words: object) -> dict[str, float]:
    """Run `onesided WORDS` in a process; return its peak memory, time, and files per second."""
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
    """Write different images without compression; two fifths of them are brighter."""
    folder.mkdir(parents=True)
    header = b"P6 %d %d 255\n" % (side, side)
    random = np.random.default_rng(count)
    size = 3 * side * side
    for start in range(0, count, CHUNK):
        noise = random.integers(0, 200, (min(CHUNK, count - start), size), dtype=np.uint8)
        bright = random.random(len(noise)) < 0.4
        noise[bright] += 55
        for number, pixels in enumerate(noise, start=start):
            # In subfolders, as people keep a hundred thousand files.
            path = folder / f"{number // 1000:04}" / f"{number:07}.ppm"
            if number % 1000 == 0:
                path.parent.mkdir()
            path.write_bytes(header + pixels.tobytes())


if __name__ == "__main__":
    sys.exit(main())
