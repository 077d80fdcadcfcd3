"""One training: a problem in, a predictor out."""

import time
from dataclasses import dataclass, replace

from onesided.engine.fit import Memory, Watcher, fit
from onesided.engine.kept_epoch import CHOSEN_BY, delivers_last
from onesided.engine.log import Row
from onesided.engine.predict import Predictor
from onesided.metrics.alarm import falling_curve
from onesided.run.build import build_method
from onesided.run.encode import encode
from onesided.run.prior import PriorUsed, find_prior
from onesided.run.problem import Problem

NAMES = {"proxy_auc": "proxy AUC", "proxy_accuracy": "proxy accuracy"}
"""How a sentence names what an epoch is chosen by."""


@dataclass(frozen=True)
class Trained:
    """What training gives: the predictor, the prior that the method used, the seconds it took.

    `warnings` say where the curve of the proxy AUC shows that another epoch was better.
    """

    predictor: Predictor
    prior: PriorUsed | None
    seconds: float
    warnings: tuple[str, ...] = ()


def train(
    problem: Problem,
    *,
    memory: Memory | None = None,
    watcher: Watcher | None = None,
    prior: PriorUsed | None = None,
) -> Trained:
    """Encode, find the prior, build the method and fit it; only `memory` writes anything.

    `prior` is one that is known already; None finds it where the method needs one, or the choice of
    the epoch.
    """
    problem = encode(problem)
    config = problem.config
    by_accuracy = config.train.keep == "best-accuracy"
    if prior is None and (config.method.needs.prior or by_accuracy):
        prior = find_prior(config.prior, problem.split, config.seed)
    method = build_method(
        config.method,
        config.backbone.learner(),
        problem.data,
        problem.training,
        batch_size=config.train.batch_size,
        seed=config.seed,
        prior=prior.value if prior else None,
    )
    memory = memory or Memory()
    started = time.monotonic()
    seen: list[Row] = []
    predictor = fit(
        method,
        problem.training,
        config.train,
        seed=config.seed,
        memory=memory,
        watcher=_remembering(watcher or Watcher(), seen),
        prior=prior.value if prior else None,
    )
    data = problem.data
    predictor = replace(predictor, embedder=data.embedder, encoder=data.encoder)
    seconds = memory.log.seconds() or time.monotonic() - started
    # A resumed run saw only its last epochs; its file has them all.
    rows = memory.log.rows() or seen
    warnings = _curve_warnings(rows, problem, config.train.keep) if delivers_last(method) else ()
    return Trained(predictor, prior, seconds, warnings)


def _remembering(watcher: Watcher, rows: list[Row]) -> Watcher:
    """Return the watcher, which also appends each epoch's row to a list."""

    def epoch(row: Row) -> None:
        rows.append(row)
        watcher.epoch(row)

    return replace(watcher, epoch=epoch)


def _curve_warnings(rows: list[Row], problem: Problem, keep: str) -> tuple[str, ...]:
    """Return a sentence where an earlier epoch was clearly better, or which one was kept."""
    held_out = problem.split.held_out
    chosen_by = CHOSEN_BY.get(keep, "proxy_auc")
    measured = [row.get(chosen_by) for row in rows if row["stage"] == rows[-1]["stage"]]
    curve = [float(value) for value in measured if value is not None]
    if held_out is None or not curve or len(curve) < len(measured):
        return ()
    if keep in CHOSEN_BY:
        best = max(range(len(curve)), key=curve.__getitem__)
        return (
            f"Epoch {best + 1} of {len(curve)} was kept, because held-out items preferred it "
            f"({NAMES[chosen_by]} {curve[best]:.3f}, at the end {curve[-1]:.3f}). Figures from the "
            "same items are biased slightly high.",
        )
    fell = falling_curve(curve, int(held_out.labelled.sum()))
    return (fell,) if fell else ()
