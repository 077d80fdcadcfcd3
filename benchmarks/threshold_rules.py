"""Which threshold rule gives the best F1 on the same out-of-fold scores?

    python -m benchmarks.threshold_rules --work FOLDER    from scores that benchmarks.panel kept
    python -m benchmarks.threshold_rules --docs           write the page

The scores are those of logistic regression and of the forest of the panel, P against U, each item
scored by a model that was not trained on it. True classes evaluate the rules; only the two columns
called *needs the truth* use them to decide.
"""

import argparse
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.command import REPOSITORY
from benchmarks.origin import origin
from benchmarks.panel import RESULT as PANEL
from benchmarks.panel_page import where_measured
from benchmarks.panel_rows import ROWS, elkan_noto, elkan_noto_in_pool, platt
from benchmarks.tables import NOTHING, markdown
from onesided.core.errors import DataNotFound, OnesidedError
from onesided.metrics.threshold_rules import NoThreshold, lee_liu_threshold, prior_threshold
from onesided.metrics.truth import truth_metrics
from onesided.priors import bbe, binormal
from onesided.priors import elkan_noto as elkan_noto_prior
from onesided.storage.atomic import read_json, write_json, write_text

RESULT = REPOSITORY / "benchmarks" / "results" / "threshold_rules.json"
PAGE = REPOSITORY / "docs" / "benchmarks" / "threshold_rules.md"
TITLE = "Threshold rules on the same scores"
SCORED = ("lr", "rf")
RULES = {
    "elkan-noto": "Elkan-Noto",
    "elkan-noto-scaled": "Elkan-Noto, scaled",
    "elkan-noto-in-pool": "Elkan-Noto in U, scaled",
    "bbe": "BBE prior",
    "lee-liu": "Lee-Liu",
    "elkan-noto-ranks": "Elkan-Noto, by ranks",
    "both": "BBE and Elkan-Noto by ranks",
    "bell-curves": "two bell curves",
    "median": "median of three",
    "true-prior": "true prior",
    "best": "best F1",
}
ORACLES = ("true-prior", "best")
WORDS = (
    "F1 on the pool U in percent, mean over seeds. **Elkan-Noto**: score above half of its mean "
    "over P, scores as the model gives them; **scaled**: the same after Platt's scaling of the "
    "out-of-fold scores; **in U**: the posterior of an item of U above one half, which accounts "
    "for the labelled positives that are not in U (benchmarks/panel_rows.py derives it). **BBE "
    "prior**: the top share of U that best bin estimation gives. **Lee-Liu**: the maximum of "
    "r^2 / s. **By ranks**: the share that Elkan and Noto's cut calls after a scaling of ranks. "
    "**BBE and Elkan-Noto by ranks**: the geometric mean of that share and BBE's. **Two bell "
    "curves**: the prior of the binormal model (priors/binormal.py). **Median of three**: the "
    "middle one of BBE, Elkan-Noto by ranks and the bell curves, which `auto` uses. The last two "
    "columns *need the truth*: the top share of the true prior, and the best "
    "F1 that any threshold has. Bold is the best rule without the truth."
)


def main(argv: Sequence[str] | None = None) -> int:
    """Compare the rules, or write the page; return the exit code."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.threshold_rules")
    options.add_argument("--work", type=Path, default=Path("runs/benchmarks/panel"))
    options.add_argument("--docs", action="store_true", help="write the page; run nothing")
    given = options.parse_args(argv)
    try:
        if not given.docs:
            write_json(RESULT, measured(given.work))
        text = page(read_json(RESULT))
    except OnesidedError as error:
        print(f"benchmarks.threshold_rules: {error}", file=sys.stderr)
        return error.exit_code
    print(text)
    if given.docs:
        write_text(PAGE, text)
    return 0


def measured(work: Path) -> dict[str, Any]:
    """Return the content of the result file, from the panel's records and their kept scores."""
    runs = [
        compared(record, work)
        for record in read_json(PANEL)["runs"]
        if record["row"] in SCORED and record["status"] == "finished"
    ]
    return {"name": "threshold_rules", "title": TITLE, **origin(), "runs": runs}


def compared(record: Mapping[str, Any], work: Path) -> dict[str, Any]:
    """Return what every rule makes of the scores of one run."""
    path = work / f"{record['data']}.{record['row']}.{record['seed']}.npz"
    if not path.exists():
        raise DataNotFound(
            f"There are no scores {path}. Give the --work folder of benchmarks.panel, or run its "
            "rows lr and rf again without their records."
        )
    with np.load(path, allow_pickle=False) as kept:
        positive, pool, truth, scaled_pool = (
            kept[name] for name in ("positive", "pool", "truth", "scaled_pool")
        )
    if abs(roc_auc_score(truth, scaled_pool) - record["pool"]["auc"]) > 1e-9:
        raise DataNotFound(f"{path} holds scores of another run than the record in {PANEL.name}.")
    return {
        **{key: record[key] for key in ("data", "row", "seed", "problem", "origin")},
        "auc": float(roc_auc_score(truth, pool)),
        "rules": decisions(positive, pool, truth),
    }


def decisions(positive: np.ndarray, pool: np.ndarray, truth: np.ndarray) -> dict[str, Any]:
    """Return the figures of every rule; None with the reason where a rule has no threshold."""
    labels = np.repeat([1, 0], [len(positive), len(pool)])
    scaling = platt(labels, np.concatenate([positive, pool]))
    scaled = scaling(positive), scaling(pool)
    best_bins = bbe(positive, pool, resamples=1).value
    by_ranks = max(elkan_noto_prior(positive, pool, resamples=1).value, 1 / len(pool))
    curves = binormal(positive, pool).value
    median = float(np.median([best_bins, by_ranks, curves]))
    rules: dict[str, Callable[[], np.ndarray]] = {
        "elkan-noto": lambda: elkan_noto(positive, pool),
        "elkan-noto-scaled": lambda: elkan_noto(*scaled),
        "elkan-noto-in-pool": lambda: elkan_noto_in_pool(*scaled),
        "bbe": lambda: pool > prior_threshold(pool, best_bins),
        "lee-liu": lambda: pool > lee_liu_threshold(positive, pool),
        "elkan-noto-ranks": lambda: pool > prior_threshold(pool, by_ranks),
        "both": lambda: pool > prior_threshold(pool, float(np.sqrt(by_ranks * best_bins))),
        "bell-curves": lambda: pool > prior_threshold(pool, curves),
        "median": lambda: pool > prior_threshold(pool, median),
        "true-prior": lambda: pool > prior_threshold(pool, float(truth.mean())),
        "best": lambda: pool > best_threshold(pool, truth),
    }
    found: dict[str, Any] = {}
    for name, rule in rules.items():
        try:
            called = rule()
        except NoThreshold as error:
            found[name] = {"failure": str(error)}
            continue
        at = truth_metrics(truth, called.astype(np.float64))
        figures = {"f1": at.f1, "precision": at.precision, "recall": at.recall}
        found[name] = {**figures, "share": float(called.mean())}
    return found


def best_threshold(scores: np.ndarray, truth: np.ndarray) -> float:
    """Return the threshold with the highest true F1; only the truth can choose it."""
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], np.cumsum(truth[order])
    f1 = 2 * hits / (np.arange(1, len(scores) + 1) + truth.sum())
    last = np.append(ranked[1:] < ranked[:-1], True)  # equal scores are called together
    place = int(np.argmax(np.where(last, f1, -1)))
    return float(ranked[place + 1]) if place + 1 < len(ranked) else -np.inf


def page(content: Mapping[str, Any]) -> str:
    """Return the page: a table for each model, and a summary."""
    parts = [
        "<!-- Generated by `python -m benchmarks.threshold_rules --docs` from "
        "benchmarks/results/threshold_rules.json; changes here are overwritten. -->",
        f"# {content['title']}",
        WORDS,
        "## Summary",
        summary(content["runs"]),
    ]
    for row in SCORED:
        runs = [run for run in content["runs"] if run["row"] == row]
        if runs:
            parts += [f"## {ROWS[row].title}: {ROWS[row].words}", table(runs)]
    return "\n\n".join([*parts, where_measured(content)]) + "\n"


def table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return F1 of every rule by data set, with the share it calls in brackets."""
    lines = []
    for data in dict.fromkeys(run["data"] for run in runs):
        here = [run for run in runs if run["data"] == data]
        means = {rule: mean_of(here, rule, "f1") for rule in RULES}
        best = max(
            value for rule, value in means.items() if rule not in ORACLES and value is not None
        )
        words = []
        for rule, value in means.items():
            if value is None:
                words.append(NOTHING)
                continue
            text = f"{100 * value:.1f}"
            text = f"**{text}**" if value == best and rule not in ORACLES else text
            words.append(f"{text} ({100 * (mean_of(here, rule, 'share') or 0):.0f})")
        auc = statistics.fmean(run["auc"] for run in here)
        lines.append([data, f"{100 * here[0]['problem']['prior']:g}", f"{100 * auc:.1f}", *words])
    return "In brackets, the share of U that is called.\n\n" + markdown(
        ["", "prior", "AUC", *RULES.values()], lines
    )


def mean_of(runs: Iterable[Mapping[str, Any]], rule: str, figure: str) -> float | None:
    """Return the mean of a figure over runs where the rule has a threshold."""
    values = [run["rules"][rule][figure] for run in runs if figure in run["rules"][rule]]
    return statistics.fmean(values) if values else None


def summary(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return for each model and rule the mean F1, what is lost to the best, and the worst case."""
    lines = []
    for row in SCORED:
        here = [run for run in runs if run["row"] == row]
        wins = Counter(_winner(run) for run in here)
        for rule, name in RULES.items():
            rated = [run for run in here if "f1" in run["rules"][rule]]
            if not rated:
                continue
            lost = [run["rules"]["best"]["f1"] - run["rules"][rule]["f1"] for run in rated]
            over = [run["rules"][rule]["share"] / run["problem"]["prior"] for run in rated]
            lines.append(
                [
                    *(ROWS[row].title, name, str(len(rated))),
                    f"{100 * statistics.fmean(run['rules'][rule]['f1'] for run in rated):.1f}",
                    f"{100 * statistics.fmean(lost):.1f}",
                    f"{100 * max(lost):.1f}",
                    f"{statistics.median(over):.2f}",
                    NOTHING if rule in ORACLES else str(wins[rule]),
                ]
            )
    columns = ["scores", "rule", "runs", "mean F1", "mean loss to best F1", "worst loss"]
    return markdown([*columns, "median of share / prior", "best rule of a run"], lines)


def _winner(run: Mapping[str, Any]) -> str:
    """Return the rule with the highest F1; the first of equals."""
    rated = [rule for rule in RULES if rule not in ORACLES and "f1" in run["rules"][rule]]
    return max(rated, key=lambda rule: run["rules"][rule]["f1"])


if __name__ == "__main__":
    sys.exit(main())
