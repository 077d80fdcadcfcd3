"""Every command, killed at many moments: started again, does it leave the very same files?

    python -m tests.campaigns.kills                      # 140 kills, by the seed 0
    python -m tests.campaigns.kills --kills 12 --only evaluate,report --output kills.json

A moment is drawn from the seed: either the n-th time that the command opens, flushes, renames or
removes something in its folder, or a share of the processor time that it takes. There it gets
SIGKILL, which no program can catch. A third of the commands are killed a second time. Then the
same command runs to its end, and every file is compared with that of a command that was never
killed; only durations are left out. Commands are forked from a process that has imported all, so
a kill costs a second.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.origin import origin
from onesided.cli import main as onesided_main
from onesided.geo.input.vector import read_layer
from onesided.report import is_fresh
from onesided.storage.atomic import write_json
from onesided.storage.own_file import CHECKSUMS, digest_of, read_checksums
from tests.cli.pictures import BLUE, RED, draw
from tests.geo.fakes import write_geotiff_scene

OUTPUT = Path(__file__).parents[2] / "benchmarks" / "results" / "kills.json"
SMALL = (
    *("--epochs", "2", "--device", "cpu", "--set", "backbone.width=0.125"),
    *("--set", "train.batch_size=16", "--set", "train.save_minutes=0.00001"),
)
NARROW = ("--set", "method.projector_width=16")
QUIET = ("--quiet", "--allow-degenerate")
DURATION = ("seconds", "search_seconds", "embed_seconds")
SECOND_KILL = 1 / 3
BY_EVENT = 0.7
"""Share of kills at an event of the disk; the others are at a moment of processor time."""

Words = Sequence[object]


@dataclass(frozen=True)
class Scenario:
    """A command, and what must be there before it."""

    name: str
    words: Callable[[Path], Words]
    prepare: Callable[[Path], Sequence[Words]]
    """Writes the input into a folder; returns commands that must run first."""
    share: int
    """How many kills of all: more for commands that take less time."""


def pictures(folder: Path) -> Sequence[Words]:
    """Draw so few images that no map of features is computed, which takes seconds."""
    for number in range(14):
        draw(folder / "P" / f"p{number:02}.png", number, RED)
    for number in range(34):
        draw(folder / "U" / f"u{number:02}.png", 100 + number, RED if number % 3 == 0 else BLUE)
    return ()


def table(folder: Path) -> Sequence[Words]:
    """Write a table of numbers."""
    random = np.random.default_rng(0)
    rows = ["label,a,b,c"]
    for number in range(60):
        centre = 2.0 if number < 30 and number % 2 == 0 else -2.0
        label = "positive" if number < 30 and number % 2 == 0 else "unlabelled"
        values = random.normal(centre, 1.5, 3)
        rows.append(",".join([label, *(f"{value:.6f}" for value in values)]))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "table.csv").write_text("\n".join(rows) + "\n")
    return ()


def trained(folder: Path) -> Sequence[Words]:
    """Draw images, and train on them."""
    pictures(folder)
    return (fit_words(folder),)


def compared(folder: Path) -> Sequence[Words]:
    """Draw images, and train two methods on them."""
    pictures(folder)
    return (compare_words(folder),)


def searched(folder: Path) -> Sequence[Words]:
    """Write a table, and let a short search train on it."""
    table(folder)
    return (search_words(folder),)


def answered(folder: Path) -> Sequence[Words]:
    """Train on a table, and answer some of its pool."""
    before = searched(folder)
    rows = [
        f"table.csv:{number},{'positive' if number < 36 else 'negative'}"
        for number in range(32, 44)
    ]
    (folder / "answers.csv").write_text("\n".join(["item,answer", *rows, ""]))
    return (*before, ("review", folder / "run", "--import", folder / "answers.csv", "--quiet"))


def search_words(folder: Path) -> Words:
    """Return the command of a short search."""
    words = ("fit", "--table", folder / "table.csv", "-o", folder / "run", *QUIET)
    return (*words, "--set", 'method.candidates=["linear"]')


def town(folder: Path) -> Sequence[Words]:
    """Draw a town."""
    write_geotiff_scene(folder / "town", seed=1, size=256, buildings=40, marked=12)
    return ()


def fit_words(folder: Path) -> Words:
    """Return the command that trains one method."""
    data = ("-p", folder / "P", "-u", folder / "U", "-o", folder / "run")
    return ("fit", *data, "--method", "ncpu", *SMALL, *NARROW, *QUIET)


def compare_words(folder: Path) -> Words:
    """Return the command that trains two methods."""
    data = ("-p", folder / "P", "-u", folder / "U", "-o", folder / "run")
    return ("fit", *data, "--method", "ce", "--compare", "nnpu", "--prior", "0.3", *SMALL, *QUIET)


def map_words(folder: Path) -> Words:
    """Return the command that maps the town."""
    town = folder / "town"
    scene = ("--image", town / "post.tif", "--footprints", town / "buildings.gpkg")
    marks = ("--positives", town / "ids.csv", "--size", "16", "-o", folder / "out.gpkg")
    small = tuple(word for word in SMALL if word not in ("--device", "cpu"))
    return ("map", *scene, *marks, "--method", "ce", *small, *QUIET)


SCENARIOS = (
    Scenario("fit", fit_words, pictures, 12),
    Scenario("auto", search_words, table, 14),
    Scenario("compare", compare_words, pictures, 8),
    Scenario(
        "rank",
        lambda f: (
            *("rank", f / "run", f / "U", "-o", f / "ranked.csv"),
            *("--page", f / "ranked.html", "--quiet"),
        ),
        trained,
        20,
    ),
    Scenario(
        "evaluate",
        lambda f: ("evaluate", f / "run", "--threshold", "recall=0.9", "--quiet"),
        compared,
        20,
    ),
    Scenario("report", lambda f: ("report", f / "run", "--quiet"), trained, 16),
    Scenario("map", map_words, town, 10),
    Scenario("embed", lambda f: ("embed", f / "U", "-o", f / "U.npz", "--quiet"), pictures, 10),
    Scenario("export", lambda f: ("export", f / "run", "-o", f / "m.onnx"), searched, 10),
    Scenario("draw", lambda f: ("audit", f / "run", "draw", "--size", "20"), searched, 10),
    Scenario(
        "review",
        lambda f: ("review", f / "run", "--apply", "-o", f / "next", "--quiet"),
        answered,
        10,
    ),
)


@dataclass
class Counting:
    """Counts what a command does in its folder, and kills its process at the n-th time."""

    folder: str
    last: int | None = None
    seen: int = 0
    names: tuple[str, ...] = field(default=("open", "os.rename", "os.remove", "os.mkdir"))

    def begin(self) -> None:
        """Watch this process from now on."""
        sys.addaudithook(self._hear)
        flush = os.fsync

        def fsync(number: int) -> None:
            self._count()
            flush(number)

        os.fsync = fsync  # type: ignore[assignment]

    def end(self) -> None:
        """Do what is to be done after a command that was not killed."""

    def _hear(self, event: str, given: tuple[Any, ...]) -> None:
        path = given[0] if event in self.names and given else None
        if isinstance(path, str | bytes | os.PathLike) and self._is_inside(path):
            self._enter(os.fsdecode(path).removeprefix(self.folder))
            self._count()

    def _enter(self, path: str) -> None:
        """Take notice of a path of the folder that is touched now."""

    def _is_inside(self, path: str | bytes | os.PathLike[str]) -> bool:
        return os.fsdecode(path).startswith(self.folder)

    def _count(self) -> None:
        self.seen += 1
        if self.seen == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, or None if it was killed; events and processor time."""

    code: int | None
    events: int
    seconds: float


def command(
    words: Words,
    folder: Path,
    *,
    event: int | None,
    seconds: float | None,
    counting: Counting | None = None,
) -> Ended:
    """Run a command in a forked process; kill it at an event or at a processor time, if given.

    `counting` watches it instead, and decides itself.
    """
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        _in_the_child(words, counting or Counting(str(folder), event), send)
    os.close(send)
    if seconds is not None:
        _kill_at(child, seconds)
    _, status, used = os.wait4(child, 0)
    told = os.read(receive, 100)
    os.close(receive)
    code = None if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)
    return Ended(code, int(told or 0), used.ru_utime + used.ru_stime)


def _in_the_child(words: Words, counting: Counting, send: int) -> None:
    code = 1
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        counting.begin()
        sys.argv = ["onesided", *map(str, words)]
        onesided_main()
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 0
    finally:
        counting.end()
        os.write(send, str(counting.seen).encode())
        os._exit(code)


def _kill_at(child: int, seconds: float) -> None:
    """Kill a process once it has used so much processor time, unless it ends before."""
    while True:
        try:
            used = int(Path(f"/proc/{child}/schedstat").read_text().split()[0]) / 1e9
            state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            return
        if state == "Z":
            return
        if used >= seconds:
            os.kill(child, signal.SIGKILL)
            return
        time.sleep(0.004)


def files(folder: Path) -> dict[str, object]:
    """Return every file of a folder in a form that is equal for equal runs."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() or name.startswith(("P/", "U/", "town/")) or "/cache/" in f"/{name}":
            continue
        found[name] = _comparable(path)
    return found


def _comparable(path: Path) -> object:
    if path.suffix in (".json", ".geojson"):
        return _without_durations(json.loads(path.read_text()))
    if path.suffix == ".jsonl":
        lines = path.read_text().splitlines()
        return [_without_durations(json.loads(line.partition("\t")[0])) for line in lines]
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as archive:
            names = [name for name in archive.files if name not in DURATION]
            return {name: archive[name].tobytes() for name in names}
    if path.name == CHECKSUMS:
        listed = read_checksums(path.parent)
        return {name: digest_of(path.parent / name) == digest for name, digest in listed.items()}
    if path.name == "report.html":
        return "fresh" if is_fresh(path.parent) else "stale"
    if path.suffix == ".gpkg":
        return _rows(path)  # the file itself holds the time of writing
    if path.name == "last.pt":
        return "there"  # it holds durations
    return path.read_bytes()


def _rows(path: Path) -> list[str]:
    """Return every building of a map with all its columns."""
    layer = read_layer(path)
    columns = {name: values.tolist() for name, values in layer.columns.items()}
    shapes = [shape.wkt for shape in layer.geometries]
    return [repr(row) for row in zip(shapes, *columns.values(), strict=True)]


def _without_durations(content: object) -> object:
    if isinstance(content, dict):
        return {
            key: _without_durations(value)
            for key, value in content.items()
            if key not in DURATION and not (key == "warnings" and value is None)
        }
    if isinstance(content, list):
        return [_without_durations(one) for one in content]
    return content


def differences(one: Mapping[str, object], other: Mapping[str, object]) -> list[str]:
    """Return the names of files that differ, are missing, or are left over."""
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def campaign(name: str, kills: int, seed: int, place: Path, until: float) -> dict[str, Any]:
    """Kill a command so many times, or until the time is up; return a row of the result file."""
    scenario = next(one for one in SCENARIOS if one.name == name)
    random = np.random.default_rng([seed, *scenario.name.encode()])
    template, folder = place / "template", place / "work"
    for path in (template, folder):
        shutil.rmtree(path, ignore_errors=True)
    folder.mkdir(parents=True)
    for words in scenario.prepare(folder):
        done = command(words, folder, event=None, seconds=None)
        assert done.code == 0, (scenario.name, done)
    shutil.copytree(folder, template)
    words = scenario.words(folder)
    whole = command(words, folder, event=None, seconds=None)
    assert whole.code == 0, (scenario.name, whole)
    wanted, killed, exact, differ, missed = files(folder), 0, 0, list[dict[str, object]](), 0
    while killed < kills and time.monotonic() < until:
        shutil.rmtree(folder)
        shutil.copytree(template, folder)
        moments, before = list[dict[str, float]](), killed
        for _ in range(1 + int(random.random() < SECOND_KILL and killed + 1 < kills)):
            event, share = int(random.integers(1, whole.events + 1)), float(random.random())
            if random.random() < BY_EVENT:
                moments.append({"event": event})
                ended = command(words, folder, event=event, seconds=None)
            else:
                moments.append({"share": round(share, 3)})
                ended = command(words, folder, event=None, seconds=share * whole.seconds)
            killed += ended.code is None
            missed += ended.code is not None  # it was done before its moment came
        again = command(words, folder, event=None, seconds=None)
        wrong = differences(wanted, files(folder))
        if again.code == 0 and not wrong:
            exact += killed - before
        else:
            differ.append({"moments": moments, "exit_code": again.code, "files": wrong[:8]})
    return {
        "command": scenario.name,
        "events": whole.events,
        "kills": killed,
        "ended_before_the_kill": missed,
        "exact": exact,
        "differ": differ,
    }


def shared(kills: int, among: Sequence[Scenario]) -> list[int]:
    """Return how many kills each command gets, together as many as were asked for."""
    shares = np.array([one.share for one in among], float)
    ends = np.rint(np.cumsum(shares) * kills / shares.sum()).astype(int)
    return [int(number) for number in np.diff(ends, prepend=0)]


def main() -> None:
    """Run the campaign and write its result file; exit code 1 if one kill was not exact."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=140)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(one.name for one in SCENARIOS))
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=600.0)
    given = parser.parse_args()
    import_everything()
    chosen = [one for one in SCENARIOS if one.name in given.only.split(",")]
    rows, until = [], time.monotonic() + 60 * given.minutes
    with (
        TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name,
        ProcessPoolExecutor(given.processes, get_context("fork")) as pool,
    ):
        place = Path(name).resolve()
        jobs = [
            pool.submit(campaign, one.name, kills, given.seed, place / one.name, until)
            for one, kills in zip(chosen, shared(given.kills, chosen), strict=True)
        ]
        for job in jobs:
            rows.append(job.result())
            print(
                json.dumps({key: rows[-1][key] for key in ("command", "kills", "exact", "differ")})
            )
            sys.stdout.flush()
    kills, exact = (sum(row[key] for row in rows) for key in ("kills", "exact"))
    head = {**origin(), "seed": given.seed, "asked": given.kills, "kills": kills, "exact": exact}
    write_json(given.output, {**head, "commands": rows})
    print(f"{exact} of {kills} kills exact: {given.output}")
    sys.exit(exact != kills or kills < given.kills)


def import_everything() -> None:
    """Import what commands import, so that a forked one starts at once."""
    import matplotlib.backends.backend_agg
    import pyogrio  # type: ignore[import-untyped]
    import rasterio  # type: ignore[import-untyped]
    import sklearn.manifold
    import torch

    import onesided.jobs.audit
    import onesided.jobs.embed
    import onesided.jobs.evaluate
    import onesided.jobs.export
    import onesided.jobs.fit
    import onesided.jobs.map
    import onesided.jobs.rank
    import onesided.jobs.report
    import onesided.jobs.review

    assert all((matplotlib, pyogrio, rasterio, sklearn, onesided.jobs))
    torch.set_num_threads(1)


if __name__ == "__main__":
    main()
