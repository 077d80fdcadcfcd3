"""Do probabilities mean what they say, and what were the scores worth as probabilities?

    python -m benchmarks.calibration                  sets of scikit-learn, a CPU-minute
    python -m benchmarks.calibration --data all --cache CACHE    with tables of the panel
    python -m benchmarks.calibration --docs           write the page from the result file

`PUClassifier` is fitted to sets of the panel as it comes. Its scores and its probabilities are
compared with the true classes, which it never sees: of the pool, where each score is of a model
that was not trained on the item, and of a test part, scored by the final model.
"""

import argparse
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import REPOSITORY
from benchmarks.origin import filled, origin
from benchmarks.panel_data import SETS, Places, draw
from benchmarks.tables import commit_words, markdown
from onesided import PUClassifier
from onesided.metrics.reliability import reliability
from onesided.storage.atomic import read_json, write_text

RESULT = REPOSITORY / "benchmarks" / "results" / "calibration.json"
PAGE = REPOSITORY / "docs" / "benchmarks" / "calibration.md"
SEEDS, BUDGET = 3, "20s"
EMBEDDED = ("wine", "breast-cancer", "digits-8-vectors")
"""Sets that scikit-learn brings along."""
OTHERS = ("crx", "german", "phoneme", "splice", "page-blocks", "adult", "spambase")
NO_TEST_PART = {"raw": None, "probability": None}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is missing, and print or write the page."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.calibration")
    options.add_argument("--data", choices=("embedded", "all"), default="embedded")
    options.add_argument("--cache", type=Path, default=Path("cache"))
    options.add_argument("--docs", action="store_true", help="write the page; run nothing")
    given = options.parse_args(argv)
    if not given.docs:
        names = EMBEDDED if given.data == "embedded" else (*EMBEDDED, *OTHERS)
        head = {"name": "calibration", "origin": origin(), "seeds": SEEDS, "budget": BUDGET}
        asked = [f"{name} {seed}" for name in names for seed in range(SEEDS)]
        places = Places(given.cache, given.cache)
        filled(RESULT, head, key="problem", asked=asked, measure=lambda one: measured(one, places))
    text = page(read_json(RESULT))
    print(text)
    if given.docs:
        write_text(PAGE, text)
    return 0


def measured(problem: str, places: Places) -> dict[str, Any]:
    """Return the calibration errors of one problem, by its set and seed."""
    name, seed = problem.rsplit(" ", 1)
    one = SETS[name]
    drawn = draw(one, one.read(places), int(seed))
    estimator = PUClassifier(budget=BUDGET, random_state=int(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what they say is in the result
        estimator.fit(drawn.samples, drawn.labels)
        result = estimator.result_
        truth = drawn.truth == 1
        test: Mapping[str, Any] = NO_TEST_PART
        if drawn.test is not None and drawn.test_truth is not None:
            scores = estimator.decision_function(drawn.test) + result["threshold"]
            found = estimator.predict_proba(drawn.test)[:, 1]
            test = _both(scores, found, drawn.test_truth == 1, result)
    pool = _both(estimator.pool_scores_, estimator.pool_probabilities_, truth, result)
    return {
        "problem": problem,
        "data": name,
        "prior": float(truth.mean()),
        "estimated": (result["prior"] or {}).get("value"),
        "interval": [(result["prior"] or {}).get(end) for end in ("low", "high")],
        "basis": result["calibration"]["basis"],
        "explained": result["calibration"]["explained"],
        "typical": result["typical"],
        "pool": pool,
        "test": test,
        "seconds": result["seconds"],
    }


def _both(
    scores: np.ndarray, found: np.ndarray | None, truth: np.ndarray, result: Mapping[str, Any]
) -> dict[str, Any]:
    calibrated = result["calibration"]["basis"] is not None and found is not None
    return {
        "raw": reliability(np.clip(scores, 0, 1), truth).to_json(),
        "probability": reliability(found, truth).to_json()
        if calibrated and found is not None
        else None,
    }


def page(content: Mapping[str, Any]) -> str:
    """Return the page as Markdown."""
    rows = content["rows"]
    names = list(dict.fromkeys(row["data"] for row in rows))
    table = [_row(name, [row for row in rows if row["data"] == name]) for name in names]
    kept = [row for row in rows if row["basis"]]
    better = sum(row["pool"]["probability"]["error"] < row["pool"]["raw"]["error"] for row in kept)
    means = [
        np.mean([row["pool"][kind]["error"] for row in kept]) for kind in ("raw", "probability")
    ]
    near = [row for row in kept if abs(row["estimated"] - row["prior"]) <= 0.2 * row["prior"]]
    seen = [row for row in rows if row["typical"] is not None]
    rejected = sum(row["typical"]["rejected"] for row in seen)
    strong = sum(row["typical"]["power"]["8"] >= 0.5 for row in seen)
    return "\n".join(
        [
            "# Calibration of probabilities",
            "",
            "<!-- python -m benchmarks.calibration --docs wrote this from "
            "results/calibration.json -->",
            "",
            "Expected calibration error (ten bins of equal size; mean over seeds, in percentage "
            "points) of scores taken",
            "as probabilities and of the column `probability`, against true classes that nothing "
            "else saw. **By chance** is",
            "what right probabilities would show on as many items. The prior is estimated from "
            "the scores, not given.",
            "",
            markdown(
                (
                    *("data", "prior, true", "prior, estimated", "score", "probability"),
                    *("by chance", "score, test", "probability, test", "left out"),
                ),
                table,
            ),
            "",
            f"Of {len(rows)} problems {len(kept)} have probabilities. Their mean error is "
            f"{means[1]:.1%}, that of the scores {means[0]:.1%}; it is",
            f"smaller in {better} of {len(kept)}. What is left is mostly the prior: where its "
            f"estimate is within a fifth of the truth ({len(near)}",
            f"problems), the mean error is {_mean(near):.1%}, elsewhere "
            f"{_mean([row for row in kept if row not in near]):.1%}.",
            "",
            f"P is a random part of the positives here. The test of that rejected it in {rejected} "
            f"of {len(seen)} problems, and in {strong} of them",
            "would have found positives of one half labelled eight times as often in at least half "
            "of the cases.",
            "",
            f"Measured at {commit_words(content['origin'])}.",
            "",
        ]
    )


def _row(name: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    kept = [row for row in rows if row["basis"]]
    estimated = [row["estimated"] for row in rows if row["estimated"] is not None]
    return [
        name,
        f"{rows[0]['prior']:.2f}",
        f"{np.mean(estimated):.2f}" if estimated else "-",
        _points([row["pool"]["raw"]["error"] for row in rows]),
        _points([row["pool"]["probability"]["error"] for row in kept]),
        _points([row["pool"]["probability"]["by_chance"] for row in kept]),
        _points([row["test"]["raw"]["error"] for row in rows if row["test"]["raw"]]),
        _points([row["test"]["probability"]["error"] for row in kept if row["test"]["raw"]]),
        f"{len(rows) - len(kept)} of {len(rows)}",
    ]


def _points(errors: Sequence[float]) -> str:
    return f"{100 * np.mean(errors):.1f}" if errors else "-"


def _mean(rows: Sequence[Mapping[str, Any]]) -> float:
    return float(np.mean([row["pool"]["probability"]["error"] for row in rows])) if rows else 0.0


if __name__ == "__main__":
    raise SystemExit(main())
