"""How much should an item weigh in training that a reviewer rejected?

    python -m benchmarks.rejected --root DATA            what is missing, and the page's text
    python -m benchmarks.rejected --docs                 write the page

A known negative counts as much as an unlabelled item (`unlabelled`), as much as the prior's share
of an item of P (`prior`), or as much as an item of P (`positive`); all of them together at most as
much as U. Problems and reviewer are those of `benchmarks.review`.

    eta   chance that an item is positive        m, r   density of the pool, and of answered items
    a, b  weight of a positive answer, and of a negative one

P against U learns the odds eta m / pi : m of every place, eta / pi. Which items are answered
depends on scores, not on classes, so answers add a r eta : b r (1 - eta). An answered place is
ranked like others of the same eta only if these odds are eta / pi too: a / b = (1 - eta) / pi,
about 1 / pi. With few positives a / b = |U| / |P| is many times that, so that the places where
somebody looked rise, whatever was found there. That speaks for `prior`. A linear model is not
free in every place, so that heavier rejections may still be better.

Claims, written down before the first run:

1. In each problem `positive` finds at least as many positives as `unlabelled` in five rounds, as a
   mean over seeds; on cats and Harvey more, in each seed. So does `prior`.
2. After a search (`auto`, one round), the AUC of what is left in the pool is not lower by more than
   half a point as a mean over seeds in any problem, and over all problems no fewer intervals of
   figures hold the truth.
3. Where the known negatives are all of one kind (trucks, among which no cat is), 2. holds too.

The default becomes `positive` if all claims hold for it, else `prior` if they hold for it, else it
stays.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import onesided
from benchmarks import review
from benchmarks.command import REPOSITORY
from benchmarks.origin import filled, origin
from benchmarks.review import METHOD, PENALTY, PROBLEMS, Problem, answered, by_rounds
from benchmarks.tables import commit_words, markdown
from onesided.core.config import merge
from onesided.core.rng import numpy_generator
from onesided.data.sources import SOURCES
from onesided.jobs.review import ReviewSession
from onesided.methods.against_pool import TrainingRows
from onesided.run.evaluate import compare_with_labels
from onesided.storage.atomic import read_json, write_text
from onesided.storage.table import csv_lines

RESULT = REPOSITORY / "benchmarks" / "results" / "rejected.json"
PAGE = REPOSITORY / "docs" / "benchmarks" / "rejected.md"
SEEDS = 3
WEIGHTS = ("unlabelled", "prior", "positive")
SEARCH = {"method": {"minutes": 0.5}}
SEARCH_ANSWERS = 80
"""Answers before the one round of a search."""
TRUCK, TRUCKS = 9, 100
FIGURES = ("recall", "precision", "f1", "prior")
WORSE = 0.005
"""Difference in AUC that is more than chance, by the claims."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is missing, and print or write the page."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.rejected")
    options.add_argument("--root", type=Path, default=Path("DATA"), help="folder of the data sets")
    options.add_argument("--seeds", type=int, default=SEEDS)
    options.add_argument("--docs", action="store_true", help="write the page; run nothing")
    given = options.parse_args(argv)
    if not given.docs:
        head = {
            **{"name": "rejected", "origin": origin(), "rounds": review.ROUNDS},
            **{"mistakes": review.MISTAKES, "minutes": SEARCH["method"]["minutes"]},
            **{"answers": {name: answers for name, (_, answers) in PROBLEMS.items()}},
        }
        asked = [f"{name} {seed}" for seed in range(given.seeds) for name in PROBLEMS]
        filled(RESULT, head, key="row", asked=asked, measure=partial(measured, given.root))
    text = page(read_json(RESULT))
    print(text)
    if given.docs:
        write_text(PAGE, text)
    return 0


def measured(root: Path, row: str) -> dict[str, Any]:
    """Return what a problem and a seed, such as `cats 0`, give with each weight."""
    name, seed = row.split()
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        problem = PROBLEMS[name][0](root, place, int(seed))
        prior, search = _search(problem, place / "search", int(seed))
        rounds = _rounds(problem, place / "rounds", int(seed), PROBLEMS[name][1], prior)
        found = {"prior": prior, "rounds": rounds, "search": search}
        if name == "cats":
            found["trucks"] = _trucks(problem, root, place / "trucks", int(seed), prior)
    seconds = round(time.process_time() - began)
    return {"row": row, "problem": name, "seed": int(seed), **found, "cpu_seconds": seconds}


def _rounds(
    problem: Problem, place: Path, seed: int, answers: int, prior: float
) -> dict[str, list[int]]:
    """Return how many positives a linear model finds round by round, for each weight."""
    given, settings, truth_of = problem
    first = place / "run"
    onesided.fit(output=first, seed=seed, settings=merge(PENALTY, settings), **given, **METHOD)
    truth, found = truth_of(first), {}
    for weight in WEIGHTS:
        with rejected_weigh(weight, prior):
            found[weight] = by_rounds(first, place / weight, "likely", truth, seed, answers)
    return found


def _search(problem: Problem, place: Path, seed: int) -> tuple[float, dict[str, Any]]:
    """Return the prior that a search estimates, and claims and truth of its second round."""
    given, settings, truth_of = problem
    first = place / "run"
    onesided.fit(output=first, seed=seed, settings=merge(SEARCH, settings), **given)
    truth = truth_of(first)
    session = ReviewSession(first, reviewer="simulated", seed=seed)
    # A search calls as many items positive as it estimates that there are.
    prior = float((session.scores > session.threshold).mean())
    random = numpy_generator(seed, "simulated reviewer", "search")
    answered(session, "likely", truth, SEARCH_ANSWERS, random)
    found: dict[str, Any] = {"before": _claims(first, truth)}
    for weight in WEIGHTS:
        with rejected_weigh(weight, prior):
            found[weight] = _claims(session.apply(place / weight).folder, truth)
    return prior, found


def _trucks(problem: Problem, root: Path, place: Path, seed: int, prior: float) -> dict[str, Any]:
    """Return the claims and the truth of a search that knows a hundred trucks as negatives."""
    given, settings, truth_of = problem
    known = place / "negatives"
    known.mkdir(parents=True)
    samples = SOURCES["cifar10"].load(root).test
    assert samples is not None, "CIFAR-10 has a test part"
    rows = np.flatnonzero(samples.classes == TRUCK)
    for row in numpy_generator(seed, "trucks").permutation(rows)[:TRUCKS].tolist():
        review.save_picture(samples, row, known / f"truck-{row:05}")
    found: dict[str, Any] = {}
    for weight in WEIGHTS:
        with rejected_weigh(weight, prior):
            done = onesided.fit(
                **given,
                output=place / weight,
                seed=seed,
                negatives=known,
                settings=merge(SEARCH, settings),
                cache=place / "cache",
            )
        found[weight] = _claims(done.folder, truth_of(done.folder))
    return found


def _claims(run: Path, truth: Mapping[str, bool]) -> dict[str, Any]:
    """Return figures of a run as claimed and as they are, and its highest items that are right."""
    items = ReviewSession(run).items
    rows = [(item, "positive" if truth[item] else "negative") for item in items]
    labels = run.with_suffix(".csv")
    write_text(labels, csv_lines([("item", "label"), *rows]))
    found = compare_with_labels(run, labels)
    shown = ReviewSession(run).next(SEARCH_ANSWERS, strategy="likely")
    return {
        "auc": found["test"]["auc"],
        "found": sum(truth[pick.item] for pick in shown),
        "figures": {
            each["name"]: [each.get("low"), each.get("high"), each["true"]]
            for each in found["figures"]
            if each["name"] in FIGURES
        },
    }


@contextmanager
def rejected_weigh(weight: str, prior: float) -> Iterator[None]:
    """Let a known negative weigh as much as `weight` says, all of them at most as much as U."""

    def balanced(rows: TrainingRows) -> np.ndarray:
        weights = as_built(rows).copy()
        if rows.negative is None or not rows.negative.any():
            return weights
        of_pool = weights[rows.unlabelled]
        each = {
            "unlabelled": of_pool.mean(),
            "prior": max(prior * weights[rows.labelled].mean(), of_pool.mean()),
            "positive": max(weights[rows.labelled].mean(), of_pool.mean()),
        }[weight]
        weights[rows.negative] = min(each, of_pool.sum() / rows.negative.sum())
        return weights

    as_built = TrainingRows.balanced
    with patch.object(TrainingRows, "balanced", balanced):
        yield


def page(content: Mapping[str, Any]) -> str:
    """Return the page as Markdown."""
    rows = content["rows"]
    seeds = len({row["seed"] for row in rows})
    minutes = sum(row["cpu_seconds"] for row in rows) / 60
    return "\n".join(
        [
            "# What a rejected item should weigh",
            "",
            "<!-- python -m benchmarks.rejected --docs wrote this from the result file -->",
            "",
            "A reviewer calls an item negative. In the next training it weighs as much as an "
            "*unlabelled* item, as the",
            "*prior*'s share of an item of P, or as much as an item of P (*positive*); all of them "
            "together never more than",
            f"U. Problems and simulated reviewer are those of [review](review.md); {seeds} seeds, "
            f"{minutes:.0f} CPU-minutes.",
            "The claims were written down in `benchmarks/rejected.py` before the first run.",
            "",
            "## Positives found in five rounds",
            "",
            "A linear model, likely items first: after the last round, mean over seeds, and each "
            "seed.",
            "",
            markdown(("problem", *WEIGHTS), [_found(rows, name) for name in _names(rows)]),
            "",
            "## After a search",
            "",
            f"`auto` with {content['minutes']:g} minutes, the second round after {SEARCH_ANSWERS} "
            "answers. AUC of what is left in the pool, and",
            f"positives among the {SEARCH_ANSWERS} items shown next, means over seeds; intervals "
            f"({', '.join(FIGURES)}) that hold the truth.",
            "",
            _searched(rows, "search"),
            "",
            "## Known negatives of one kind",
            "",
            f"The same for cats with {TRUCKS} trucks as known negatives, before any review.",
            "",
            _searched(rows, "trucks"),
            "",
            "## Claims",
            "",
            markdown(("claim", *WEIGHTS[1:]), _verdicts(rows)),
            "",
            f"Measured at {commit_words(content['origin'])}.",
            "",
        ]
    )


Rows = Sequence[Mapping[str, Any]]


def _names(rows: Rows) -> list[str]:
    return list(dict.fromkeys(row["problem"] for row in rows))


def _last(rows: Rows, name: str, weight: str) -> np.ndarray:
    return np.array([row["rounds"][weight][-1] for row in rows if row["problem"] == name])


def _found(rows: Rows, name: str) -> list[str]:
    each = [_last(rows, name, weight) for weight in WEIGHTS]
    return [name, *(f"{some.mean():.1f} ({', '.join(map(str, some))})" for some in each)]


def _mean(rows: Rows, part: str, name: str, weight: str, what: str) -> float:
    of_problem = [row for row in rows if row["problem"] == name]
    return float(np.mean([row[part][weight][what] for row in of_problem]))


def _held(rows: Rows, part: str, weight: str) -> tuple[int, int]:
    """Return how many intervals hold the truth, and how many there are."""
    ends = [
        (low, high, true)
        for row in rows
        if part in row
        for low, high, true in row[part][weight]["figures"].values()
        if low is not None and true is not None
    ]
    return sum(low <= true <= high for low, high, true in ends), len(ends)


def _searched(rows: Rows, part: str) -> str:
    having = [row for row in rows if part in row]
    table = []
    for name in _names(having):
        for weight in WEIGHTS:
            own = [row for row in having if row["problem"] == name]
            held, told = _held(own, part, weight)
            auc, found = (_mean(own, part, name, weight, what) for what in ("auc", "found"))
            table.append([name, weight, f"{auc:.4f}", f"{found:.1f}", f"{held} of {told}"])
    return markdown(("problem", "weight", "AUC", "found next", "intervals"), table)


def _verdicts(rows: Rows) -> list[list[str]]:
    """Return for each claim whether it holds for each weight that is not the earlier default."""
    claims: dict[str, Callable[[Rows, str], bool]] = {
        "no fewer positives in any problem": _no_fewer,
        "more on cats and Harvey, in each seed": _more_in_each,
        "AUC after a search": partial(_auc_holds, part="search"),
        "intervals after a search": partial(_intervals_hold, part="search"),
        "AUC with trucks": partial(_auc_holds, part="trucks"),
        "intervals with trucks": partial(_intervals_hold, part="trucks"),
    }
    return [
        [words, *("holds" if claim(rows, weight) else "**fails**" for weight in WEIGHTS[1:])]
        for words, claim in claims.items()
    ]


def _no_fewer(rows: Rows, weight: str) -> bool:
    return all(
        _last(rows, name, weight).mean() >= _last(rows, name, WEIGHTS[0]).mean()
        for name in _names(rows)
    )


def _more_in_each(rows: Rows, weight: str) -> bool:
    hard = [name for name in _names(rows) if name != "digits"]
    return all((_last(rows, name, weight) > _last(rows, name, WEIGHTS[0])).all() for name in hard)


def _auc_holds(rows: Rows, weight: str, *, part: str) -> bool:
    having = [row for row in rows if part in row]
    return all(
        _mean(having, part, name, weight, "auc")
        >= _mean(having, part, name, WEIGHTS[0], "auc") - WORSE
        for name in _names(having)
    )


def _intervals_hold(rows: Rows, weight: str, *, part: str) -> bool:
    """Whether no fewer intervals hold the truth, of those that are told."""
    (held, told), (before, of) = _held(rows, part, weight), _held(rows, part, WEIGHTS[0])
    return told - held <= of - before


if __name__ == "__main__":
    raise SystemExit(main())
