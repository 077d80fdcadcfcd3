"""Do claims hold on real data, where nobody chose the shape of the classes?

    python -m benchmarks.claims_real --root DATA            all sets that DATA holds
    python -m benchmarks.claims_real --sets wine --seeds 5  some sets
    python -m benchmarks.claims_real --docs                 write the page, run nothing

A set and a seed of the panel make P and U. A run claims figures about U without a single negative,
each with an interval, and the true classes of that same U say whether the interval holds. A figure
whose interval is too wide to be told is counted apart: no number was claimed.
"""

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import REPOSITORY
from benchmarks.kept_claims import (
    COLUMNS,
    FIGURES,
    claimed_and_true,
    coverage_row,
    kept_training,
)
from benchmarks.origin import filled, origin
from benchmarks.panel_data import SETS, Places, draw
from benchmarks.tables import commit_words, markdown
from onesided.metrics.figure import VAGUE
from onesided.storage.atomic import read_json, write_text

RESULT = REPOSITORY / "benchmarks" / "results" / "claims_real.json"
PAGE = REPOSITORY / "docs" / "benchmarks" / "claims_real.md"
TABLES = ("wine", "breast-cancer", "digits-8-vectors")
IMAGES = ("harvey-150-images", "cifar10-plane-images")
MINUTES = 0.5
"""Of a search: long enough for features and what is fitted to them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is missing, and print or write the page."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.claims_real")
    options.add_argument("--sets", nargs="+", default=[*TABLES, *IMAGES])
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--root", type=Path, default=Path("DATA"))
    options.add_argument("--work", type=Path, default=Path("runs/benchmarks/claims_real"))
    options.add_argument("--docs", action="store_true", help="write the page; run nothing")
    given = options.parse_args(argv)
    if not given.docs:
        asked = [f"{name} {seed}" for name in given.sets for seed in range(given.seeds)]
        head = {"name": "claims_real", "minutes": MINUTES, "origin": origin()}
        measure = partial(measured, given.root, given.work)
        filled(RESULT, head, key="problem", asked=asked, measure=measure)
    text = page(read_json(RESULT))
    print(text)
    if given.docs:
        write_text(PAGE, text)
    return 0


def measured(root: Path, work: Path, problem: str) -> dict[str, Any]:
    """Return what was claimed and what was true for a set and a seed, such as `wine 0`."""
    name, seed = problem.split()
    chosen = SETS[name]
    drawn = draw(chosen, chosen.read(Places(root, work)), int(seed))
    kept = kept_training(
        work / problem.replace(" ", "-"),
        drawn.samples,
        drawn.labels,
        seed=int(seed),
        kind="photograph" if chosen.form == "images" else None,
        settings={"method": {"minutes": MINUTES}},
    )
    return {
        "problem": problem,
        "set": name,
        "words": chosen.words,
        "positives": chosen.positives,
        "unlabelled": chosen.unlabelled,
        "chosen": kept.facts["words"],
        "commit": kept.facts["commit"],
        "cpu_seconds": kept.facts["cpu_seconds"],
        **claimed_and_true(kept, drawn.truth),
    }


def page(content: Mapping[str, Any]) -> str:
    """Return the page as Markdown: each set, then all sets together by figure."""
    runs = content["rows"]
    names = list(dict.fromkeys(run["set"] for run in runs))
    return "\n".join(
        [
            "# Claims against the truth on real data",
            "",
            "<!-- python -m benchmarks.claims_real --docs wrote this page -->",
            "",
            f"`auto` with {content['minutes']:g} minutes on {len(names)} sets, "
            f"{len(runs)} problems. Every interval is claimed without a",
            "negative label and should hold the truth of the pool in 95 %. *Told*: problems whose "
            "interval is",
            f"narrower than {VAGUE:g}; of the others reports say that the figure cannot be told.",
            "",
            markdown(COLUMNS, [coverage_row(runs, name) for name in FIGURES]),
            "",
            "Precision by set, means over seeds:",
            "",
            markdown(
                ("set", "what", "P", "U", "claimed interval", "truth", "holds"),
                [_of_set(name, [run for run in runs if run["set"] == name]) for name in names],
            ),
            "",
            f"Measured at {commit_words(content['origin'])}.",
            "",
        ]
    )


def _of_set(name: str, runs: Sequence[Mapping[str, Any]]) -> list[str]:
    known = [run for run in runs if run["claimed"]["precision"][1] is not None]
    ends = np.array([run["claimed"]["precision"][1:] for run in known], dtype=float).reshape(-1, 2)
    true = np.array([run["true"]["precision"] for run in runs])
    held = [
        low <= run["true"]["precision"] <= high
        for run, (low, high) in zip(known, ends, strict=True)
    ]
    first = runs[0]
    between = " to ".join(f"{end:.3f}" for end in ends.mean(axis=0)) if len(ends) else "-"
    return [
        name,
        first["words"],
        str(first["positives"]),
        str(first["unlabelled"]),
        between,
        f"{true.mean():.3f}",
        f"{sum(held)} of {len(runs)}",
    ]


if __name__ == "__main__":
    raise SystemExit(main())
