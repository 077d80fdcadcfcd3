"""Do the intervals hold what they promise, after a search chose the best of many models?

    python -m benchmarks.coverage            200 simulated problems, some twenty CPU-minutes
    python -m benchmarks.coverage --docs     write the page from the result file, run nothing

A problem is two clouds of points that overlap, some dimensions of pure noise, some positives
labelled at random. `auto` at its default searches among its candidates; then what is claimed
about the pool is compared with the truth of that same pool. A claim about the future is easier:
the pool's own luck is part of what is missed here.

The scores of a search are kept in --work, with the commit that made them: another formula for
an interval then takes seconds. The claims are always computed anew.
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
from benchmarks.tables import commit_words, markdown
from onesided.core.rng import numpy_generator
from onesided.metrics.figure import VAGUE
from onesided.storage.atomic import read_json, write_text

RESULT = REPOSITORY / "benchmarks" / "results" / "coverage.json"
PAGE = REPOSITORY / "docs" / "benchmarks" / "coverage.md"
PROBLEMS = 200
UNLABELLED = 2000


def main(argv: Sequence[str] | None = None) -> int:
    """Simulate what is missing, and print or write the page."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.coverage")
    options.add_argument("--problems", type=int, default=PROBLEMS)
    options.add_argument("--work", type=Path, default=Path("runs/benchmarks/coverage"))
    options.add_argument("--docs", action="store_true", help="write the page; run nothing")
    given = options.parse_args(argv)
    if not given.docs:
        head = {"name": "coverage", "origin": origin()}
        filled(
            RESULT,
            head,
            key="number",
            asked=range(given.problems),
            measure=partial(simulated, given.work),
        )
    text = page(read_json(RESULT))
    print(text)
    if given.docs:
        write_text(PAGE, text)
    return 0


def drawn(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return samples, labels, true classes of U and the prior of a problem."""
    random = numpy_generator(number, "coverage")
    prior, gap = random.uniform(0.1, 0.5), random.uniform(1.0, 3.5)
    positives, width = int(random.integers(50, 200)), int(random.integers(5, 40))
    hidden = random.random(UNLABELLED) < prior
    truth = np.concatenate([np.ones(positives, bool), hidden])
    samples = random.standard_normal((len(truth), width))
    # Positives lie on one side, or on both, where no linear model finds them.
    side = np.where(random.random(len(truth)) < 0.5, -1.0, 1.0) if number % 4 == 3 else 1.0
    samples[:, 0] += np.where(truth, gap * side, 0.0)
    return samples.astype(np.float32), np.arange(len(truth)) < positives, hidden, prior


def simulated(work: Path, number: int) -> dict[str, Any]:
    """Return what was claimed and what was true in one problem."""
    samples, labels, truth, prior = drawn(number)
    kept = kept_training(work / str(number), samples, labels.astype(np.int64), seed=number)
    facts = ("commit", "words", "tried", "optimism", "cpu_seconds")
    return {
        "number": number,
        "prior": prior,
        "positives": int(labels.sum()),
        **{name: kept.facts[name] for name in facts},
        **claimed_and_true(kept, truth),
    }


def page(content: Mapping[str, Any]) -> str:
    """Return the page as Markdown."""
    runs = content["rows"]
    tried = [run["tried"] for run in runs]
    return "\n".join(
        [
            "# Intervals after a search",
            "",
            "<!-- python -m benchmarks.coverage --docs wrote this from results/coverage.json -->",
            "",
            f"{len(runs)} simulated problems of 50 to 200 labelled positives and {UNLABELLED} "
            "unlabelled",
            "items, priors from 0.1 to 0.5. In each, `PUClassifier()` chose among "
            f"{min(tried)} to {max(tried)} models.",
            "The truth is that of the very pool that was ranked. Intervals should hold it in 95 %.",
            "The clouds overlap, so precision, F1 and prior are often known only within bounds.",
            f"*Told* counts the problems whose interval is narrower than {VAGUE:g}; of the others",
            "reports say that the figure cannot be told. Scores of a search are kept, and may be",
            "older than the claims.",
            "",
            markdown(COLUMNS, [coverage_row(runs, name) for name in FIGURES]),
            "",
            f"Measured at {commit_words(content['origin'])}.",
            "",
        ]
    )


if __name__ == "__main__":
    raise SystemExit(main())
