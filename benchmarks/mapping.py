"""How fast are buildings cropped from a large image, and does memory grow with their number?

python -m benchmarks.mapping              20 000 x 20 000 pixels, 2 000 and 20 000 buildings
python -m benchmarks.mapping --quick      a small image, in seconds, no result file

The image is a tiled GeoTIFF of three bands, generated block by block in a temporary folder (about
a gigabyte). The footprints are squares of 12 to 40 metres in longitude and latitude, in random
order. Each number of buildings runs in its own process, because peak memory is per process.

A guard for the cache: cutting from a compressed image may take at most twice the CPU time of
cutting from the same image uncompressed. Without a cache every building decodes its blocks again,
which takes several times as long. The benchmark fails where that happens, on any machine.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import REPOSITORY
from benchmarks.origin import origin
from onesided.geo.input.coordinates import converted, system
from onesided.geo.input.footprints import Buildings
from onesided.geo.scene.chips import cut_chips
from onesided.geo.scene.footprint_scene import open_scene
from onesided.storage.atomic import write_json
from onesided.storage.optional import library

RESULT = "mapping.json"
WEST, NORTH, METRES_PER_PIXEL, BLOCK = 250_000.0, 3_300_000.0, 0.5, 512
IMAGE_SYSTEM, FOOTPRINTS_SYSTEM = "EPSG:32615", "EPSG:4326"
CHIP = 64
GUARD_SIDE, GUARD_BUILDINGS, GUARD_LEVELS, MOST_TIMES = 3_072, 1_500, 8, 2.0
"""Pixels, buildings and grey levels of the guard, and how many times as long cutting from a
compressed image may take."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure each number of buildings in its own process; write the result file of a full run."""
    options = parser().parse_args(argv)
    if options.measure is not None:
        print(json.dumps(measure(options.image, options.measure, options.side)))
        return 0
    side = 2_000 if options.quick else options.side
    counts = [100, 1_000] if options.quick else options.buildings
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        image = Path(folder) / "post.tif"
        began = time.perf_counter()
        write_image(image, side)
        print(f"{side} x {side} pixels written in {time.perf_counter() - began:.0f} s", flush=True)
        records = [in_own_process(image, count, side) for count in counts]
        cache = guard(Path(folder))
    for record in records:
        print(
            f"{record['buildings']:>7} buildings  {record['crops_per_second']:8.0f} per second  "
            f"peak memory {record['peak_megabytes']:6.0f} MB  skipped {record['skipped']}"
        )
    print(
        f"cutting from a compressed image takes {cache['times']:.1f} times as long "
        f"(at most {MOST_TIMES:g} are allowed)"
    )
    if not options.quick:
        content = {"name": "mapping", "side": side, "chip": CHIP, "origin": origin()}
        content |= {"records": records, "cache": cache}
        write_json(REPOSITORY / "benchmarks" / "results" / RESULT, content)
    return int(cache["times"] > MOST_TIMES)


def guard(folder: Path) -> dict[str, float]:
    """Return the CPU seconds of cutting from a plain and from a compressed image of one place."""
    buildings = footprints(GUARD_BUILDINGS, GUARD_SIDE)
    seconds = {}
    for name, compress in (("plain", None), ("compressed", "deflate")):
        image = folder / f"{name}.tif"
        write_image(image, GUARD_SIDE, compress=compress, levels=GUARD_LEVELS)
        with ExitStack() as stack, tempfile.TemporaryDirectory(dir=folder) as chips:
            scene = open_scene(stack, buildings, [image])
            began = time.process_time()
            cut_chips(scene, Path(chips), size=CHIP)
            seconds[f"{name}_cpu_seconds"] = round(time.process_time() - began, 2)
    times = seconds["compressed_cpu_seconds"] / seconds["plain_cpu_seconds"]
    return {**seconds, "times": round(times, 2)}


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="python -m benchmarks.mapping", description=__doc__)
    options.formatter_class = argparse.RawDescriptionHelpFormatter
    options.add_argument("--quick", action="store_true", help="a small image, no result file")
    options.add_argument("--side", type=int, default=20_000, help="side of the image in pixels")
    options.add_argument("--buildings", type=int, nargs="+", default=[2_000, 20_000])
    options.add_argument("--work", type=Path, help="folder for the image; by default the system's")
    options.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    options.add_argument("--image", type=Path, help=argparse.SUPPRESS)
    return options


def write_image(path: Path, side: int, *, compress: str | None = None, levels: int = 256) -> None:
    """Write a tiled GeoTIFF of noise, a block at a time; 256 levels cannot be compressed."""
    rasterio = library("rasterio", "The benchmark")
    windows = library("rasterio.windows", "The benchmark")
    random = np.random.default_rng(0)
    transform = rasterio.Affine(METRES_PER_PIXEL, 0, WEST, 0, -METRES_PER_PIXEL, NORTH)
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        width=side,
        height=side,
        count=3,
        dtype="uint8",
        crs=IMAGE_SYSTEM,
        transform=transform,
        tiled=True,
        blockxsize=BLOCK,
        blockysize=BLOCK,
        interleave="pixel",
        compress=compress,
        BIGTIFF="IF_SAFER",
    ) as file:
        for top in range(0, side, BLOCK):
            for left in range(0, side, BLOCK):
                height, width = min(BLOCK, side - top), min(BLOCK, side - left)
                block = random.integers(0, levels, (3, height, width), dtype=np.uint8)
                file.write(block, window=windows.Window(left, top, width, height))


def footprints(count: int, side: int) -> Buildings:
    """Return squares of 12 to 40 metres anywhere in the image, in degrees."""
    shapely = library("shapely", "The benchmark")
    random = np.random.default_rng(1)
    metres = side * METRES_PER_PIXEL
    width = random.uniform(12, 40, count)
    west = WEST + random.uniform(0, metres - 40, count)
    south = NORTH - metres + random.uniform(0, metres - 40, count)
    squares = shapely.box(west, south, west + width, south + width)
    target = system(FOOTPRINTS_SYSTEM)
    shapes = converted(squares, system(IMAGE_SYSTEM), target)
    return Buildings(tuple(map(str, range(count))), shapes, target, {})


def measure(image: Path, count: int, side: int) -> dict[str, Any]:
    """Crop so many buildings from the image; return speed and peak memory."""
    buildings = footprints(count, side)
    with ExitStack() as stack, tempfile.TemporaryDirectory(dir=image.parent) as folder:
        began = time.perf_counter()
        scene = open_scene(stack, buildings, [image])
        opened = time.perf_counter()
        chips = cut_chips(scene, Path(folder), size=CHIP)
        done = time.perf_counter()
    return {
        "buildings": count,
        "skipped": len(chips.reasons),
        "open_seconds": round(opened - began, 2),
        "cut_seconds": round(done - opened, 2),
        "crops_per_second": round(count / (done - opened), 1),
        # Kilobytes on Linux, bytes on macOS.
        "peak_megabytes": round(
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            / (2**20 if sys.platform == "darwin" else 1024)
        ),
        "image_megabytes": round(image.stat().st_size / 2**20),
    }


def in_own_process(image: Path, count: int, side: int) -> dict[str, Any]:
    """Measure in another process."""
    words = ["--measure", str(count), "--image", str(image), "--side", str(side)]
    command = [sys.executable, "-m", "benchmarks.mapping", *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    record: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return record


if __name__ == "__main__":
    sys.exit(main())
