"""What a training step of NcPU costs: plainly written, here, and at the hardware's limit.

python -m benchmarks.step                      both networks, some minutes on a quiet machine
python -m benchmarks.step --network small      one of them; the other's times stay in the file if
                                               the code and the machine are the same
python -m benchmarks.step --docs               write the page from the result file, run nothing
python -m benchmarks.step --quick              tiny networks' worth of work: does it run here?

Four ways are timed in one process, and medians compared: a plain reference of the same
mathematics (`benchmarks.step_reference`) in turns with the step that `onesided fit` takes and with
the same step on torch's own convolutions, and before them the limit, which is nothing but the
convolutions and matrix products of that step by torch, each in the memory format that suits it
best. Whoever computes with these convolutions is no faster than the limit, but for noise; who
needs fewer products may be. Pictures are random: what they show does
not change how long they take.
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
from benchmarks.origin import origin, same_place
from benchmarks.step_compiled import compiled_backbone
from benchmarks.step_limit import seconds_of_products
from benchmarks.step_page import page, tables
from benchmarks.step_sides import Problem, Sides, in_turns
from onesided.core.errors import OnesidedError
from onesided.engine.train_config import choose_precision
from onesided.storage.atomic import read_json, write_json, write_text

Record = Mapping[str, Any]

COMMAND = "python -m benchmarks.step"
RESULT = "step.json"


@dataclass(frozen=True)
class Size:
    """How much work is timed.

    Attributes:
        batch: Rows in a batch; the paper's is 256.
        repeats: How often each side is timed.
        scored: Pictures that inference is timed on.
        compiles: Whether `torch.compile` is timed too; it takes a minute to get ready.
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
    """Time what is asked for, or write the page; return the exit code."""
    options = parser().parse_args(argv)
    try:
        return _obey(options)
    except OnesidedError as error:
        print(f"benchmarks.step: {error}", file=sys.stderr)
        return error.exit_code


def parser() -> argparse.ArgumentParser:
    """Return the options."""
    options = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    options.formatter_class = argparse.RawDescriptionHelpFormatter
    options.add_argument("--network", choices=list(SIZES), help="both unless told")
    options.add_argument("--batch", type=int, help="rows in a batch, for every network timed")
    options.add_argument("--repeats", type=int, help="times that each side is timed")
    options.add_argument("--threads", type=int, help="threads of torch; as the machine has cores")
    options.add_argument("--work", type=Path, help="folder of a quick trial's files")
    options.add_argument("--quick", action="store_true", help="a few pictures, in seconds")
    options.add_argument("--docs", action="store_true", help="write the page; run nothing")
    return options


def _obey(options: argparse.Namespace) -> int:
    results, docs = _places(options)
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


def _places(options: argparse.Namespace) -> tuple[Path, Path]:
    """Return folders of result and page; a quick trial never touches the repository's."""
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
    """Return the file's networks, if they may stand beside what is timed now."""
    if not path.exists():
        return []
    content = read_json(path)
    alike = same_place(content["origin"], origin())
    networks: Sequence[Record] = content["networks"] if alike else []
    return networks


def measured(
    cases: Iterable[tuple[str, Size]], *, kept: Sequence[Record]
) -> Iterator[dict[str, Any]]:
    """Yield the content of the result file after each network, so that no stop costs both."""
    # Of what else was at work: taken once, before this process adds to it.
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
    """Return the median seconds of each part on each side, for one network."""
    problem = Problem.drawn(network, batch=size.batch, scored=size.scored)
    sides = Sides(problem)
    step_calls, score_calls = sides.products_of_a_step(), sides.products_of_scoring()
    limit_of_step = seconds_of_products(step_calls, sides.precision, repeats=size.repeats)
    # Scores are computed in single precision on every machine: a ranking wants no ties.
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


if __name__ == "__main__":
    sys.exit(main())
