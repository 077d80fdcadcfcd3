"""Do the intervals hold what they promise, after a search chose the best of many models?

    python -m benchmarks.coverage            200 simulated problems, some twenty CPU-minutes
    python -m benchmarks.coverage --docs     write the page from the result file, run nothing

A problem is two clouds of points that overlap, some dimensions of pure noise, some positives
labelled at random. `PUClassifier()` at its default searches among its candidates; then what it
claims about the pool is compared with the truth of that same pool. A claim about the future is
easier: the pool's own luck is part of what is missed here.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.command import REPOSITORY
from benchmarks.origin import filled, origin
from benchmarks.tables import commit_words, markdown
from onesided import PUClassifier
from onesided.core.rng import numpy_generator
from onesided.metrics.truth import truth_metrics
from onesided.storage.atomic import read_json, write_text

RESULT = REPOSITORY / "benchmarks" / "results" / "coverage.json"
PAGE = REPOSITORY / "docs" / "benchmarks" / "coverage.md"
PROBLEMS = 200
UNLABELLED = 2000
FIGURES = ("recall", "precision", "f1", "prior", "proxy_auc", "auc")


def main(argv: Sequence[str] | None = None) -> int:
    """Simulate what is missing, and print or write the page."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.coverage")
    options.add_argument("--problems", type=int, default=PROBLEMS)
    options.add_argument("--docs", action="store_true", help="write the page; run nothing")
    given = options.parse_args(argv)
    if not given.docs:
        head = {"name": "coverage", "origin": origin()}
        filled(RESULT, head, key="number", asked=range(given.problems), measure=simulated)
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


def simulated(number: int) -> dict[str, Any]:
    """Return what was claimed and what was true in one problem."""
    samples, labels, truth, prior = drawn(number)
    began = time.process_time()
    estimator = PUClassifier(random_state=number).fit(samples, labels.astype(int))
    scores, evaluation = estimator.pool_scores_, estimator.evaluation_
    assert evaluation is not None, "a search always evaluates"
    figures = evaluation.figures
    at = truth_metrics(truth.astype(np.int64), scores, threshold=estimator.result_["threshold"])
    auc, share = float(roc_auc_score(truth, scores)), float(truth.mean())
    true = {
        "recall": at.recall,
        "precision": at.precision,
        "f1": at.f1,
        "prior": share,
        "proxy_auc": auc * (1 - share) + share / 2,
        "auc": auc,
    }
    claimed = {
        name: [figures[name].value, figures[name].low, figures[name].high] for name in FIGURES
    }
    return {
        "number": number,
        "prior": prior,
        "positives": int(labels.sum()),
        "chosen": estimator.result_["words"],
        "tried": sum(row["tried"] for row in estimator.result_["leaderboard"]),
        "optimism": estimator.result_["optimism"],
        "claimed": claimed,
        "true": true,
        "cpu_seconds": round(time.process_time() - began, 2),
    }


def page(content: Mapping[str, Any]) -> str:
    """Return the page as Markdown."""
    runs = content["rows"]
    rows = []
    for name in FIGURES:
        found = [(run["claimed"][name], run["true"][name]) for run in runs]
        known = [(claim, true) for claim, true in found if claim[0] is not None]
        if not known:
            continue
        held = [claim[1] <= true <= claim[2] for claim, true in known]
        errors = [claim[0] - true for claim, true in known]
        wide = [claim[2] - claim[1] for claim, _ in known]
        rows.append(
            [
                name.replace("_", " "),
                str(len(known)),
                f"{np.mean(held):.1%}",
                f"{np.mean([true <= claim[2] for claim, true in known]):.1%}",
                f"{np.mean(errors):+.3f}",
                f"{np.median(wide):.3f}",
            ]
        )
    columns = (
        "figure",
        "problems with a value",
        "interval holds the truth",
        "truth not above it",
        "mean error",
        "width",
    )
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
            "Prior, precision and F1 are marked as biased high in reports: the clouds overlap,",
            "and then no estimate from P and U alone is right. The fourth column counts where the",
            "truth is in the interval or, as the report warns, below it.",
            "",
            markdown(columns, rows),
            "",
            f"Measured at {commit_words(content['origin'])}.",
            "",
        ]
    )


if __name__ == "__main__":
    raise SystemExit(main())
