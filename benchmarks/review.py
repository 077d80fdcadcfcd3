"""How many positives does a review find, by strategy, if the model learns from the answers?

    python -m benchmarks.review                        digits: which are an 8?
    python -m benchmarks.review --data cifar10 --root DATA --seeds 1
    python -m benchmarks.review --docs                 write the page from the result file

A simulated reviewer answers from the truth, with 2 % mistakes, through the same `ReviewSession` as
people: five rounds, after each of which the next model is trained. "One pass" goes down the first
ranking and trains nothing again. What counts is the true positives among the answered items.
"""

import argparse
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import onesided
from benchmarks.command import REPOSITORY
from benchmarks.origin import filled, origin
from benchmarks.tables import commit_words, markdown
from onesided.core.labels import POSITIVE
from onesided.core.rng import numpy_generator
from onesided.jobs.review import ReviewSession
from onesided.run.load import load_data
from onesided.storage.atomic import read_json, write_text
from onesided.storage.names import printable

RESULT = REPOSITORY / "benchmarks" / "results" / "review.json"
PAGE = REPOSITORY / "docs" / "benchmarks" / "review.md"
ROUNDS, ANSWERS, MISTAKES, SEEDS = 5, 30, 0.02, 3
ONE_PASS = "one pass"
STRATEGIES = ("likely", "mixed", "diverse", "uncertain", "random", ONE_PASS)
PROBLEMS: Mapping[str, Mapping[str, Any]] = {
    "digits": {"positive_classes": [8], "positives": 20, "unlabelled": 800, "prior": 0.08},
    "cifar10": {"positive_classes": [8], "positives": 100, "unlabelled": 5000, "prior": 0.1},
}
"""One class of ten is looked for; other data sets are taken as they are published."""
METHOD: dict[str, Any] = {"method": "linear", "backbone": "efficientnet_lite0", "freeze": True}
"""Seconds to train, once the features are computed."""


def main(argv: Sequence[str] | None = None) -> int:
    """Review what is missing, and print or write the page."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.review")
    options.add_argument("--data", default="digits", help="a data set, see onesided data list")
    options.add_argument("--root", help="folder of its files")
    options.add_argument("--seeds", type=int, default=SEEDS)
    options.add_argument("--answers", type=int, default=ANSWERS, help="answers of a round")
    options.add_argument("--docs", action="store_true", help="write the page; run nothing")
    given = options.parse_args(argv)
    result = RESULT if given.data == "digits" else RESULT.with_stem(f"review_{given.data}")
    if not given.docs:
        head = {
            **{"name": "review", "origin": origin(), "data": given.data, "rounds": ROUNDS},
            **{"answers": given.answers, "mistakes": MISTAKES, "problem": PROBLEMS.get(given.data)},
        }
        filled(
            result,
            head,
            key="seed",
            asked=range(given.seeds),
            measure=lambda seed: reviewed(given.data, given.root, seed, given.answers),
        )
    text = page(read_json(result))
    print(text)
    if given.docs:
        write_text(PAGE if result == RESULT else PAGE.with_stem(result.stem), text)
    return 0


def reviewed(data: str, root: str | None, seed: int, answers: int) -> dict[str, Any]:
    """Return what every strategy finds with one seed, from the same first model."""
    settings = {"data": {"seed": seed, **PROBLEMS.get(data, {})}}
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder) / "run"
        onesided.fit(data=data, root=root, output=first, seed=seed, settings=settings, **METHOD)
        truth = true_positives(first)
        found = {
            strategy: _rounds(first, Path(folder) / strategy, strategy, truth, seed, answers)
            for strategy in STRATEGIES
        }
    return {"seed": seed, "pool": len(truth), "positives": sum(truth.values()), "found": found}


def true_positives(run: Path) -> dict[str, bool]:
    """Return item to whether it is positive, for the pool of a run."""
    session = ReviewSession(run)
    split = load_data(session.config.data).split
    truth: dict[str, bool] = {}
    for part in (split.train, split.held_out):
        if part is not None:
            names = map(printable, part.names)
            truth.update(zip(names, (part.truth == POSITIVE).tolist(), strict=True))
    return {item: truth[item] for item in session.items}


def _rounds(
    run: Path, place: Path, strategy: str, truth: Mapping[str, bool], seed: int, answers: int
) -> list[int]:
    """Return how many positives were answered after each round."""
    random = numpy_generator(seed, "simulated reviewer", strategy)
    # Answers are in the run folder: each strategy has a copy, without those of the others.
    run = Path(shutil.copytree(run, place / "1"))
    found, seen = [], 0
    for number in range(ROUNDS):
        session = ReviewSession(run, reviewer=strategy, seed=seed)
        chosen = "likely" if strategy == ONE_PASS else strategy
        for pick in session.next(answers, strategy=chosen):
            right = truth[pick.item]
            said = right if random.random() >= MISTAKES else not right
            session.answer(pick.item, "positive" if said else "negative", strategy=pick.strategy)
            seen += right
        found.append(seen)
        if strategy != ONE_PASS and number < ROUNDS - 1:
            run = session.apply(place / f"{number + 2}").folder
    return found


def page(content: Mapping[str, Any]) -> str:
    """Return the page as Markdown."""
    rows, answers, count = content["rows"], content["answers"], content["rounds"]
    table = []
    for strategy in STRATEGIES:
        found = np.array([row["found"][strategy] for row in rows], float)
        per_hundred = 100 * found[:, -1] / (answers * count)
        table.append(
            [
                strategy,
                *(f"{value:.1f}" for value in found.mean(axis=0)),
                f"{per_hundred.mean():.1f} ({per_hundred.min():.1f} to {per_hundred.max():.1f})",
            ]
        )
    columns = [f"{answers * (number + 1)} answers" for number in range(count)]
    share = np.mean([100 * row["positives"] / row["pool"] for row in rows])
    return "\n".join(
        [
            "# Positives that a review finds",
            "",
            "<!-- python -m benchmarks.review --docs wrote this from the result file -->",
            "",
            f"{content['data']}, {len(rows)} seeds (splits, models and reviewers); a pool of "
            f"{rows[0]['pool']:,} items, of which",
            f"{share:.1f} % are positive. A simulated reviewer answers {answers} items in each of "
            f"{count} rounds, with {content['mistakes']:.0%}",
            "mistakes; after each round the next model is trained. *one pass* goes down the first "
            "ranking and trains nothing",
            "again. Cells: true positives among the answered items, mean over seeds; last column: "
            "per 100 answers, with the",
            "lowest and highest seed.",
            "",
            markdown(("strategy", *columns, "per 100 answers"), table),
            "",
            "Every strategy starts from the same first model. What the models learn is not shown "
            "here: a strategy that finds",
            "fewer positives may still teach more.",
            "",
            f"Measured at {commit_words(content['origin'])}.",
            "",
        ]
    )


if __name__ == "__main__":
    raise SystemExit(main())
