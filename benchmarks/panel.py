"""The default beside every simple thing a person would try, over many data sets.

    python -m benchmarks.panel --root DATA --cache CACHE --rows lr,rf     run what is missing
    python -m benchmarks.panel --table                                    print the tables
    python -m benchmarks.panel --docs                                     write the page

Data sets are in panel_data.py, rows in panel_rows.py, tables in panel_page.py. Every row of a data
set and a seed is one record of the result file, which is complete after each of them. Several
processes may run at once: each takes what no other is doing.
"""

import argparse
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks.command import REPOSITORY, SEEDS, seeds
from benchmarks.origin import code_in_memory, origin, origin_of_run
from benchmarks.panel_data import SETS, PanelSet, Places, Pools, draw
from benchmarks.panel_page import page
from benchmarks.panel_rows import ROWS, Row, Scored
from onesided.core.errors import ConfigError, DataNotFound, FolderTaken, OnesidedError
from onesided.metrics.truth import truth_metrics
from onesided.storage.atomic import read_json, write_arrays, write_json, write_text
from onesided.storage.lock import alone

Record = dict[str, Any]
RESULT = REPOSITORY / "benchmarks" / "results" / "panel.json"
PAGE = REPOSITORY / "docs" / "benchmarks" / "panel.md"
TITLE = "The default beside what a person would try"
AT = 100
"""Items of a list that a person checks first."""


@dataclass(frozen=True)
class Asked:
    """One run: a row on a data set with a seed."""

    data: PanelSet
    key: str
    row: Row
    seed: int

    @property
    def name(self) -> str:
        """A name for files, and the identity of its record."""
        return f"{self.data.name}.{self.key}.{self.seed}"

    def record(self) -> Record:
        """Return the record of a run before its figures."""
        return {
            "data": self.data.name,
            "row": self.key,
            "seed": self.seed,
            "problem": self.data.settings(),
            "settings": dict(self.row.settings),
        }


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print or write; return the exit code."""
    options = parser().parse_args(argv)
    try:
        failed = False
        if not (options.docs or options.table):
            failed = run(options)
        text = page(_content(options.result), TITLE)
    except OnesidedError as error:
        print(f"benchmarks.panel: {error}", file=sys.stderr)
        return error.exit_code
    print(text)
    if options.docs:
        write_text(PAGE, text)
    return int(failed)


def parser() -> argparse.ArgumentParser:
    """Return the options."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.panel", description=__doc__)
    options.formatter_class = argparse.RawDescriptionHelpFormatter
    options.add_argument("--root", type=Path, default=Path("DATA"), help="folder of the data sets")
    options.add_argument("--cache", type=Path, default=Path("DATA/panel"), help="wheels, features")
    options.add_argument("--work", type=Path, default=Path("runs/benchmarks/panel"))
    options.add_argument("--only", help="data sets, separated by commas; a word may end in *")
    options.add_argument("--rows", help=f"rows, separated by commas: {', '.join(ROWS)}")
    options.add_argument("--seeds", type=seeds, default=SEEDS, help="such as 0,1,2, the default")
    options.add_argument(
        "--largest", type=int, default=10**9, help="leave out sets with a larger U"
    )
    options.add_argument("--result", type=Path, default=RESULT, help="the result file")
    options.add_argument("--table", action="store_true", help="print the tables; run nothing")
    options.add_argument("--docs", action="store_true", help="write the page; run nothing")
    return options


def run(options: argparse.Namespace) -> bool:
    """Run what is missing; return whether something failed."""
    code_in_memory()  # later commits do not change the code that runs
    chosen = named(options.rows, ROWS, "--rows")
    names = [
        n for n in named(options.only, SETS, "--only") if SETS[n].unlabelled <= options.largest
    ]
    places, failed = Places(options.root, options.cache), False
    options.work.mkdir(parents=True, exist_ok=True)
    for name in names:
        pools: Pools | None = None
        for asked in (
            Asked(SETS[name], key, ROWS[key], seed) for seed in options.seeds for key in chosen
        ):
            if is_finished(options.result, asked):
                continue
            pools = pools or SETS[name].read(places)
            try:
                with alone(options.work / f"{asked.name}.lock", FolderTaken("taken")):
                    record = run_one(asked, pools, options.work)
            except FolderTaken:
                continue  # another process does it
            put(options.result, record)
            failed |= record["status"] == "failed"
            print(_in_one_line(record), flush=True)
    return failed


def named(given: str | None, known: Mapping[str, object], option: str) -> list[str]:
    """Return the names that an option gives; without one, all."""
    if given is None:
        return list(known)
    found: list[str] = []
    for word in (part.strip() for part in given.split(",")):
        begins = word.removesuffix("*")
        fits = [n for n in known if (n.startswith(begins) if word.endswith("*") else n == word)]
        if not fits:
            raise ConfigError(f"{option} takes some of {', '.join(known)}; got {word!r}.")
        found += fits
    return list(dict.fromkeys(found))


def run_one(asked: Asked, pools: Pools, work: Path) -> Record:
    """Run a row; a failure becomes a record with its message."""
    record = {**asked.record(), "origin": origin_of_run()}
    problem = draw(asked.data, pools, asked.seed)
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        found = asked.row.run(problem, asked.seed)
    except Exception as error:
        # A bug in one row must not stop the others. It is printed here and named on the page.
        traceback.print_exc(file=sys.stderr)
        known = isinstance(error, OnesidedError)
        sentence = str(error) if known else f"{type(error).__name__}: {error}"
        return {**record, "status": "failed", "failure": sentence}
    record["seconds"] = round(time.perf_counter() - wall, 2)
    record["cpu_seconds"] = round(time.process_time() - cpu, 2)
    if found.unscaled is not None:
        keep_scores(work / f"{asked.name}.npz", problem.labels, problem.truth, found)
    test = None
    if found.test is not None and found.test_called is not None and problem.test_truth is not None:
        test = figures(problem.test_truth, found.test, found.test_called)
    return {
        **record,
        "status": "finished",
        "failure": None,
        "chosen": dict(found.chosen),
        "pool": figures(problem.truth, found.pool, found.called),
        "test": test,
    }


def keep_scores(path: Path, labels: np.ndarray, truth: np.ndarray, found: Scored) -> None:
    """Write out-of-fold scores of P and U, for benchmarks.threshold_rules."""
    assert found.unscaled is not None
    assert found.positive is not None
    write_arrays(
        path,
        {
            "positive": found.unscaled[labels == 1],
            "pool": found.unscaled[labels == 0],
            "scaled_positive": found.positive,
            "scaled_pool": found.pool,
            "truth": truth,
        },
    )


def figures(truth: np.ndarray, scores: np.ndarray, called: np.ndarray) -> dict[str, float | None]:
    """Return the figures of a ranking and of its decisions."""
    at_half = truth_metrics(truth, called.astype(np.float64))
    return {
        "auc": float(roc_auc_score(truth, scores)),
        "ap": float(average_precision_score(truth, scores)),
        "p100": precision_at(truth, scores, AT),
        "f1": at_half.f1,
        "precision": at_half.precision,
        "recall": at_half.recall,
        "share": float(called.mean()),
    }


def precision_at(truth: np.ndarray, scores: np.ndarray, count: int) -> float:
    """Return the share of positives among the first `count`, expected over the order of ties."""
    count = min(count, len(scores))
    last = np.sort(scores)[::-1][count - 1]
    above, tied = scores > last, scores == last
    left = count - int(above.sum())
    return float((truth[above].sum() + left * truth[tied].mean()) / count)


def put(path: Path, record: Record) -> None:
    """Add a record to the result file, whatever other processes added meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with alone(path.with_suffix(".lock")):
        records = {_key(old): old for old in _valid(path)}
        records[_key(record)] = record
        order = {name: place for place, name in enumerate((*SETS, *ROWS))}
        in_order = sorted(
            records.values(), key=lambda r: (order[r["data"]], order[r["row"]], r["seed"])
        )
        write_json(path, {"name": "panel", "title": TITLE, **origin(), "runs": in_order})


def is_finished(path: Path, asked: Asked) -> bool:
    """Return whether the file holds this run; a failed one is tried again."""
    key = _key(asked.record())
    return any(_key(old) == key and old["status"] == "finished" for old in _valid(path))


def _valid(path: Path) -> Iterator[Record]:
    """Yield the records whose data set and row still have the same settings."""
    if not path.exists():
        return
    for record in read_json(path)["runs"]:
        data, row = SETS.get(record["data"]), ROWS.get(record["row"])
        if data is None or row is None:
            continue
        if (record["problem"], record["settings"]) == (data.settings(), dict(row.settings)):
            yield record


def _content(path: Path) -> Mapping[str, Any]:
    if not path.exists():
        raise DataNotFound(f"There is no result file {path.name}. Run python -m benchmarks.panel.")
    return read_json(path)


def _key(record: Mapping[str, Any]) -> tuple[str, str, int]:
    return record["data"], record["row"], record["seed"]


def _in_one_line(record: Record) -> str:
    who = f"{record['data']}, {record['row']}, seed {record['seed']}"
    if record["status"] == "failed":
        return f"{who}: failed. {record['failure']}"
    pool = record["pool"]
    return (
        f"{who}: AUC {pool['auc']:.3f}, F1 {pool['f1']:.3f}, share {pool['share']:.3f}, "
        f"{record['seconds']:.0f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
