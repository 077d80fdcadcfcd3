"""What a training step of NcPU costs: plainly written, here, and at the hardware's limit.

python -m benchmarks.step                      both networks, some minutes on a quiet machine
python -m benchmarks.step --network small      one of them; the other's times stay in the file if
                                               the code and the machine are the same
python -m benchmarks.step --docs               write the page from the result file, run nothing
python -m benchmarks.step --quick              a few images, in seconds: does it run here?

Four versions are timed in one process, and their medians are compared:
- the limit: only torch's convolutions and matrix products of the step, each in its faster memory
  format. It is timed first. A step with these convolutions cannot be faster, except for noise; a
  step that needs fewer products can.
- a plain reference of the same mathematics (`benchmarks.step_reference`),
- the step that `onesided fit` takes,
- the same step with torch's own convolutions. These three take turns.
Images are random: their content does not change the time.
"""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.command import REPOSITORY
from benchmarks.origin import origin, same_origin
from benchmarks.step_sides import Problem, Sides, compiled_backbone, in_turns, seconds_of_products
from benchmarks.tables import NOTHING, commit_words, machine_words, markdown
from onesided.core.errors import OnesidedError
from onesided.engine.train_config import choose_precision
from onesided.storage.atomic import read_json, write_json, write_text

Content = Mapping[str, Any]
Record = Mapping[str, Any]

COMMAND = "python -m benchmarks.step"
RESULT = "step.json"


@dataclass(frozen=True)
class Size:
    """How much work is timed.

    Attributes:
        batch: Rows in a batch; the paper's is 256.
        repeats: How often each version is timed.
        scored: Images that inference is timed on.
        compiles: Whether `torch.compile` is timed too; compiling takes a minute.
    """

    batch: int
    repeats: int
    scored: int
    compiles: bool = True


SIZES: Mapping[str, Size] = {
    "small": Size(batch=256, repeats=5, scored=512),
    "resnet18": Size(batch=256, repeats=3, scored=256),
}
QUICK = Size(batch=8, repeats=1, scored=4, compiles=False)


def main(argv: Sequence[str] | None = None) -> int:
    """Time the networks, or write the page; return the exit code."""
    options = parser().parse_args(argv)
    try:
        return _run(options)
    except OnesidedError as error:
        print(f"benchmarks.step: {error}", file=sys.stderr)
        return error.exit_code


def parser() -> argparse.ArgumentParser:
    """Return the options."""
    options = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    options.formatter_class = argparse.RawDescriptionHelpFormatter
    options.add_argument("--network", choices=list(SIZES), help="both by default")
    options.add_argument("--batch", type=int, help="rows in a batch, for every network timed")
    options.add_argument("--repeats", type=int, help="how often each version is timed")
    options.add_argument("--threads", type=int, help="threads of torch; by default one per core")
    options.add_argument("--work", type=Path, help="folder for result and page")
    options.add_argument("--quick", action="store_true", help="a few images, in seconds")
    options.add_argument("--docs", action="store_true", help="write the page; run nothing")
    return options


def _run(options: argparse.Namespace) -> int:
    results, docs = _folders(options)
    if options.docs:
        shown = f"benchmarks/results/{RESULT}"
        text = page(read_json(results / RESULT), source=shown, command=f"{COMMAND} --docs")
        docs.mkdir(parents=True, exist_ok=True)
        write_text(docs / "step.md", text)
        print(f"Wrote {docs / 'step.md'}")
        return 0
    if options.threads:
        torch.set_num_threads(options.threads)
    results.mkdir(parents=True, exist_ok=True)
    content: dict[str, Any] = {}
    for content in measured(_cases(options), kept=_measured_before(results / RESULT)):
        write_json(results / RESULT, content)
    print(tables(content))
    return 0


def _folders(options: argparse.Namespace) -> tuple[Path, Path]:
    """Return the folders of result and page; a quick trial never changes the repository's."""
    if options.quick or options.work:
        work = options.work or Path("runs/benchmarks/step-quick")
        return work, work
    return REPOSITORY / "benchmarks" / "results", REPOSITORY / "docs" / "benchmarks"


def _cases(options: argparse.Namespace) -> Iterable[tuple[str, Size]]:
    for network in [options.network] if options.network else SIZES:
        usual = QUICK if options.quick else SIZES[network]
        batch, repeats = options.batch or usual.batch, options.repeats or usual.repeats
        yield network, replace(usual, batch=batch, repeats=repeats)


def _measured_before(path: Path) -> Sequence[Record]:
    """Return the file's networks, if they are comparable with what is timed now."""
    if not path.exists():
        return []
    content = read_json(path)
    comparable = same_origin(content["origin"], origin())
    networks: Sequence[Record] = content["networks"] if comparable else []
    return networks


def measured(
    cases: Iterable[tuple[str, Size]], *, kept: Sequence[Record]
) -> Iterator[dict[str, Any]]:
    """Yield the content of the result file after each network: a stop loses one, not both."""
    # The load of other processes: read once, before this process adds to it.
    started, load = origin(), round(os.getloadavg()[0], 1)
    precision = choose_precision("auto", torch.device("cpu"))
    records = {record["network"]: record for record in kept}
    for network, size in cases:
        records[network] = {**times(network, size), "load": load}
        yield {
            "title": "The cost of a training step",
            "origin": started,
            "precision": str(precision).removeprefix("torch."),
            "networks": [records[name] for name in SIZES if name in records],
        }


def times(network: str, size: Size) -> Record:
    """Return the median seconds of each part in each version, for one network."""
    problem = Problem.drawn(network, batch=size.batch, scored=size.scored)
    sides = Sides(problem)
    step_calls, score_calls = sides.products_of_a_step(), sides.products_of_scoring()
    limit_of_step = seconds_of_products(step_calls, sides.precision, repeats=size.repeats)
    # Scores are computed in single precision on every machine: a ranking should have no ties.
    limit_of_scoring = seconds_of_products(score_calls, torch.float32, repeats=size.repeats)
    seconds = {
        "step": in_turns(
            {
                "reference": sides.reference_step,
                "direct": sides.direct_step,
                "ours": sides.our_step,
            },
            size.repeats,
        )
        | {"limit": limit_of_step},
        "views": in_turns(
            {"reference": sides.reference_views, "ours": sides.our_views}, size.repeats
        ),
        "loss": in_turns({"reference": sides.reference_loss, "ours": sides.our_loss}, size.repeats),
        "inference": in_turns(
            {
                "reference": sides.reference_scores,
                "direct": sides.direct_scores,
                "ours": sides.our_scores,
            },
            size.repeats,
        )
        | {"limit": limit_of_scoring},
    }
    return {
        "network": network,
        "sample_shape": list(problem.sample_shape),
        "batch": size.batch,
        "scored": size.scored,
        "repeats": size.repeats,
        "gflop": {
            "step": sum(call.flop() for call in step_calls) / 1e9,
            "inference": sum(call.flop() for call in score_calls) / 1e9,
        },
        "seconds": seconds,
        "compiling": compiled_backbone(problem, repeats=size.repeats) if size.compiles else None,
    }


PARTS = {
    "step": "whole step",
    "views": "views of a batch",
    "loss": "loss mathematics",
    "inference": "inference",
}
HOW_TO_READ = (
    "The reference is the same mathematics written plainly: single precision, views made by "
    "Pillow image by image, prototypes updated sample by sample and the target network tensor "
    "by tensor in Python, images scored one at a time. The limit is the time of torch's "
    "convolutions and matrix products alone, each in its faster memory format. Here, wide 3x3 "
    "layers take a quarter of these products (Winograd's form), so they can be faster than the "
    "limit. Times are medians. The products are timed first, then reference and ours take turns; "
    "so a step at its limit may be a few percent above or below it."
)


@dataclass(frozen=True)
class Goal:
    """The goal of a part, set before anything was measured.

    Attributes:
        part: One of `PARTS`.
        against: What it is compared with: "reference" or "limit".
        least: How many times the reference's speed, or which share of the limit's.
    """

    part: str
    against: str
    least: float

    @property
    def words(self) -> str:
        """The goal, as a cell of the table."""
        if self.against == "limit":
            return f"{PARTS[self.part]}: {self.least:.0%} of the limit"
        return f"{PARTS[self.part]}: {self.least:g}x the reference"

    def verdict(self, seconds: Mapping[str, float]) -> str:
        """Return what was reached, and what torch's convolutions alone would have allowed."""
        reached = (
            seconds["limit"] / seconds["ours"]
            if self.against == "limit"
            else seconds["reference"] / seconds["ours"]
        )
        shown = f"{reached:.0%}" if self.against == "limit" else f"{reached:.2f}x"
        if reached >= self.least:
            return f"{shown}, reached"
        if self.against == "reference" and "limit" in seconds:
            most = seconds["reference"] / seconds["limit"]
            if most < self.least:
                return f"{shown}, missed; torch's convolutions alone allow {most:.2f}x"
        return f"{shown}, missed"


GOALS = (
    Goal("step", "reference", 5),
    Goal("step", "limit", 0.7),
    Goal("views", "reference", 5),
    Goal("inference", "reference", 4),
)


def page(content: Content, *, source: str, command: str) -> str:
    """Return the whole page, with a header that says where it comes from."""
    header = f"<!-- Generated by `{command}` from {source}; changes here are overwritten. -->"
    return f"{header}\n\n# {content['title']}\n\n{tables(content)}"


def tables(content: Content) -> str:
    """Return how to read it, the goals, one section per network, and where it was measured."""
    sections = [section(record) for record in content["networks"]]
    aims = goals(content["networks"])
    return "\n\n".join([HOW_TO_READ, aims, *sections, where_measured(content)]) + "\n"


def goals(networks: Sequence[Mapping[str, Any]]) -> str:
    """Return the goals beside what each network's step reached."""
    header = ("goal", *(record["network"] for record in networks))
    rows = [
        (goal.words, *(goal.verdict(record["seconds"][goal.part]) for record in networks))
        for goal in GOALS
    ]
    return markdown(header, rows)


def section(record: Mapping[str, Any]) -> str:
    """Return the table of one network, and a paragraph on what it shows."""
    shape = "x".join(map(str, record["sample_shape"]))
    sizes = (
        f"Batches of {record['batch']} images of {shape}; inference on {record['scored']} "
        f"images; {record['repeats']} repetitions."
    )
    header = (
        "",
        "reference",
        "here, with torch's convolutions",
        "here",
        "limit",
        "faster than the reference",
        "limit / here",
    )
    table = markdown(header, [line(part, record["seconds"][part]) for part in PARTS])
    words = "\n\n".join(filter(None, [in_words(record), on_compiling(record.get("compiling"))]))
    return f"## {record['network']}\n\n{sizes}\n\n{table}\n\n{words}"


def line(part: str, seconds: Mapping[str, float]) -> tuple[str, ...]:
    """Return the cells of one part."""
    limit, direct = seconds.get("limit"), seconds.get("direct")
    return (
        PARTS[part],
        milliseconds(seconds["reference"]),
        NOTHING if direct is None else milliseconds(direct),
        milliseconds(seconds["ours"]),
        NOTHING if limit is None else milliseconds(limit),
        f"{seconds['reference'] / seconds['ours']:.2f}x",
        NOTHING if limit is None else f"{limit / seconds['ours']:.0%}",
    )


def in_words(record: Mapping[str, Any]) -> str:
    """Return what limits the step, with the numbers that show it."""
    step = record["seconds"]["step"]
    work, limit = record["gflop"]["step"], step["limit"]
    most = step["reference"] / limit
    direct, ours = step["reference"] / step["direct"], step["reference"] / step["ours"]
    return (
        f"The products of a step are {work:.0f} GFLOP and run at {work / limit:.0f} GFLOP/s. "
        f"They alone take {limit / step['reference']:.0%} of the reference's step, so a step of "
        f"only these products would be {most:.2f} times as fast as the reference. Our step is "
        f"{direct:.2f} times as fast with the same convolutions, and {ours:.2f} times as fast with "
        "Winograd's form of them."
    )


def on_compiling(measured: Mapping[str, Any] | None) -> str:
    """Return whether `torch.compile` would be worth it; empty where it was not timed."""
    if measured is None:
        return ""
    if "failed" in measured:
        return f"`torch.compile` could not be timed: {measured['failed']}"
    eager, compiled = measured["eager"], measured["compiled"]
    words = (
        f"The backbone alone, forward and backward, takes {milliseconds(eager)} as it is, "
        f"{milliseconds(measured['direct'])} with torch's convolutions, and "
        f"{milliseconds(compiled)} with these compiled by `torch.compile`. Compiling takes "
        f"{measured['warm_up']:.0f} s"
    )
    if compiled >= eager:
        return f"{words}. It is never faster here, and is not used."
    passes = measured["warm_up"] / (eager - compiled)
    return f"{words}, and pays off after {passes:.0f} such passes. It is not used."


def where_measured(content: Content) -> str:
    """Return machine, commit, versions, date and load."""
    place = content["origin"]
    here = place["machine"]
    loads = ", ".join(f"{one['load']:g} ({one['network']})" for one in content["networks"])
    lines = [
        f"- Machine: {machine_words(here)}; {here['memory_gb']:g} GB of memory, "
        f"{here['platform']}; networks in {content['precision']}.",
        f"- Commit: {commit_words(place)}.",
        f"- Versions: {', '.join(f'{name} {v}' for name, v in place['versions'].items())}.",
        f"- Date: {place['date']}; load of the machine before it began: {loads}. Other "
        "processes made the times longer.",
    ]
    return "## Where it was measured\n\n" + "\n".join(lines)


def milliseconds(seconds: float) -> str:
    """Return a time with three significant digits."""
    value = seconds * 1000
    return f"{value:.0f} ms" if value >= 100 else f"{value:.3g} ms"


if __name__ == "__main__":
    sys.exit(main())
