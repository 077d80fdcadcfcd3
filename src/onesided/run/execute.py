"""One run, from a problem to its result: embed, prior, build, fit, score, evaluate, write."""

import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from onesided.core.dist import rank, wait_for_all
from onesided.core.errors import Interrupted
from onesided.engine.checkpoint import Checkpoints
from onesided.engine.fit import Memory, Watcher, fit
from onesided.engine.log import EpochLog
from onesided.engine.model_file import ModelDescription, save_model
from onesided.engine.predict import Predictor
from onesided.engine.train_config import choose_device, choose_precision
from onesided.metrics.figure import PUEvaluation
from onesided.run.build import build_method
from onesided.run.decisions import threshold_after_training
from onesided.run.embed import embed
from onesided.run.folder import (
    FEATURES,
    LAST,
    LOG,
    REPORT_DATA,
    RESULT,
    SCORED,
    SCORES,
    Place,
    RunFolder,
)
from onesided.run.gallery import save_report_data
from onesided.run.prior import PriorUsed, find_prior
from onesided.run.problem import Problem
from onesided.run.scored import Scored, entries_at, figures_at, prior_for_estimates
from onesided.run.truth_log import true_accuracy
from onesided.storage.atomic import write_json, write_text
from onesided.storage.table import csv_text


@dataclass(frozen=True)
class RunResult:
    """The folder of a finished run, and the content of its `result.json`."""

    folder: Path
    content: dict[str, Any]


@dataclass(frozen=True)
class Trained:
    """What training gives: the predictor, the prior that the method used, the seconds it took."""

    predictor: Predictor
    prior: PriorUsed | None
    seconds: float


@dataclass(frozen=True)
class Finished:
    """A trained model with its threshold, its scores, and its evaluation."""

    predictor: Predictor
    model: ModelDescription  # model.json
    scored: Scored
    evaluation: PUEvaluation | None  # None where nothing is held out
    result: dict[str, Any]  # result.json


def run(
    problem: Problem,
    place: Place,
    watcher: Watcher | None = None,
    *,
    features: Path | None = None,
    log_truth: int = 0,
) -> RunResult:
    """Do the run, or resume it, or return the result that it already has.

    The caller holds the lock of the folder, see `working_in`.

    Args:
        problem: Settings and data.
        place: The run folder.
        watcher: Receives progress.
        features: File of a frozen backbone's features, where several runs share one.
        log_truth: After how many epochs true accuracy is logged, for curves; 0 never. It changes
            nothing else, so it is no part of the run's identity.
    """
    watcher = watcher or Watcher()
    config, hashes, path = problem.config, problem.hashes(), place.path
    folder = RunFolder(path, hashes.identity, hashes.held_out)
    if rank() == 0:
        folder.claim(overwrite=place.overwrite)
    wait_for_all()
    if (result := folder.finished()) is not None:
        return RunResult(path, result)
    if rank() == 0 and not (path / LAST).exists():
        facts = {"seed": config.seed, "data_hash": hashes.content, "split_hash": hashes.split}
        folder.describe(config, problem.roles(), {**facts, "threads": torch.get_num_threads()})
    memory = Memory(
        Checkpoints(path / LAST, folder.identity),
        EpochLog(path / LOG, tensorboard=config.train.tensorboard),
    )
    try:
        problem = embed(problem, cache=features or path / FEATURES, progress=watcher.embed)
        if log_truth:
            watcher = replace(watcher, measure=true_accuracy(problem.split, log_truth))
        trained = train(problem, memory=memory, watcher=watcher)
    except Interrupted as stop:
        if place.overwrite:
            stop.add_remedy("Leave --overwrite out then, or it starts again from the beginning.")
        raise
    if rank() == 0:
        finished = finish(problem, trained)
        _write(path, problem, finished)
        result = finished.result
    wait_for_all()
    result = result or folder.finished()
    assert result is not None
    return RunResult(path, result)


def run_in_memory(problem: Problem, watcher: Watcher | None = None) -> Finished:
    """Do the run without a folder: it writes nothing and cannot be resumed."""
    problem = embed(problem)
    return finish(problem, train(problem, watcher=watcher))


def train(
    problem: Problem, *, memory: Memory | None = None, watcher: Watcher | None = None
) -> Trained:
    """Find the prior, build the method and fit it; only `memory` writes anything."""
    config = problem.config
    needed = config.method.needs.prior
    prior = find_prior(config.prior, problem.split, config.seed) if needed else None
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
    predictor = fit(
        method, problem.training, config.train, seed=config.seed, memory=memory, watcher=watcher
    )
    predictor = replace(predictor, embedder=problem.data.embedder)
    return Trained(predictor, prior, memory.log.seconds() or time.monotonic() - started)


def finish(problem: Problem, trained: Trained) -> Finished:
    """Score every sample, choose the threshold by the scores, and evaluate at it."""
    config = problem.config
    scored = _score_everything(problem, trained.predictor)
    given = config.prior if isinstance(config.prior, float) else None
    known = trained.prior.value if trained.prior else given
    chosen = threshold_after_training(config.threshold, scored, known)
    prior = prior_for_estimates(scored, trained.prior, given)
    evaluation = figures_at(scored, chosen.value, scenario=problem.split.scenario, prior=prior)
    result = {
        **_training_entries(problem, trained.seconds),
        "prior": prior.to_json() if prior else None,
        **entries_at(scored, chosen.value, evaluation, prior),
        "notices": [*problem.data.notices, *chosen.notices],
        "skipped": [list(item) for item in problem.data.skipped[:1000]],
        "threshold_rule": chosen.to_json("onesided fit"),
    }
    predictor = replace(trained.predictor, threshold=chosen.value)
    model = _describe_model(problem, chosen.value, trained.prior)
    return Finished(predictor, model, scored, evaluation, result)


def _score_everything(problem: Problem, predictor: Predictor) -> Scored:
    """Return the scores of every part of the data; each sample is scored once."""
    split, negatives = problem.split, problem.unseen_negatives
    train, held_out, test = split.train, split.held_out, split.test
    return Scored(
        train=predictor.scores(train.values),
        train_labelled=train.labelled,
        held_out=None if held_out is None else predictor.scores(held_out.values),
        held_out_labelled=None if held_out is None else held_out.labelled,
        test=None if test is None else predictor.scores(test.values),
        test_truth=None if test is None else test.truth,
        negatives=None if negatives is None else predictor.scores(negatives.values),
    )


def _training_entries(problem: Problem, seconds: float) -> dict[str, Any]:
    """Return the entries of `result.json` that say what was trained, and on what."""
    config, split = problem.config, problem.split
    device = choose_device(config.train.device)
    half = choose_precision(config.train.precision, device) == torch.bfloat16
    return {
        "method": config.method_name,
        "variant": getattr(config.method, "variant", "published"),
        "logs": {name: asdict(logged) for name, logged in config.method.card.logs.items()},
        "data": config.data.name,
        "seed": config.seed,
        "epochs": config.train.epochs,
        "seconds": round(seconds, 3),
        "device": str(device),
        "precision": "bf16" if half else "fp32",
        "n_positive": int(split.train.labelled.sum()),
        "n_unlabelled": int((~split.train.labelled).sum()),
        "scenario": split.scenario,
    }


def _describe_model(
    problem: Problem, threshold: float, prior: PriorUsed | None
) -> ModelDescription:
    """Return the content of `model.json`: how to rebuild the method, and which data it takes."""
    config, source = problem.config, problem.data.source
    return ModelDescription(
        method=config.method_name,
        settings=config.method.model_dump(mode="json"),
        backbone=config.backbone.for_samples(source.split.sample_shape),
        sample_shape=source.split.sample_shape,
        mean=source.mean,
        std=source.std,
        kind=source.split.kind,
        feature_names=source.feature_names,
        threshold=threshold,
        prior=prior.value if prior else None,
    )


def _write(path: Path, problem: Problem, finished: Finished) -> None:
    """Write model, scores, report data and, last of all, the result."""
    split, predictor, scored = problem.split, finished.predictor, finished.scored
    save_model(path, predictor.method, finished.model, embedder=predictor.embedder)
    parts = [split.train] if split.held_out is None else [split.train, split.held_out]
    names = [part.names[row] for part in parts for row in np.flatnonzero(part.unlabelled)]
    ranked = ranked_rows(names, scored.unlabelled, predictor.threshold)
    write_text(path / SCORES, csv_text(("item", "score", "rank", "decision"), ranked))
    scored.save(path / SCORED)
    images = problem.data.source.split
    save_report_data(path / REPORT_DATA, images, scored.train, scored.held_out, predictor)
    write_json(path / RESULT, finished.result)


def ranked_rows(
    names: list[str], scores: np.ndarray, threshold: float
) -> list[tuple[str, str, int, str]]:
    """Return (item, score, rank, decision), best first; equal scores in the order of names."""
    order = sorted(range(len(names)), key=lambda row: (-scores[row], names[row]))
    decisions = np.where(scores > threshold, "positive", "negative").tolist()
    return [
        (names[row], f"{scores[row]:.9g}", number, decisions[row])
        for number, row in enumerate(order, start=1)
    ]
