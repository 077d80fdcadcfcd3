"""How long does ranking a large Parquet table take, and how much memory?

    python -m benchmarks.big_table
    python -m benchmarks.big_table --rows 1000 3000     other sizes; into the same file
    python -m benchmarks.big_table --docs               the page alone, from the result file

Tables of 64 random numbers per row are written, a linear model is fitted to a small one, and each
is ranked into a Parquet file, by the commands that people use. The system reports the peak memory
of each. Sizes a factor of ten apart show whether memory grows with the rows. After a stop, the
same command continues with the next size.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks.command import REPOSITORY
from benchmarks.folders import stage
from benchmarks.origin import Row, filled, origin
from onesided.storage.atomic import read_json, write_text
from onesided.storage.optional import library

RESULT = REPOSITORY / "benchmarks" / "results" / "big_table.json"
PAGE = REPOSITORY / "docs" / "benchmarks" / "big_table.md"
TRAINING = 20_000
WIDTH = 64
SIZES = (1_000_000, 3_000_000, 10_000_000)
BATCH = 2**16


def main(argv: Sequence[str] | None = None) -> int:
    """Measure all sizes, write the result file and the page."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.big_table",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--rows", type=int, nargs="+", default=SIZES)
    options.add_argument("--work", type=Path, default=None, help="folder for the tables")
    options.add_argument("--docs", action="store_true", help="write the page; measure nothing")
    given = options.parse_args(argv)
    if not given.docs:
        head = {"name": "big_table", "width": WIDTH, "origin": origin()}
        with tempfile.TemporaryDirectory(dir=given.work) as work:
            filled(
                RESULT,
                head,
                key="rows",
                asked=given.rows,
                measure=lambda rows: measured(Path(work), rows),
            )
    write_text(PAGE, page(read_json(RESULT)))
    return 0


def measured(work: Path, rows: int) -> Row:
    """Return minutes and peak memory of ranking so many rows."""
    training, items, output = (work / f"{name}.parquet" for name in ("training", "items", "ranked"))
    for path, count, labels in ((training, TRAINING, True), (items, rows, False)):
        apart(write_table, path, count, labels)
    size, model = items.stat().st_size, work / f"run-{rows}"
    words = ("--method", "linear", "--set", "method.penalty=0.1", "-o", model)
    stage(TRAINING, "fit", "--table", training, *words, "--quiet")
    ranked = stage(rows, "rank", model, items, "-o", output, "--quiet")
    apart(check_ranking, output, rows)
    items.unlink()  # gigabytes
    print(f"{rows} rows: {ranked}", flush=True)
    return {
        "rows": rows,
        "table_mb": round(size / 1e6),
        "seconds": round(ranked["seconds"], 1),
        "cpu_seconds": round(ranked["cpu_seconds"], 1),
        "peak_mb": round(ranked["peak_mb"]),
    }


def apart(work: Callable[..., None], *given: object) -> None:
    """Do it in another process: a command's peak begins with what its parent holds."""
    process = get_context("spawn").Process(target=work, args=given)
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{work.__name__} failed")


def check_ranking(path: Path, rows: int) -> None:
    """Refuse a ranking that lost a row, or is not in the order of scores."""
    file = library("pyarrow.parquet", "The benchmark").ParquetFile(path)
    before, found = 1.0, 0
    for batch in file.iter_batches(BATCH, columns=["score", "rank"]):
        scores, ranks = (batch.column(place).to_numpy() for place in (0, 1))
        assert (np.diff(scores, prepend=before) <= 0).all(), "best first"
        assert (ranks == np.arange(found, found + len(ranks)) + 1).all(), "every place, once"
        before, found = scores[-1], found + len(ranks)
    assert found == rows, "a ranking holds every row"


def write_table(path: Path, rows: int, labels: bool) -> None:
    """Write random numbers, of which positives are a little larger."""
    pyarrow = library("pyarrow", "The benchmark")
    parquet = library("pyarrow.parquet", "The benchmark")
    random = np.random.default_rng(0)
    names = [f"x{number}" for number in range(WIDTH)]
    kinds = [("id", pyarrow.string()), *((name, pyarrow.float32()) for name in names)]
    schema = pyarrow.schema([*kinds, *([("label", pyarrow.string())] if labels else [])])
    with parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, BATCH):
            count = min(BATCH, rows - start)
            positive = random.random(count) < 0.3
            numbers = random.standard_normal((count, WIDTH), np.float32) + positive[:, None]
            ids = [f"item-{row}" for row in range(start, start + count)]
            labelled = np.where(positive & (random.random(count) < 0.5), "positive", "unlabelled")
            arrays = [ids, *numbers.T, *([labelled.tolist()] if labels else [])]
            writer.write_table(pyarrow.table(arrays, schema=schema))


def page(content: Row) -> str:
    """Return the page."""
    machine, rows = content["origin"]["machine"], content["rows"]
    first, last = rows[0], rows[-1]
    growth = ""
    if len(rows) > 1:
        growth = (
            f" With {last['rows'] / first['rows']:g} times the rows, peak memory is "
            f"{last['peak_mb'] / first['peak_mb']:.2f} times as high."
        )
    lines = [
        "<!-- Generated by `python -m benchmarks.big_table --docs` from "
        "benchmarks/results/big_table.json; do not edit. -->",
        "# Large tables",
        "",
        f"`onesided rank RUN items.parquet -o ranked.parquet`, a linear model, rows of "
        f"{content['width']} numbers. Names, scores and the sort are on disk.{growth}",
        "",
        "| rows | table in MB | minutes | minutes of processor | rows per second | peak memory in "
        "MB |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row['rows']:,} | {row['table_mb']:,} | {row['seconds'] / 60:.1f} | "
            f"{row['cpu_seconds'] / 60:.1f} | {row['rows'] / row['seconds']:,.0f} | "
            f"{row['peak_mb']:,} |"
        )
    lines += [
        "",
        f"Measured on {machine['cpu']}, {machine['cores']} cores, which other work shared: minutes "
        "are upper bounds, minutes of processor are not affected as much.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
