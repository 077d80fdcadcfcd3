"""One process, an exported file, and Ray: do they rank alike, how fast, with how much memory?

    python -m benchmarks.engines

Buildings of a generated scene as images are ranked three times by the same model, in one run:
with the run folder (torch), with its exported file (onnxruntime), and by Ray with two workers.
"""

import argparse
import csv
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.command import REPOSITORY
from benchmarks.origin import Row, origin
from onesided.storage.atomic import write_json, write_text

RESULT = REPOSITORY / "benchmarks" / "results" / "engines.json"
PAGE = REPOSITORY / "docs" / "benchmarks" / "engines.md"
SIDE = 32


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, write the result file and the page."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.engines",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--images", type=int, default=20_000)
    given = options.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        draw(work / "P", 60, damaged=1.0)
        draw(work / "U", 400, damaged=0.3)
        draw(work / "items", given.images, damaged=0.3)
        command(
            "fit",
            "-p",
            work / "P",
            "-u",
            work / "U",
            "--method",
            "nnpu",
            "--prior",
            "0.3",
            "--epochs",
            "3",
            "--quiet",
            "--allow-degenerate",
            "-o",
            work / "run",
        )
        command("export", work / "run", "-o", work / "model.onnx", "--quiet")
        by_ray = ("--engine", "ray", "--workers", "2")
        rows = [
            measured(work, "one process, torch", work / "run"),
            measured(work, "one process, exported file", work / "model.onnx"),
            measured(work, "Ray, two workers, torch", work / "run", *by_ray),
        ]
        first = scores(work / "one process, torch.csv")
        for row in rows:
            found = scores(work / f"{row['way']}.csv")
            assert found.keys() == first.keys(), "every item is there, once"
            row["difference"] = max(abs(found[name] - first[name]) for name in first)
    content = {"name": "engines", "origin": origin(), "images": given.images, "rows": rows}
    write_json(RESULT, content)
    write_text(PAGE, page(content))
    return 0


def draw(folder: Path, count: int, *, damaged: float) -> None:
    """Write roofs as images; the damaged ones are broken up by noise."""
    folder.mkdir()
    random = np.random.default_rng(count)
    for number in range(count):
        roof = np.full((SIDE, SIDE, 3), random.integers(90, 160, 3), np.float64)
        spread = 60 if random.random() < damaged else 12
        pixels = np.clip(roof + random.normal(0, spread, roof.shape), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:06d}.bmp")


def command(*words: object) -> None:
    """Run a command of onesided."""
    subprocess.run([sys.executable, "-m", "onesided", *map(str, words)], check=True)


def measured(work: Path, way: str, model: Path, *words: str) -> Row:
    """Return seconds, and the most memory that the command and all below it took together."""
    output = work / f"{way}.csv"
    given = ["rank", model, work / "items", "-o", output, "--quiet", *words]
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "onesided", *map(str, given)])
    peak, ended = [0.0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.25):
            peak[0] = max(peak[0], memory_below(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    code = process.wait()
    seconds = time.perf_counter() - began
    ended.set()
    watcher.join()
    if code:
        raise SystemExit(f"ranking failed: {way}")
    row = {"way": way, "seconds": round(seconds, 1), "peak_mb": round(peak[0])}
    print(row, flush=True)
    return row


def memory_below(root: int) -> float:
    """Return the memory of a process and its descendants in MB, shared parts divided."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        parents[int(status.parent.name)] = int(fields[1])
    total = 0.0
    for pid in parents:
        above = pid
        while above > 1 and above != root:
            above = parents.get(above, 0)
        if above == root:
            total += proportional(pid)
    return total


def proportional(pid: int) -> float:
    """Return a process's share of memory in MB."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    line = next((line for line in text.splitlines() if line.startswith("Pss:")), "Pss: 0")
    return int(line.split()[1]) / 1024


def scores(path: Path) -> dict[str, float]:
    """Return the score of each item of a ranking."""
    with path.open(newline="", encoding="utf-8") as file:
        return {row["item"]: float(row["score"]) for row in csv.DictReader(file)}


def page(content: Row) -> str:
    """Return the page."""
    machine, images = content["origin"]["machine"], content["images"]
    lines = [
        "<!-- Generated by `python -m benchmarks.engines` from benchmarks/results/engines.json; do "
        "not edit. -->",
        "# One process, an exported file, Ray",
        "",
        f"{images:,} images of {SIDE}x{SIDE} pixels of a generated scene, ranked by one small "
        f"network in one run, on {machine['cores']} cores ({machine['cpu']}) that other work "
        "shared. Seconds hold the start of the command, and of Ray. Memory is that of all "
        "processes together; the largest difference of a score is to the first row.",
        "",
        "| way | seconds | images per second | peak memory in MB | largest difference |",
        "|---|---|---|---|---|",
    ]
    for row in content["rows"]:
        lines.append(
            f"| {row['way']} | {row['seconds']:g} | {images / row['seconds']:,.0f} | "
            f"{row['peak_mb']} | {row['difference']:.1g} |"
        )
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main())
