"""What does a training cost on a machine that is busy with other work?

python -m benchmarks.busy              minutes: digits, without and beside other work
python -m benchmarks.busy --docs       write the page from the result file, run nothing

The same training runs with three ways to use threads, each in a process of its own: on all cores
with threads that keep their core busy while they wait (torch's and OpenMP's defaults), on all cores
with threads that sleep, and as the commands of `onesided` do it. The other work is a loop that
computes for ever. After it starts, a minute passes before the first training, so that the system's
load average knows of it.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from benchmarks.command import REPOSITORY
from benchmarks.origin import Row, filled, origin
from benchmarks.tables import commit_words, markdown
from onesided.core.config import Settings, merge
from onesided.core.threads import CHOSEN_BY_USERS, WAITING
from onesided.methods import method_named
from onesided.run.presets import published_settings
from onesided.storage.atomic import read_json, write_text

RESULT = REPOSITORY / "benchmarks" / "results" / "busy.json"
PAGE = REPOSITORY / "docs" / "benchmarks" / "busy.md"
BUSY = (0, 1)
"""Processes of other work that are added, one for each core that they keep busy."""
SETTLING = 60
NETWORKS: Mapping[str, Settings] = {
    "quick": {"train": {"epochs": 2}},
    "wide": {"train": {"epochs": 1, "batch_size": 128}, "backbone": {"width": 1.0}},
}
"""The preset `quick` on some digits, whose operations are small; a network and a batch whose
operations are worth several threads."""
METHOD = "teacher"
"""Also in files of earlier versions, which called it a variant of NcPU."""
DATA: Settings = {"positives": 100, "unlabelled": 600}
DEFAULT_SPINS = "300000"
"""How often GNU's OpenMP looks before it sleeps, if nobody says anything."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
WAYS: Mapping[str, Mapping[str, str]] = {
    "all cores, busy waiting": {"GOMP_SPINCOUNT": DEFAULT_SPINS},
    "all cores, asleep while waiting": WAITING,
    "onesided": {},
}
BEFORE, *_, NOW = WAYS
PROGRAM = """
import json, sys, time
from onesided.core.threads import available_cores, using_threads, wait_passively
wait_passively()  # as every command does; it leaves the variables of a user alone
from onesided.run.config import RunConfig
from onesided.run.training import train
from onesided.run.load import load_data
from onesided.run.problem import build_problem
from onesided.run.work import threads_for
config = RunConfig.from_settings(json.loads(sys.argv[1]))
problem = build_problem(config, load_data(config.data))
threads = threads_for(problem) if sys.argv[2] == "onesided" else available_cores()
began = time.perf_counter(), time.process_time()
with using_threads(threads):
    train(problem)
seconds, cpu_seconds = time.perf_counter() - began[0], time.process_time() - began[1]
print(json.dumps({"threads": threads, "seconds": seconds, "cpu_seconds": cpu_seconds}))
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure without and with other work and write the result file, or the page from it."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.busy",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--docs", action="store_true", help="write the page; run nothing")
    if options.parse_args(argv).docs:
        write_text(PAGE, page(read_json(RESULT)))
        return 0
    head = {"name": "busy", "origin": origin(), "networks": NETWORKS, "data": DATA}
    filled(RESULT, head, key="busy", asked=BUSY, measure=partial(measured, NETWORKS))
    return 0


def measured(networks: Mapping[str, Settings], busy: int, settling: float = SETTLING) -> Row:
    """Return what every network costs in every way beside so many busy processes."""
    with other_work(busy):
        time.sleep(settling if busy else 0)
        runs = [
            trained(network, settings, way)
            for network, settings in networks.items()
            for way in WAYS
        ]
    return {"busy": busy, "runs": runs}


@contextmanager
def other_work(processes: int) -> Iterator[None]:
    """Keep so many cores busy meanwhile."""
    command = [sys.executable, "-c", "while True: pass"]
    working = [subprocess.Popen(command) for _ in range(processes)]
    try:
        yield
    finally:
        for one in working:
            one.kill()
            one.wait()


def trained(network: str, change: Settings, way: str) -> dict[str, Any]:
    """Train once in a new process; return what training alone took, and the load before."""
    untold = {k: v for k, v in os.environ.items() if k not in (*THREADS, *CHOSEN_BY_USERS)}
    quick = published_settings("quick", data_name="digits", method_name=METHOD, given={})
    settings = merge(quick, {"data": DATA}, change)
    load = round(os.getloadavg()[0], 1)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(settings), way],
        env={**untold, **WAYS[way]},
        stdout=subprocess.PIPE,
        check=True,
    )
    row = {"network": network, "way": way, **json.loads(done.stdout), "load": load}
    print(row, flush=True)
    return row


def page(content: Mapping[str, Any]) -> str:
    """Return the page as Markdown."""
    rows = [
        [
            str(row["busy"]),
            one["network"],
            one["way"],
            str(one["threads"]),
            f"{one['seconds']:.1f}",
            f"{one['cpu_seconds']:.1f}",
            *(f"{ratio:.2f}" for ratio in ratios(row["runs"], one)),
            f"{one['load']:g}",
        ]
        for row in content["rows"]
        for one in row["runs"]
    ]
    columns = ("busy cores", "network", "way", "threads", "seconds", "CPU seconds")
    shares = ("seconds, share", "CPU seconds, share", "load before")
    place = content["origin"]
    machine = place["machine"]
    networks = [f"- `{name}`: {in_words(change)}" for name, change in content["networks"].items()]
    return "\n".join(
        [
            "# Training on a busy machine",
            "",
            "<!-- python -m benchmarks.busy --docs wrote this from results/busy.json -->",
            "",
            "The same training with three ways to use threads, without and beside other work that",
            "keeps so many cores busy. Shares are of the first way, which is that of torch and",
            "OpenMP where nobody says anything. Seconds are those of training alone, one run each.",
            "The machine had other work of its own, see the load; small differences say nothing.",
            "",
            f"{method_named(METHOD).card.title} with the preset `quick`, on digits with "
            f"{in_words({'data': content['data']})}:",
            "",
            *networks,
            "",
            markdown((*columns, *shares), rows),
            "",
            "`onesided` chooses its number of threads by the size of a batch's work and by the",
            "cores that are idle when it begins: [design.md](../design.md) says why.",
            "",
            f"Measured on {machine['cpu']}, {machine['cores']} cores, at commit "
            f"{commit_words(place)}, {place['date']}.",
            "",
        ]
    )


def in_words(change: Mapping[str, Mapping[str, object]]) -> str:
    """Return settings as the command line takes them."""
    return ", ".join(f"`{t}.{k}={v}`" for t, table in change.items() for k, v in table.items())


def ratios(runs: Sequence[Mapping[str, Any]], one: Mapping[str, Any]) -> tuple[float, float]:
    """Return seconds and processor seconds, as shares of those of the first way."""
    (first,) = (r for r in runs if (r["network"], r["way"]) == (one["network"], BEFORE))
    return one["seconds"] / first["seconds"], one["cpu_seconds"] / first["cpu_seconds"]


if __name__ == "__main__":
    sys.exit(main())
