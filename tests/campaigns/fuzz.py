"""The fuzz campaign: damaged files through every reader and every command.

    python -m tests.campaigns.fuzz --inputs 10000 --seed 0 --output benchmarks/results/fuzz.json

Each target runs in a process of its own, so that a crash, a hang and peak memory are known to be
its own. An input is a function of seed, target and number: `--only NAME --number N` repeats one.
"""

import argparse
import contextlib
import faulthandler
import json
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from onesided.core.errors import OnesidedError
from tests.campaigns.targets import COMMANDS, READERS, Target, prepare, quietly

SECONDS = 60
"""An input that takes more processor time hangs."""
PATIENCE = 10 * SECONDS
"""So does one that waits longer, whoever else is busy on the machine."""
MOST_MEGABYTES = 1000
COMMAND_SHARE = 0.02
"""Of all inputs: a command takes a hundred times as long as a reader."""
WORKERS = 2
"""Targets at a time."""
KEPT = 5
"""Faults of a target that the result file describes."""


class Hang(BaseException):
    """An input took too long. No reader catches it by mistake."""


@dataclass
class Found:
    """What the inputs of one target led to."""

    target: str
    inputs: int = 0
    refused: int = 0
    accepted: int = 0
    tracebacks: int = 0
    hangs: int = 0
    unsound: int = 0
    megabytes: float = 0.0
    faults: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether nothing went wrong, in bounded memory."""
        faults = self.tracebacks + self.hangs + self.unsound
        return not faults and self.megabytes < MOST_MEGABYTES


def fuzz(name: str, folder: Path, *, seed: int, numbers: range) -> Found:
    """Return what these inputs of one target led to."""
    prepare()
    with quietly():
        target = {**READERS, **COMMANDS}[name](folder)
        found = Found(name)
        for number in numbers:
            _try_one(target, found, random.Random(f"{seed} {name} {number}"), number)
    found.megabytes = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
    return found


def _try_one(target: Target, found: Found, draw: random.Random, number: int) -> None:
    # The first inputs are the corpus itself: sound files, and those that once broke a reader.
    content = (
        target.corpus[number] if number < len(target.corpus) else target.mutate(target.corpus, draw)
    )
    target.path.write_bytes(content)
    found.inputs += 1
    try:
        with _limited():
            target.act()
        found.accepted += 1
    except OnesidedError as error:
        found.refused += 1
        if not str(error).strip():
            _note(found, "unsound", number, "an error without a sentence")
    except AssertionError as error:
        _note(found, "unsound", number, f"{error}\n{_last_lines()}")
    except Hang:
        _note(found, "hangs", number, _last_lines())
    except Exception as error:
        _note(found, "tracebacks", number, f"{type(error).__name__}: {error}\n{_last_lines()}")
    finally:
        target.after()


def _note(found: Found, kind: str, number: int, text: str) -> None:
    setattr(found, kind, getattr(found, kind) + 1)
    if len(found.faults) < KEPT:
        found.faults.append(f"{kind}, input {number}: {text[:1500]}")


def _last_lines() -> str:
    return "".join(traceback.format_exc().splitlines(keepends=True)[-12:])


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Raise `Hang` when time is up; a library that does not return ends the process later."""

    def stop(*_: object) -> None:
        raise Hang

    limits = (
        (signal.ITIMER_PROF, signal.SIGPROF, SECONDS),
        (signal.ITIMER_REAL, signal.SIGALRM, PATIENCE),
    )
    before = [(kind, signal.signal(kind, stop)) for _, kind, _ in limits]
    for clock, _, seconds in limits:
        signal.setitimer(clock, seconds)
    faulthandler.dump_traceback_later(2 * PATIENCE, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        for clock, _, _ in limits:
            signal.setitimer(clock, 0)
        for kind, handler in before:
            signal.signal(kind, handler)


def shares(inputs: int) -> dict[str, int]:
    """Return how many inputs each target gets; the sum is at least `inputs`."""
    commands = round(COMMAND_SHARE * inputs)
    each = {name: -(-commands // len(COMMANDS)) for name in COMMANDS}
    return {name: -(-(inputs - commands) // len(READERS)) for name in READERS} | each


def campaign(inputs: int, seed: int, output: Path) -> bool:
    """Run all targets, write the result file, and return whether nothing was found."""
    from onesided.bench.origin import origin

    prepare()
    began, rows = time.monotonic(), list[dict[str, Any]]()
    planned = shares(inputs)
    with ThreadPoolExecutor(WORKERS) as pool:
        found = pool.map(lambda name: _in_process(name, seed, planned[name]), planned)
        rows += map(_told, found)
    totals = Counter[str]()
    for row in rows:
        totals.update(
            {
                key: row[key]
                for key in (
                    "inputs",
                    "refused",
                    "accepted",
                    "tracebacks",
                    "hangs",
                    "unsound",
                    "crashes",
                )
            }
        )
    content = {
        "origin": origin(),
        "seed": seed,
        "seconds": round(time.monotonic() - began, 1),
        "most_megabytes": max(row["megabytes"] for row in rows),
        **totals,
        "targets": rows,
    }
    output.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    print(json.dumps({key: content[key] for key in ("seconds", "most_megabytes", *totals)}))
    clean = not any(totals[key] for key in ("tracebacks", "hangs", "unsound", "crashes"))
    return clean and content["most_megabytes"] < MOST_MEGABYTES


def _told(row: dict[str, Any]) -> dict[str, Any]:
    """Print what was found of one target, and return it."""
    print(json.dumps({key: value for key, value in row.items() if key != "faults"}), flush=True)
    for fault in row["faults"]:
        print(fault, flush=True)
    return row


def _in_process(name: str, seed: int, count: int) -> dict[str, Any]:
    """Fuzz one target in a copy of this process, which has all libraries loaded."""
    ours, theirs = multiprocessing.Pipe(duplex=False)

    def work() -> None:
        with tempfile.TemporaryDirectory() as folder:
            theirs.send(asdict(fuzz(name, Path(folder), seed=seed, numbers=range(count))))

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    theirs.close()
    try:
        return {**ours.recv(), "crashes": 0}
    except EOFError:  # it crashed, or a library did not return
        return {**asdict(Found(name)), "crashes": 1, "faults": ["the process ended"]}
    finally:
        process.join()


def main() -> None:
    """Run the campaign, or one target of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/fuzz.json"))
    parser.add_argument("--only", choices=[*READERS, *COMMANDS])
    parser.add_argument("--number", type=int, help="Repeat this input alone.")
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if given.only is None:
        sys.exit(0 if campaign(given.inputs, given.seed, given.output) else 1)
    numbers = range(given.inputs) if given.number is None else range(given.number, given.number + 1)
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(asdict(fuzz(given.only, Path(folder), seed=given.seed, numbers=numbers))))


if __name__ == "__main__":
    main()
