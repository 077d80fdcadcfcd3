"""How fast is a region mapped, and does memory grow with the number of its buildings?

    python -m benchmarks.regions                     5,000, 100,000 and 1,000,000 buildings
    python -m benchmarks.regions --buildings 5000    the file then holds these rows alone
    python -m benchmarks.regions --docs              write docs/benchmarks/regions.md
    python -m benchmarks.regions --quick             300 buildings, no result file

The image is a VRT of 50,000 by 50,000 pixels that repeats one generated tile. The footprints are a
FlatGeobuf file of squares of 12 to 40 metres in random order. The model is a small network on chips
of 16 pixels, trained on a small place before: what is measured is sorting, cutting and writing, and
a larger network takes longer by its own cost for each building. The page has room for 10 MB of
images; with 500, the default, their tiles take a minute more at any number of buildings. Each row
is a process of its own.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import REPOSITORY
from benchmarks.origin import filled, origin
from benchmarks.peak import peak_megabytes
from benchmarks.scenes import (
    CRS,
    METRES_PER_PIXEL,
    NORTH,
    WEST,
    write_image,
    write_scene,
)
from benchmarks.tables import markdown
from onesided.core.errors import OnesidedError
from onesided.storage.atomic import read_json, write_text
from onesided.storage.optional import library

RESULT = "regions.json"
TILE, REPEATS = 2_000, 25
BATCH = 50_000
PAGE_MEGABYTES = 10


def main(argv: Sequence[str] | None = None) -> int:
    """Measure each number of buildings in its own process, or write the page."""
    options = parser().parse_args(argv)
    file = REPOSITORY / "benchmarks" / "results" / RESULT
    try:
        if options.measure is not None:
            print(json.dumps(measured(options.work, options.measure, options.part)))
            return 0
        if options.quick:
            with tempfile.TemporaryDirectory() as folder:
                prepare(Path(folder), [300])
                print(in_own_process(Path(folder), "300"))
            return 0
        if not options.docs:
            asked = [str(count) for count in options.buildings]
            asked += [f"{count} part 1/4" for count in asked]
            head = {
                "title": "Regions",
                "side": TILE * REPEATS,
                "chip": 16,
                "page_megabytes": PAGE_MEGABYTES,
                "origin": origin(),
            }
            options.work.mkdir(parents=True, exist_ok=True)
            prepare(options.work, options.buildings)
            filled(
                file,
                head,
                key="name",
                asked=asked,
                measure=lambda name: in_own_process(options.work, name),
            )
        content = read_json(file)
    except OnesidedError as error:
        print(f"benchmarks.regions: {error}", file=sys.stderr)
        return error.exit_code
    print(page(content))
    if options.docs:
        write_text(REPOSITORY / "docs" / "benchmarks" / "regions.md", page(content))
    return 0


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="python -m benchmarks.regions", description=__doc__)
    options.formatter_class = argparse.RawDescriptionHelpFormatter
    options.add_argument("--buildings", type=int, nargs="+", default=[5_000, 100_000, 1_000_000])
    options.add_argument("--work", type=Path, default=Path("runs/benchmarks/regions"))
    options.add_argument("--docs", action="store_true", help="write the page; run nothing")
    options.add_argument("--quick", action="store_true", help="300 buildings, no result file")
    options.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    options.add_argument("--part", help=argparse.SUPPRESS)
    return options


def prepare(work: Path, counts: Sequence[int]) -> None:
    """Write the image, the footprints, and a small model, unless they are there."""
    if not (work / "region.vrt").is_file():
        write_vrt(work)
    for count in counts:
        path = work / f"{count}.fgb"
        if not path.is_file():
            write_footprints(path, count)
    if not (work / "town-run" / "model.json").is_file():
        scene = write_scene(work / "town", "fire", seed=0, across=12, share=0.3, marked=24)
        run_onesided(
            *("--image", scene.post, "--footprints", scene.footprints),
            *("--positives", scene.marked, "-o", work / "town.gpkg"),
            *("--method", "ce", "--epochs", "2", "--size", "16", "--set", "backbone.width=0.25"),
        )


def write_vrt(work: Path) -> None:
    """Write one tile, and a VRT that repeats it."""
    rasterio = library("rasterio", "The benchmark")
    random = np.random.default_rng(0)
    coarse = random.integers(40, 220, (3, TILE // 8, TILE // 8), dtype=np.uint8)
    pixels = np.kron(coarse, np.ones((1, 8, 8), np.uint8))
    write_image(work / "tile.tif", pixels)
    with rasterio.open(work / "tile.tif") as file:
        system = file.crs.to_wkt()
    sources = "".join(
        f'<SimpleSource><SourceFilename relativeToVRT="1">tile.tif</SourceFilename>'
        f"<SourceBand>BAND</SourceBand>"
        f'<SrcRect xOff="0" yOff="0" xSize="{TILE}" ySize="{TILE}"/>'
        f'<DstRect xOff="{column * TILE}" yOff="{row * TILE}" xSize="{TILE}" ySize="{TILE}"/>'
        "</SimpleSource>"
        for row in range(REPEATS)
        for column in range(REPEATS)
    )
    bands = "".join(
        f'<VRTRasterBand dataType="Byte" band="{band}">'
        f"{sources.replace('BAND', str(band))}</VRTRasterBand>"
        for band in (1, 2, 3)
    )
    side, step = TILE * REPEATS, METRES_PER_PIXEL
    (work / "region.vrt").write_text(
        f'<VRTDataset rasterXSize="{side}" rasterYSize="{side}"><SRS>{system}</SRS>'
        f"<GeoTransform>{WEST}, {step}, 0, {NORTH}, 0, {-step}</GeoTransform>{bands}</VRTDataset>"
    )


def write_footprints(path: Path, count: int) -> None:
    """Write squares anywhere in the image, in batches."""
    arrow, pyogrio = library("pyarrow", "The benchmark"), library("pyogrio", "The benchmark")
    shapely = library("shapely", "The benchmark")
    random = np.random.default_rng(1)
    metres = TILE * REPEATS * METRES_PER_PIXEL

    def batches() -> Iterator[Any]:
        for first in range(0, count, BATCH):
            some = min(BATCH, count - first)
            width = random.uniform(12, 40, some)
            west = WEST + random.uniform(0, metres - 40, some)
            north = NORTH - random.uniform(0, metres - 40, some)
            shapes = shapely.to_wkb(shapely.box(west, north - width, west + width, north))
            names = [f"b{number:08d}" for number in range(first, first + some)]
            yield arrow.record_batch(
                {"id": arrow.array(names), "geometry": arrow.array(shapes.tolist())}
            )

    schema = arrow.schema([("id", arrow.string()), ("geometry", arrow.binary())])
    reader = arrow.RecordBatchReader.from_batches(schema, batches())
    pyogrio.write_arrow(
        reader,
        path,
        driver="FlatGeobuf",
        geometry_name="geometry",
        geometry_type="Polygon",
        crs=CRS,
    )


def run_onesided(*words: str | Path) -> None:
    """Run `onesided map` quietly."""
    command = [sys.executable, "-m", "onesided", "map", *map(str, words)]
    done = subprocess.run([*command, "--allow-degenerate", "--quiet"], check=False)
    if done.returncode:
        raise OnesidedError(f"{' '.join(command[2:])} failed; see above.")


def in_own_process(work: Path, name: str) -> dict[str, Any]:
    """Measure in another process: peak memory is per process."""
    count, _, part = name.partition(" part ")
    words = ["--measure", count, "--work", str(work), *(["--part", part] if part else [])]
    command = [sys.executable, "-m", "benchmarks.regions", *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise OnesidedError(f"{name}: {done.stderr.strip().splitlines()[-1]}")
    return {"name": name, **json.loads(done.stdout.splitlines()[-1])}


def measured(work: Path, count: int, part: str | None) -> dict[str, Any]:
    """Map a region, or a part of it; return speed and peak memory."""
    import torch

    from onesided.jobs.map import map_buildings

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(dir=work) as folder:
        began, cpu = time.perf_counter(), time.process_time()
        map_buildings(
            image=work / "region.vrt",
            footprints=work / f"{count}.fgb",
            model=work / "town-run",
            output=Path(folder) / "map.gpkg",
            formats=None if part else "parquet",
            region=True,
            part=part,
            page_megabytes=PAGE_MEGABYTES,
        )
        seconds, used = time.perf_counter() - began, time.process_time() - cpu
    share = 1 if part is None else 1 / int(part.partition("/")[2])
    return {
        "buildings": count,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(used, 1),
        "buildings_per_cpu_second": round(share * count / used, 1),
        "peak_megabytes": peak_megabytes(),
    }


def page(content: dict[str, Any]) -> str:
    """Return the page."""
    machine, side = content["origin"]["machine"], content["side"]
    return "\n".join(
        [
            f"# {content['title']}",
            "",
            "<!-- python -m benchmarks.regions --docs wrote this from "
            f"benchmarks/results/{RESULT} -->",
            "",
            f"Buildings scattered over a generated image of {side:,} by {side:,} pixels, scored in "
            "pieces by a small network and written as GeoPackage, GeoParquet and a page with "
            f"{content['page_megabytes']} MB of images; of a part only the scores are written. "
            "CPU seconds are those of one core. A larger network takes "
            "longer by its own cost for each building.",
            "",
            markdown(
                ("buildings", "seconds", "CPU seconds", "buildings per CPU second", "peak memory"),
                [
                    (
                        row["name"],
                        f"{row['seconds']:.0f}",
                        f"{row['cpu_seconds']:.0f}",
                        f"{row['buildings_per_cpu_second']:.0f}",
                        f"{row['peak_megabytes']} MB",
                    )
                    for row in content["rows"]
                ],
            ),
            "",
            f"Measured on {machine['cpu']}, {machine['cores']} cores, which other work shared; "
            f"commit {content['origin']['commit'][:12]}, {content['origin']['date'][:10]}.",
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
