"""The command line that every benchmark shares."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.grid import Folders, Grid
from benchmarks.names import read_content
from benchmarks.runs import run_grid
from benchmarks.tables import Paper, page, tables
from onesided.core.config import read_toml
from onesided.core.errors import DataNotFound, OnesidedError
from onesided.core.freed_memory import keep_freed_memory
from onesided.storage.atomic import write_text

REPOSITORY = Path(__file__).parent.parent
SEEDS = (0, 1, 2)


def main(real: Grid, quick: Grid, argv: Sequence[str] | None = None) -> int:
    """Run a benchmark, print its table, or write its page; return the exit code.

    Args:
        real: The benchmark.
        quick: The same on toy data, in seconds, to test that it works.
        argv: Words of the command line, without the program's name.
    """
    options = parser(real).parse_args(argv)
    keep_freed_memory()  # as `onesided` does
    try:
        return _run(options, quick if options.quick else real)
    except OnesidedError as error:
        print(f"benchmarks.{real.name}: {error}", file=sys.stderr)
        return error.exit_code


def root_unless_docs(name: str, description: str, argv: Sequence[str] | None) -> Path | None:
    """Return the folder of the data, or None where only the page is asked for."""
    options = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--root", type=Path, help="folder of the data sets")
    options.add_argument("--docs", action="store_true", help="write the page, measure nothing")
    asked = options.parse_args(argv)
    if asked.root is None and not asked.docs:
        options.error("give the folder of the data sets with --root")
    root: Path | None = None if asked.docs else asked.root
    return root


def parser(grid: Grid) -> argparse.ArgumentParser:
    """Return the options of a benchmark."""
    options = argparse.ArgumentParser(
        prog=grid.command,
        description=f"{grid.title}. After a stop, the same command resumes.",
    )
    instead = options.add_mutually_exclusive_group()
    instead.add_argument(
        "--table", action="store_true", help="print the table of the result file; run nothing"
    )
    instead.add_argument(
        "--docs", action="store_true", help="write the page from the result file; run nothing"
    )
    options.add_argument("--root", type=Path, help="folder of the data sets")
    options.add_argument("--only", help=f"one data set: {', '.join(grid.data_names)}")
    options.add_argument("--rows", help="labels of some rows, separated by commas")
    options.add_argument("--seeds", type=seeds, default=SEEDS, help="such as 0,1,2, the default")
    options.add_argument("--work", type=Path, help="folder of the runs")
    options.add_argument("--quick", action="store_true", help="toy data, a few steps, seconds")
    return options


def seeds(text: str) -> tuple[int, ...]:
    """Return the seeds of a list such as 0,1,2."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts) or len(set(parts)) < len(parts):
        raise argparse.ArgumentTypeError(
            f"seeds are different whole numbers separated by commas, such as 0,1,2; got {text!r}"
        )
    return tuple(map(int, parts))


def paper_figures(name: str) -> Paper:
    """Return the published figures for one benchmark, with their source."""
    content = read_toml(Path(__file__).with_name("paper.toml"))
    shared = {key: value for key, value in content.items() if not isinstance(value, dict)}
    return {**shared, **content.get(name, {})}


def _run(options: argparse.Namespace, grid: Grid) -> int:
    folders = _folders(options, grid)
    results = folders.results / f"{grid.name}.json"
    paper = paper_figures(grid.name)
    if (options.docs or options.table) and not results.exists():
        quick = " --quick" if options.quick else ""
        raise DataNotFound(
            f"There is no result file {_in_repository(results)}. Run {grid.command}{quick} first."
        )
    if options.docs:
        command = f"{grid.command} --docs"
        text = page(read_content(results), paper, source=_in_repository(results), command=command)
        folders.docs.mkdir(parents=True, exist_ok=True)
        write_text(folders.docs / f"{grid.name}.md", text)
        print(f"Wrote {folders.docs / grid.name}.md")
        return 0
    failed = False
    if not options.table:
        records = run_grid(
            grid,
            folders,
            seeds=options.seeds,
            only=options.only,
            rows=[label.strip() for label in options.rows.split(",")] if options.rows else (),
            root=options.root,
            say=lambda line: print(line, flush=True),
        )
        failed = any(record["status"] == "failed" for record in records)
    print(tables(read_content(results), paper))
    return int(failed)


def _folders(options: argparse.Namespace, grid: Grid) -> Folders:
    """Return the folders; a quick trial never changes the repository's results."""
    if options.quick:
        work = options.work or Path("runs/benchmarks") / f"{grid.name}-quick"
        return Folders(work, work, work)
    return Folders(
        options.work or Path("runs/benchmarks") / grid.name,
        REPOSITORY / "benchmarks" / "results",
        REPOSITORY / "docs" / "benchmarks",
    )


def _in_repository(path: Path) -> str:
    """Return the path inside the repository; of a file elsewhere, only its name."""
    inside = path.resolve().is_relative_to(REPOSITORY.resolve())
    return str(path.resolve().relative_to(REPOSITORY.resolve())) if inside else path.name
