"""Workers, nodes and drivers of Ray, killed in the middle: the same rows and scores at the end?

    python -m tests.campaigns.ray_kills                     # three kills of each kind
    python -m tests.campaigns.ray_kills --kills 1 --only "rank worker" --output kills.json

A kill is SIGKILL, sent once some of the work is on the disk and before the output is. A driver that
was killed is started again; a worker or node that was killed leaves its work to the others. Rows
and scores are then compared with those of one process. Nodes are two raylets on one machine.
"""

import argparse
import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.origin import origin, same_origin
from onesided.geo.input.vector import read_layer
from onesided.run.ray_engine import ray_library
from onesided.storage.atomic import read_json, write_json
from onesided.storage.optional import library
from tests.cli.pictures import RED, draw
from tests.geo.fakes import write_geotiff_scene

OUTPUT = Path(__file__).parents[2] / "benchmarks" / "results" / "ray_kills.json"
QUIET = ("--quiet", "--allow-degenerate")
RAY = ("--engine", "ray", "--workers", "2")
SMALL = ("--epochs", "2", "--set", "backbone.width=0.25", "--set", "train.batch_size=16")
PATIENCE = 600.0
"""Seconds after which a command counts as hanging."""
Words = Sequence[object]
Rows = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Scenario:
    """A command that is killed.

    Attributes:
        name: The command, and what of it is killed.
        prepare: Writes the input into a folder; returns the command that must run first, if any.
        words: The command, given the folder and the output.
        ending: Of the output.
        rows: Numbers of each item of an output, by name; an item that is there twice is refused.
        done: How much of the work is on the disk, given the output.
    """

    name: str
    prepare: Callable[[Path], Words]
    words: Callable[[Path, Path], Words]
    ending: str
    rows: Callable[[Path], Rows]
    done: Callable[[Path], int]


def table(folder: Path) -> Words:
    """Write a table to train on, and a larger one to rank."""
    random = np.random.default_rng(0)
    for name, rows in (("training", 300), ("items", 3000)):
        positive = np.arange(rows) % 5 == 0
        numbers = random.standard_normal((rows, 3)) + positive[:, None]
        lines = ["id,a,b,c,label"]
        for row, (a, b, c) in enumerate(numbers):
            label = "positive" if positive[row] else "unlabelled"
            lines.append(f"i{row},{a},{b},{c},{label}")
        (folder / f"{name}.csv").write_text("\n".join(lines))
    return ("fit", "--table", folder / "training.csv", "-o", folder / "run", "--method", "forest")


def pictures(folder: Path) -> Words:
    """Draw images."""
    for number in range(1200):
        draw(folder / "images" / f"i{number:04}.png", number, RED)
    return ()


def town(folder: Path) -> Words:
    """Draw a town; the command trains a model of it."""
    write_geotiff_scene(
        folder / "town", seed=1, size=640, buildings=160, marked=24, crs_footprints="EPSG:32615"
    )
    return (*map_words(folder, folder / "first.gpkg"), *SMALL, "--method", "ce", "--size", "16")


def map_words(folder: Path, output: Path) -> Words:
    """Return the command that maps the town."""
    scene = folder / "town"
    given = ("--image", scene / "post.tif", "--footprints", scene / "buildings.gpkg")
    return ("map", *given, "--positives", scene / "ids.csv", "--region", "-o", output)


def rank_words(folder: Path, output: Path) -> Words:
    """Return the command that ranks the table."""
    return ("rank", folder / "run", folder / "items.csv", "-o", output)


def embed_words(folder: Path, output: Path) -> Words:
    """Return the command that embeds the images."""
    return ("embed", folder / "images", "-o", output)


def scores_in(path: Path) -> Rows:
    """Return the score of each item of a ranking."""
    with path.open(newline="", encoding="utf-8") as file:
        pairs = [(row["item"], [float(row["score"])]) for row in csv.DictReader(file)]
    return _once(pairs)


def features_in(path: Path) -> Rows:
    """Return the features of each image."""
    with np.load(path, allow_pickle=False) as arrays:
        return _once(list(zip(arrays["id"].tolist(), arrays["features"], strict=True)))


def buildings_in(path: Path) -> Rows:
    """Return score and rank of each building of a map."""
    columns = read_layer(path).columns
    values = zip(columns["id"], columns["score"], columns["rank"], strict=True)
    return _once([(name, np.nan_to_num([score, rank], nan=-1)) for name, score, rank in values])


def _once(pairs: Sequence[tuple[str, Any]]) -> Rows:
    rows = {name: np.asarray(numbers, np.float64) for name, numbers in pairs}
    if len(rows) != len(pairs):
        raise AssertionError(f"{len(pairs) - len(rows)} items are there twice")
    return rows


def lines_of(name: str) -> Callable[[Path], int]:
    """Return what counts the entries of a journal beside an output."""

    def count(output: Path) -> int:
        path = output.with_name(f"{output.name}.partial") / name
        try:
            return max(0, path.read_bytes().count(b"\n") - 1)  # its first line says what it is
        except FileNotFoundError:
            return 0

    return count


def pieces_of(output: Path) -> int:
    """Return how many pieces of a region are scored."""
    return len(list((output.with_name(f"{output.stem}-run") / "region" / "scores").glob("*.npz")))


def _map_by_model(folder: Path, output: Path) -> Words:
    return (*map_words(folder, output), "--model", folder / "first-run")


_RANK = (table, rank_words, ".csv", scores_in, lines_of("scores"))
SCENARIOS = (
    Scenario("rank worker", *_RANK),
    Scenario("rank node", *_RANK),
    Scenario("rank driver", *_RANK),
    Scenario("embed driver", pictures, embed_words, ".npz", features_in, lines_of("embedded")),
    Scenario("map driver", town, _map_by_model, ".gpkg", buildings_in, pieces_of),
)


def start(words: Words) -> "subprocess.Popen[str]":
    """Start a command of onesided."""
    given = [sys.executable, "-m", "tests.campaigns.small_pieces", *map(str, words)]
    return subprocess.Popen(
        given, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=Path.cwd()
    )


def finish(process: "subprocess.Popen[str]") -> None:
    """Wait for a command, which must succeed."""
    try:
        _, told = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert process.returncode == 0, told


def quiet(words: Words) -> Words:
    """Return a command that prints nothing and takes any model."""
    return (*words, *(QUIET if words[0] in ("fit", "map") else ("--quiet",)))


def workers_below(root: int) -> list[int]:
    """Return the processes below this one that are Ray's workers with a chunk of items."""
    found = []
    for status in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            title = status.read_bytes()
        except OSError:
            continue  # it ended meanwhile
        pid = int(status.parent.name)
        if title.startswith(b"ray::") and b"_entry_of" in title and is_below(pid, root):
            found.append(pid)
    return sorted(found)


def is_below(pid: int, root: int) -> bool:
    """Return whether a process descends from another, so that nobody else's is killed."""
    while pid > 1:
        if pid == root:
            return True
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        except OSError:
            return False
        pid = int(stat.rpartition(")")[2].split()[1])
    return False


def in_the_middle(
    process: "subprocess.Popen[str]", done: Callable[[], int], kill: Callable[[], bool]
) -> int | None:
    """Kill once some work is on the disk; return how much was, None if the command ended before."""
    until = time.monotonic() + PATIENCE
    while process.poll() is None:
        assert time.monotonic() < until, "nothing was done for a long time"
        already = done()
        if already and kill():
            return already
        time.sleep(0.01)
    return None


def kill_worker(process: "subprocess.Popen[str]") -> bool:
    """Kill one worker below a command; return whether there was one."""
    for pid in workers_below(process.pid)[:1]:
        os.kill(pid, signal.SIGKILL)
        return True
    return False


@contextmanager
def two_nodes() -> Iterator[Any]:
    """Give a cluster of a head, and a second node with a core of its own."""
    ray_library()
    utils = library("ray.cluster_utils", "The engine ray")
    limits = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
    cluster = utils.Cluster(initialize_head=True, head_node_args=limits)
    try:
        cluster.add_node(**limits)
        cluster.wait_for_nodes()
        yield cluster
    finally:
        cluster.shutdown()


def kill_node(cluster: Any) -> bool:  # noqa: ANN401 - of a library without types
    """Kill all processes of the second node; return False while it has no worker yet."""
    (node,) = cluster.worker_nodes
    (raylet,) = node.all_processes["raylet"]
    if not workers_below(raylet.process.pid):
        return False
    cluster.remove_node(node, allow_graceful=False)
    return True


def kill_once(scenario: Scenario, words: Words, output: Path) -> int | None:
    """Run a command that is killed as the scenario says; it has ended well when this returns."""
    kind = scenario.name.split()[1]
    if kind == "node":
        with two_nodes() as cluster:
            process = start((*words, "--address", cluster.address))
            found = in_the_middle(
                process, lambda: scenario.done(output), lambda: kill_node(cluster)
            )
            finish(process)
            return found
    process = start(words)
    if kind == "worker":
        found = in_the_middle(process, lambda: scenario.done(output), lambda: kill_worker(process))
        finish(process)
        return found

    def kill_driver() -> bool:
        process.send_signal(signal.SIGKILL)
        return True

    found = in_the_middle(process, lambda: scenario.done(output), kill_driver)
    process.communicate()
    finish(start(words))
    return found


def campaign(scenario: Scenario, kills: int, folder: Path) -> dict[str, Any]:
    """Kill a command so many times; return a row of the result file."""
    alone = folder / f"alone{scenario.ending}"
    if not alone.exists():  # scenarios of one command share their input
        folder.mkdir(parents=True)
        first = scenario.prepare(folder)
        if first:
            finish(start(quiet(first)))
        finish(start(quiet(scenario.words(folder, alone))))
    wanted = scenario.rows(alone)
    found: list[dict[str, Any]] = []
    for number in range(kills):
        output = folder / f"{scenario.name.replace(' ', '-')}-{number}{scenario.ending}"
        began = time.monotonic()
        done = kill_once(scenario, (*quiet(scenario.words(folder, output)), *RAY), output)
        rows = scenario.rows(output)
        found.append(
            {
                "done_before_the_kill": done,
                "lost": len(wanted.keys() - rows.keys()),
                "not_asked_for": len(rows.keys() - wanted.keys()),
                "largest_difference": max(
                    float(np.abs(rows[name] - wanted[name]).max()) for name in rows.keys() & wanted
                ),
                "left_over": len(list(folder.glob(f"{output.name}.*partial*"))),
                "seconds": round(time.monotonic() - began, 1),
            }
        )
        print(scenario.name, json.dumps(found[-1]), flush=True)
    return {"killed": scenario.name, "items": len(wanted), "kills": found}


def is_same(kill: Mapping[str, Any]) -> bool:
    """Return whether a killed command gave the rows and scores of one process."""
    wrong = kill["lost"] + kill["not_asked_for"] + kill["left_over"]
    return bool(wrong == 0 and kill["largest_difference"] <= 1e-6)


def result_of(head: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the content of the result file."""
    kills = [kill for row in rows for kill in row["kills"]]
    return {
        **head,
        "asked": len(kills),
        "in_the_middle": sum(kill["done_before_the_kill"] is not None for kill in kills),
        "same": sum(map(is_same, kills)),
        "rows": list(rows),
    }


def joined(paths: Sequence[Path]) -> dict[str, Any]:
    """Return one content for result files of several scenarios, all of the same origin."""
    contents = [read_json(path) for path in paths]
    first = contents[0]
    for other in contents[1:]:
        if not same_origin(first["origin"], other["origin"]):
            raise SystemExit("These files were measured at different commits or machines.")
    head = {key: first[key] for key in ("name", "origin", "ray")}
    return result_of(head, [row for content in contents for row in content["rows"]])


def main() -> int:
    """Run the campaign and write its result file; exit code 1 if one kill was not harmless."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--only", default=",".join(one.name for one in SCENARIOS))
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--join", type=Path, nargs="+", help="result files, instead of kills")
    given = parser.parse_args()
    if given.join:
        content = joined(given.join)
    else:
        chosen = [one for one in SCENARIOS if one.name in given.only.split(",")]
        version = ray_library().__version__
        head = {"name": "ray_kills", "origin": origin(), "ray": version}
        with TemporaryDirectory() as name:
            place = Path(name).resolve()
            rows = [campaign(one, given.kills, place / one.name.split()[0]) for one in chosen]
        content = result_of(head, rows)
    write_json(given.output, content)
    asked, hit, same = (content[key] for key in ("asked", "in_the_middle", "same"))
    print(f"{hit} of {asked} kills came in the middle, {same} gave the same rows.")
    return int(not asked == hit == same)


if __name__ == "__main__":
    sys.exit(main())
