"""How should a search choose among models that are nearly as good?

    python -m benchmarks.selection --root DATA --cache CACHE    try all models, compare the rules
    python -m benchmarks.selection --docs                       write the page

`auto` tries some twenty models on the same folds of a data set of the panel. Their out-of-fold
scores are kept in --work; every rule then chooses from the same ones. True classes evaluate the
choices; only the last row uses them to choose.
"""

import argparse
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks.command import REPOSITORY
from benchmarks.origin import origin
from benchmarks.panel_data import SETS, PanelSet, Places, Problem, draw
from benchmarks.tables import markdown
from onesided import PUClassifier
from onesided.core.errors import OnesidedError
from onesided.methods.average import averaged, spread
from onesided.metrics.intervals import placements
from onesided.metrics.threshold_rules import prior_threshold
from onesided.metrics.truth import truth_metrics
from onesided.run import execute
from onesided.run.prior import NoPrior, own_prior_of_three
from onesided.run.search.candidates import AVERAGED
from onesided.run.search.race import Search, search
from onesided.storage.atomic import read_json, write_arrays, write_json, write_text

RESULT = REPOSITORY / "benchmarks" / "results" / "selection.json"
PAGE = REPOSITORY / "docs" / "benchmarks" / "selection.md"
TITLE = "How a search chooses among models that are nearly as good"
DATA = (
    *("wine", "breast-cancer", "crx", "german", "phoneme", "splice", "page-blocks", "adult"),
    *("spambase", "mushroom", "news-religion-texts", "news-space-texts", "nursery"),
    *("letter", "magic"),
)
TIED = 1.0
WORDS = (
    "All rules choose from the same out-of-fold scores of the same models. AUC, average precision "
    "and F1 are those of the pool U, in percent, mean over data sets of means over seeds; F1 is at "
    "the threshold that `auto` uses. **Loss**: AUC of the truly best single model less that of the "
    "choice; an average may be better than every single model. **Linear** is the best penalty "
    "alone: what a person would try first. **Below the top** compares P with the pool without its "
    "highest share, as large as the estimated prior: there two good models differ only by chance."
)


@dataclass(frozen=True)
class Tried:
    """What a search tried: out-of-fold scores of every model that has all of them."""

    labelled: np.ndarray
    truth: np.ndarray  # of every row
    names: list[str]
    families: list[str]
    ranks: list[float]
    scores: np.ndarray  # models, rows

    def placed(self, scores: np.ndarray, without: float = 0.0) -> np.ndarray:
        """Return the share of U below each of P, `without` the top share of U."""
        pool = np.sort(scores[~self.labelled])
        kept = pool[: max(1, round((1 - without) * len(pool)))]
        return placements(scores[self.labelled], kept)

    def best_of_families(self, values: np.ndarray) -> list[int]:
        """Return the model with the highest value in each family."""
        return [
            max(
                (row for row, name in enumerate(self.families) if name == family),
                key=lambda row: float(values[row]),
            )
            for family in dict.fromkeys(self.families)
        ]

    def tied(self, rows: Sequence[int], placed: Sequence[np.ndarray]) -> list[int]:
        """Return those of some models that are within chance of the best of them."""
        best = max(rows, key=lambda row: float(placed[row].mean()))
        found = []
        for row in rows:
            gap = placed[row] - placed[best]
            error = gap.std(ddof=1) / np.sqrt(len(gap))
            if gap.mean() >= -TIED * error:
                found.append(row)
        return found


def main(argv: Sequence[str] | None = None) -> int:
    """Compare the rules, or write the page; return the exit code."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.selection")
    options.add_argument("--root", type=Path, default=Path("data"))
    options.add_argument("--cache", type=Path, default=Path("cache"))
    options.add_argument("--work", type=Path, default=Path("runs/benchmarks/selection"))
    options.add_argument("--only", default=",".join(DATA), help="names of data sets of the panel")
    options.add_argument("--seeds", default="0,1,2")
    options.add_argument("--docs", action="store_true", help="write the page; run nothing")
    given = options.parse_args(argv)
    try:
        if not given.docs:
            seeds = [int(seed) for seed in given.seeds.split(",")]
            places = Places(given.root, given.cache)
            runs = [
                run
                for name in given.only.split(",")
                for run in compared(name, seeds, places, given)
            ]
            content = {"name": "selection", "title": TITLE, **origin(), "runs": runs}
            write_json(RESULT, content)
        text = page(read_json(RESULT))
    except OnesidedError as error:
        print(f"benchmarks.selection: {error}", file=sys.stderr)
        return error.exit_code
    print(text)
    if given.docs:
        write_text(PAGE, text)
    return 0


def compared(
    name: str, seeds: Sequence[int], places: Places, given: argparse.Namespace
) -> list[dict[str, Any]]:
    """Return what every rule chooses on one data set, seed by seed."""
    one, pools, found = SETS[name], None, []
    for seed in seeds:
        path = given.work / f"{name}.{seed}.npz"
        if not path.exists():
            pools = pools or one.read(places)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_arrays(path, tried_on(one, draw(one, pools, seed), seed))
        print(f"{name}, seed {seed}", file=sys.stderr)
        found.append({"data": name, "seed": seed, "rules": choices(read_tried(path))})
    return found


def tried_on(one: PanelSet, problem: Problem, seed: int) -> dict[str, np.ndarray]:
    """Run the search on a problem; return the scores of all its models, with the truth."""
    kept: list[tuple[Search, list[str]]] = []

    def seen(*given: Any, **options: Any) -> Search:  # noqa: ANN401 - passed on as they are
        found = search(*given, **options)
        kept.append((found, list(given[0].split.train.names)))
        return found

    samples = list(problem.samples) if one.form == "texts" else problem.samples
    with patch.object(execute, "search", seen):
        PUClassifier(random_state=seed).fit(samples, problem.labels)
    found, names = kept[0]
    order = np.array([int(name.split()[-1]) for name in names])  # a sample is named by its row
    complete = [entry for entry in found.board.entries if entry.complete]
    assert (problem.labels[order] == found.board.labelled).all()
    return {
        "labelled": found.board.labelled,
        "truth": problem.classes[order],
        "names": np.array([entry.candidate.name for entry in complete]),
        "families": np.array([entry.candidate.family for entry in complete]),
        "ranks": np.array([entry.candidate.rank for entry in complete]),
        "scores": np.stack([entry.scores for entry in complete]),
    }


def read_tried(path: Path) -> Tried:
    """Return what was kept of a search, without averages: those are rules here."""
    with np.load(path, allow_pickle=False) as kept:
        families = kept["families"].tolist()
        single = [row for row, family in enumerate(families) if family != "average"]
        return Tried(
            kept["labelled"],
            kept["truth"],
            kept["names"][single].tolist(),
            [families[row] for row in single],
            kept["ranks"][single].tolist(),
            kept["scores"][single],
        )


def choices(tried: Tried) -> dict[str, Any]:
    """Return the figures of what each rule chooses."""
    placed = [tried.placed(scores) for scores in tried.scores]
    proxy = np.array([one.mean() for one in placed])
    prior = estimated_prior(tried, tried.scores[int(proxy.argmax())])
    below = np.array([tried.placed(scores, prior).mean() for scores in tried.scores])
    linear = [row for row, family in enumerate(tried.families) if family == "linear"]
    truth = [figures(tried, scores) for scores in tried.scores]
    best = max(range(len(truth)), key=lambda row: float(truth[row]["auc"]))
    rules: Mapping[str, Callable[[], np.ndarray]] = {
        "linear": lambda: tried.scores[max(linear, key=lambda row: float(proxy[row]))],
        "simplest": lambda: simplest(tried, placed, proxy),
        "highest": lambda: tried.scores[int(proxy.argmax())],
        "below the top": lambda: tried.scores[int(below.argmax())],
        "average": lambda: average_of_tied(tried, placed, proxy),
        "truly best": lambda: tried.scores[best],
    }
    return {name: figures(tried, rule()) for name, rule in rules.items()}


def simplest(tried: Tried, placed: Sequence[np.ndarray], proxy: np.ndarray) -> np.ndarray:
    """Return the scores of the simplest family within chance of the best."""
    tied = tried.tied(tried.best_of_families(proxy), placed)
    chosen: np.ndarray = tried.scores[min(tied, key=lambda row: (tried.ranks[row], -proxy[row]))]
    return chosen


def average_of_tied(tried: Tried, placed: Sequence[np.ndarray], proxy: np.ndarray) -> np.ndarray:
    """Return the mean of direct families within chance of their best, or a better network."""
    rows = tried.best_of_families(proxy)
    direct = [row for row in rows if tried.families[row] in AVERAGED]
    parts = [tried.scores[row] for row in tried.tied(direct, placed)]
    mean = averaged(parts, [spread(part) for part in parts])
    candidates = [mean, *(tried.scores[row] for row in rows if row not in direct)]
    return max(candidates, key=lambda scores: float(tried.placed(scores).mean()))


def estimated_prior(tried: Tried, scores: np.ndarray) -> float:
    """Return the prior that `auto` would estimate from these scores; a half where it has none."""
    found = own_prior_of_three(scores[tried.labelled], scores[~tried.labelled])
    return 0.5 if isinstance(found, NoPrior) else found.value


def figures(tried: Tried, scores: np.ndarray) -> dict[str, float]:
    """Return AUC, average precision and F1 of the pool."""
    pool, truth = scores[~tried.labelled], tried.truth[~tried.labelled]
    called = pool > prior_threshold(pool, estimated_prior(tried, scores))
    return {
        "auc": float(roc_auc_score(truth, pool)),
        "average_precision": float(average_precision_score(truth, pool)),
        "f1": float(truth_metrics(truth, called.astype(np.float64)).f1),
    }


def page(content: Mapping[str, Any]) -> str:
    """Return the page: one table over all data sets, one with each."""
    runs = content["runs"]
    rules, sets = list(runs[0]["rules"]), list(dict.fromkeys(run["data"] for run in runs))
    return (
        "\n\n".join(
            [
                "<!-- Generated by `python -m benchmarks.selection --docs` from "
                "benchmarks/results/selection.json; changes here are overwritten. -->",
                f"# {content['title']}",
                WORDS,
                markdown(
                    ["rule", "AUC", "average precision", "F1", "mean loss", "worst loss"],
                    [_summary(runs, rule, sets) for rule in rules],
                ),
                "## AUC of the pool, by data set",
                markdown(
                    ["", *rules],
                    [
                        [one, *(f"{100 * _mean(runs, rule, one, 'auc'):.1f}" for rule in rules)]
                        for one in sets
                    ],
                ),
                f"{len(runs)} searches, commit {content['commit'][:10]}, {content['date'][:10]}, "
                f"{content['machine']['cpu']} with {content['machine']['cores']} cores.",
            ]
        )
        + "\n"
    )


def _summary(runs: Sequence[Mapping[str, Any]], rule: str, sets: Sequence[str]) -> list[str]:
    means = [
        100 * statistics.fmean(_mean(runs, rule, one, figure) for one in sets)
        for figure in ("auc", "average_precision", "f1")
    ]
    lost = [
        100 * (_mean(runs, "truly best", one, "auc") - _mean(runs, rule, one, "auc"))
        for one in sets
    ]
    return [rule, *(f"{value:.2f}" for value in (*means, statistics.fmean(lost), max(lost)))]


def _mean(runs: Sequence[Mapping[str, Any]], rule: str, data: str, figure: str) -> float:
    return statistics.fmean(run["rules"][rule][figure] for run in runs if run["data"] == data)


if __name__ == "__main__":
    sys.exit(main())
