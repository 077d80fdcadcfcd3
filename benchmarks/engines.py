"""Torch, an exported file, int8, and Ray: do they rank alike, how fast, with how much memory?

    python -m benchmarks.engines                   a generated scene
    python -m benchmarks.engines --root DATA       and crops of DATA/harvey
    python -m benchmarks.engines --docs            the page alone, from the result file

Images are ranked several times by the same small network: with the run folder (torch), with its
exported file (onnxruntime), with that in eight-bit integers, and by Ray with two workers where Ray
is installed. All but int8 must give the scores of the first within 0.0001, or nothing is written.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.command import REPOSITORY
from benchmarks.origin import Row, origin
from onesided.storage.atomic import read_json, write_json, write_text

RESULT = REPOSITORY / "benchmarks" / "results" / "engines.json"
PAGE = REPOSITORY / "docs" / "benchmarks" / "engines.md"
SIDE = 32
TOLERANCE = 1e-4
TORCH, FILE, INT8, RAY = "torch", "exported file", "exported file, int8", "Ray, two workers, torch"
MEMORY = "what they share counted once"
EARLIER = {"scene": "drawn roofs", "memory": "what is shared with any process divided"}
"""What files say that were measured before they said it."""
FIT = ("--method", "nnpu", "--prior", "0.3", "--epochs", "3", "--quiet", "--allow-degenerate")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, write the result file and the page."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.engines",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--images", type=int, default=2000, help="in each scene")
    options.add_argument("--root", type=Path, help="folder that holds harvey/")
    options.add_argument("--docs", action="store_true", help="write the page; measure nothing")
    given = options.parse_args(argv)
    if not given.docs:
        began = origin()
        rows = measured_scene(given.images, None)
        if given.root is not None:
            rows += measured_scene(given.images, given.root / "harvey")
        head = {"name": "engines", "origin": began, "fit": FIT, "memory": MEMORY}
        write_json(RESULT, {**head, "rows": rows})
    write_text(PAGE, page(read_json(RESULT)))
    return 0


def measured_scene(images: int, crops: Path | None) -> list[Row]:
    """Return a row for each way, on drawn roofs or on crops of buildings."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        # The test part of Harvey holds a thousand crops without damage, so most are damaged.
        for part, count, damaged in (("P", 60, 1.0), ("U", 400, 0.3), ("items", images, 0.6)):
            if crops is None:
                draw(work / part, count, damaged=damaged)
            else:
                link(work / part, crops / ("test" if part == "items" else "train"), count, damaged)
        command("fit", "-p", work / "P", "-u", work / "U", "-o", work / "run", *FIT)
        command("export", work / "run", "-o", work / "m.onnx", "--quiet")
        sample = ("--int8", "--sample", work / "U")
        command("export", work / "run", "-o", work / "m8.onnx", *sample, "--quiet")
        rows = [
            measured(work, TORCH, work / "run"),
            measured(work, FILE, work / "m.onnx"),
            measured(work, INT8, work / "m8.onnx"),
        ]
        if find_spec("ray") is None:
            rows.append({"way": RAY, "not_run": "Ray was not installed"})
        else:
            by_ray = ("--engine", "ray", "--workers", "2")
            rows.append(measured(work, RAY, work / "run", *by_ray))
        compare(work, rows)
    scene = "drawn roofs" if crops is None else "crops of Harvey"
    return [{"scene": scene, "images": images, **row} for row in rows]


def compare(work: Path, rows: list[Row]) -> None:
    """Add to each row how far its scores are from those of the first, which is torch."""
    first = scores(work / f"{TORCH}.csv")
    for row in rows:
        if "not_run" in row:
            continue
        found = scores(work / f"{row['way']}.csv")
        assert found.keys() == first.keys(), "every item is there, once"
        row["difference"] = max(abs(found[name] - first[name]) for name in first)
        if row["way"] != INT8 and row["difference"] > TOLERANCE:
            raise SystemExit(f"{row['way']}: scores differ by {row['difference']}")


def link(folder: Path, crops: Path, count: int, damaged: float) -> None:
    """Link crops of both classes, the first by name of each that a seed has shuffled."""
    folder.mkdir()
    random = np.random.default_rng(count)
    positives = round(count * damaged)
    for kind, wanted in (("damage", positives), ("no_damage", count - positives)):
        files = sorted((crops / kind).iterdir())
        if len(files) < wanted:
            raise SystemExit(f"{crops.name}/{kind} holds {len(files)} crops; {wanted} are needed.")
        for place in random.permutation(len(files))[:wanted]:
            (folder / f"{kind}-{files[place].name}").symlink_to(files[place].resolve())


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
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    ended.set()
    watcher.join()
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"ranking failed: {way}")
    row: Row = {"way": way, "seconds": round(seconds, 1), "peak_mb": round(peak[0])}
    if way != RAY:  # its workers are no children of the command
        row["cpu_seconds"] = round(usage.ru_utime + usage.ru_stime, 2)
    print(row, flush=True)
    return row


def memory_below(root: int) -> float:
    """Return the memory of a process and its descendants in MB, what they share counted once."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        parents[int(status.parent.name)] = int(fields[1])
    private, shared = 0.0, 0.0
    for pid in parents:
        above = pid
        while above > 1 and above != root:
            above = parents.get(above, 0)
        if above == root:
            own, others = memory_of(pid)
            private, shared = private + own, max(shared, others)
    return private + shared


def memory_of(pid: int) -> tuple[float, float]:
    """Return a process's own memory in MB, and what it shares with any other process."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0, 0.0
    kilobytes = {
        name: int(rest.split()[0]) for name, _, rest in (x.partition(":") for x in lines[1:])
    }
    private, shared = (
        kilobytes.get(f"{kind}_Clean", 0) + kilobytes.get(f"{kind}_Dirty", 0)
        for kind in ("Private", "Shared")
    )
    return private / 1024, shared / 1024


def scores(path: Path) -> dict[str, float]:
    """Return the score of each item of a ranking."""
    with path.open(newline="", encoding="utf-8") as file:
        return {row["item"]: float(row["score"]) for row in csv.DictReader(file)}


def page(content: Row) -> str:
    """Return the page."""
    machine, memory = content["origin"]["machine"], content.get("memory", EARLIER["memory"])
    rows = [{"scene": EARLIER["scene"], **content, **row} for row in content["rows"]]
    lines = [
        "<!-- Generated by `python -m benchmarks.engines --docs` from "
        "benchmarks/results/engines.json; do not edit. -->",
        "# Torch, an exported file, int8, Ray",
        "",
        "The same images ranked by the same small network in several ways, one after another, on "
        f"{machine['cores']} cores ({machine['cpu']}) that other work shared. Seconds hold the "
        "start of the command, and of Ray; seconds of processor are not affected as much by other "
        f"work. Memory is that of all processes of the command, {memory}. The largest difference "
        "of a score is to torch.",
        "",
        *(["These numbers are of code that was not committed.", ""] * _is_dirty(content)),
        "| images | way | seconds | seconds of processor | images per second of processor, torch "
        "= 1 | peak memory in MB | largest difference |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        start = f"| {row['images']:,} {row['scene']} | {row['way']} "
        if "not_run" in row:
            lines.append(f"{start}| not run: {row['not_run']} | | | | |")
            continue
        cpu, ratio = "", ""
        if "cpu_seconds" in row:
            torch = next(one for one in rows if one["scene"] == row["scene"])
            cpu = f"{row['cpu_seconds']:g}"
            ratio = f"{torch['cpu_seconds'] / row['cpu_seconds']:.1f}"
        lines.append(
            f"{start}| {row['seconds']:g} | {cpu} | {ratio} | {row['peak_mb']} | "
            f"{row['difference']:.1g} |"
        )
    return "\n".join([*lines, ""])


def _is_dirty(content: Row) -> bool:
    return content["origin"]["dirty"] is not False


if __name__ == "__main__":
    sys.exit(main())
