"""What a run claims about its pool, beside the truth; scores are kept, claims computed anew.

Training takes minutes and a formula for an interval milliseconds. So the scores of a training are
kept in a work folder, with the commit that made them, and what follows from scores alone (prior,
threshold, figures) is computed again each time, by the functions that every run uses.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.origin import code_in_memory
from onesided import PUClassifier
from onesided.data.problem.samples import ImageKind
from onesided.data.read.arrays import from_arrays
from onesided.estimator.classifier import in_given_order
from onesided.estimator.inputs import given_settings
from onesided.metrics.figure import VAGUE, Figure
from onesided.metrics.selection import Optimism
from onesided.metrics.threshold_rules import parse_rule
from onesided.metrics.truth import truth_metrics
from onesided.run.config import OwnConfig
from onesided.run.decisions import threshold_after_training
from onesided.run.execute import run_in_memory
from onesided.run.load import divide_own
from onesided.run.presets import plan_run
from onesided.run.problem import build_problem
from onesided.run.scored import Scored, figures_at, prior_for_estimates
from onesided.storage.atomic import read_json, write_arrays, write_json
from onesided.storage.own_file import read_arrays

COLUMNS = (
    "figure",
    "with an interval",
    "interval holds the truth",
    "truth not above it",
    "told",
    "width",
)
FIGURES = ("recall", "precision", "f1", "prior", "proxy_auc", "auc")


@dataclass(frozen=True)
class Kept:
    """Scores of one training.

    Attributes:
        scored: As a run stores them.
        pool: Those of U, in the order in which the samples were given.
        facts: What else the claims need, and where the scores come from.
    """

    scored: Scored
    pool: np.ndarray
    facts: Mapping[str, Any]


def kept_training(
    folder: Path,
    samples: np.ndarray,
    labels: np.ndarray,
    *,
    seed: int,
    method: str = "auto",
    kind: ImageKind | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Kept:
    """Return the scores of a training on P and U: those in the folder, or new ones."""
    if not (folder / "facts.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        _train(folder, samples, labels, seed=seed, method=method, kind=kind, settings=settings)
    pool = read_arrays(folder / "pool.npz")["pool"]
    return Kept(Scored.load(folder / "scores.npz"), pool, read_json(folder / "facts.json"))


def _train(
    folder: Path,
    samples: np.ndarray,
    labels: np.ndarray,
    *,
    seed: int,
    method: str,
    kind: ImageKind | None,
    settings: Mapping[str, Any] | None,
) -> None:
    """Train as `PUClassifier` does, and write the scores; the facts last, as a sign of the end."""
    began = time.process_time()
    parameters = PUClassifier(method, settings=settings).get_params()
    given = given_settings(parameters, images=samples.ndim > 2, seed=seed)
    plan = plan_run(given, "quick")
    assert isinstance(plan.checked.data, OwnConfig)
    data = from_arrays(samples, labels, labels_mean="pu", kind=kind)
    loaded = divide_own(data, plan.checked.data)
    problem = build_problem(plan.for_data(loaded.split), loaded)
    finished = run_in_memory(problem)
    result, names = finished.result, [str(row) for row in np.flatnonzero(labels == 0)]
    finished.scored.save(folder / "scores.npz")
    pool = in_given_order(problem.split, finished.scored.unlabelled, names)
    write_arrays(folder / "pool.npz", {"pool": pool})
    facts = {
        "commit": code_in_memory()["commit"],
        "rule": result["threshold_rule"]["rule"],
        "scenario": result["scenario"],
        **Optimism.of_result(result).to_json(),
        "words": result.get("words", method),
        "tried": sum(row["tried"] for row in result.get("leaderboard", [])) or 1,
        "cpu_seconds": round(time.process_time() - began, 2),
    }
    write_json(folder / "facts.json", facts)


def claimed_and_true(kept: Kept, truth: np.ndarray) -> dict[str, Any]:
    """Return each figure as claimed, [value, low, high], and its truth on that same pool."""
    scored, facts = kept.scored, kept.facts
    threshold = threshold_after_training(parse_rule(facts["rule"]), scored, None).value
    evaluation = figures_at(
        scored,
        threshold,
        scenario=facts["scenario"],
        prior=prior_for_estimates(scored, None, None),
        optimism=Optimism.of_result(facts),
    )
    assert evaluation is not None, "some items are always held out here"
    figures = {name: evaluation.figures[name] for name in FIGURES}
    at = truth_metrics(truth.astype(np.int64), kept.pool, threshold=threshold)
    auc, share = float(roc_auc_score(truth, kept.pool)), float(truth.mean())
    proxy = auc * (1 - share) + share / 2
    true = {"recall": at.recall, "precision": at.precision, "f1": at.f1, "prior": share}
    return {
        "claimed": {name: _ends(figure) for name, figure in figures.items()},
        "true": {**true, "proxy_auc": proxy, "auc": auc},
    }


def _ends(figure: Figure) -> list[float | int | None]:
    return [figure.value, figure.low, figure.high]


def coverage_row(runs: Sequence[Mapping[str, Any]], name: str) -> list[str]:
    """Return how often the interval of a figure held the truth, as a row below `COLUMNS`."""
    found = [(run["claimed"][name], run["true"][name]) for run in runs]
    known = [(claim, true) for claim, true in found if claim[1] is not None]
    title = name.replace("_", " ")
    if not known:
        return [title, "0", "-", "-", "0", "-"]
    wide = np.array([claim[2] - claim[1] for claim, _ in known])
    return [
        title,
        str(len(known)),
        f"{np.mean([claim[1] <= true <= claim[2] for claim, true in known]):.1%}",
        f"{np.mean([true <= claim[2] for claim, true in known]):.1%}",
        str(int((wide <= VAGUE).sum())),
        f"{np.median(wide):.3f}",
    ]
