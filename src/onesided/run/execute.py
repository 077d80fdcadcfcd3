"""From a problem to a result: embed, prior, build, fit, score, judge, write."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from onesided.core.batch import DataFacts
from onesided.core.dist import rank, wait_for_all
from onesided.core.errors import Interrupted
from onesided.core.rng import generator
from onesided.engine.checkpoint import Checkpoints
from onesided.engine.fit import Memory, Watcher, fit
from onesided.engine.log import EpochLog
from onesided.engine.model_file import ModelDescription, save_model
from onesided.engine.predict import Predictor
from onesided.methods.base import Method
from onesided.metrics.figure import PUEvaluation
from onesided.nets.build import build_backbone, load_initial_weights, seeded
from onesided.run.decisions import threshold_after_training
from onesided.run.describe import Trained, describe_model, describe_result
from onesided.run.embed import embed
from onesided.run.first_look import show_samples
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
from onesided.run.scored import (
    Scored,
    entries_at,
    figures_at,
    prior_for_estimates,
)
from onesided.storage.atomic import write_json, write_text
from onesided.storage.table import csv_text


@dataclass(frozen=True)
class RunResult:
    """What a finished run says; `content` is `result.json`."""

    folder: Path
    content: dict[str, Any]

    @property
    def degenerate(self) -> str | None:
        """The alarm's sentence, or None."""
        pu = self.content["pu"]
        return None if pu is None else pu["degenerate"]


@dataclass(frozen=True)
class Finished:
    """A predictor with its threshold, the scores it gave, and what they say.

    Attributes:
        predictor: With the threshold that was chosen.
        model: What `model.json` says.
        scored: Scores of all there is.
        evaluation: Of the held-out part; None where nothing is held out.
        result: What `result.json` says.
    """

    predictor: Predictor
    model: ModelDescription
    scored: Scored
    evaluation: PUEvaluation | None
    result: dict[str, Any]


def run(
    problem: Problem,
    place: Place,
    watcher: Watcher | None = None,
    *,
    features: Path | None = None,
) -> RunResult:
    """Do the run, or go on with it, or return what it already found.

    The caller holds the folder meanwhile, see `working_in`.

    Args:
        problem: What to train on.
        place: Where to write.
        watcher: Told how far it is.
        features: File of a frozen network's features, where several runs on the same data share
            one; None keeps them in the run folder.
    """
    watcher = watcher or Watcher()
    config, hashes, path = problem.config, problem.hashes(), place.path
    folder = RunFolder(path, hashes.identity, hashes.held_out)
    if rank() == 0:
        folder.claim(overwrite=place.overwrite)
    wait_for_all()
    done = folder.finished()
    if done is not None:
        return RunResult(path, done)
    if rank() == 0 and not (path / LAST).exists():
        facts = {"seed": config.seed, "data_hash": hashes.content, "split_hash": hashes.split}
        folder.describe(config, problem.roles(), {**facts, "threads": torch.get_num_threads()})
    memory = Memory(
        Checkpoints(path / LAST, folder.identity),
        EpochLog(path / LOG, tensorboard=config.train.tensorboard),
    )
    try:
        problem = embed(problem, cache=features or path / FEATURES, progress=watcher.embed)
        trained = train(problem, memory=memory, watcher=watcher)
    except Interrupted as stop:
        if place.overwrite:
            stop.add_remedy("Leave --overwrite out then, or it begins anew.")
        raise
    written = _write(problem, folder, trained) if rank() == 0 else None
    wait_for_all()
    result = folder.finished() if written is None else written
    assert result is not None
    return RunResult(path, result)


def run_in_memory(problem: Problem, watcher: Watcher | None = None) -> Finished:
    """Do the run without a folder: nothing is kept but what is returned."""
    problem = embed(problem)
    return finish(problem, train(problem, watcher=watcher))


def train(
    problem: Problem, *, memory: Memory | None = None, watcher: Watcher | None = None
) -> Trained:
    """Find the prior, build the method and fit it; only `memory` writes anything."""
    config = problem.config
    needed = config.method.needs.prior
    prior = find_prior(config.prior, problem.split, config.seed) if needed else None
    method = build_method(problem, prior)
    memory = memory or Memory()
    started = time.monotonic()
    predictor = fit(
        method, problem.training, config.train, seed=config.seed, memory=memory, watcher=watcher
    )
    predictor = replace(predictor, embedder=problem.data.embedder)
    return Trained(predictor, prior, memory.log.seconds() or time.monotonic() - started)


def build_method(problem: Problem, prior: PriorUsed | None) -> Method:
    """Return the untrained method; its first weights depend on the seed alone."""
    config, split = problem.config, problem.training
    facts = DataFacts(
        rows=len(split.train),
        labelled=int(split.train.labelled.sum()),
        sample_shape=split.sample_shape,
        prior=prior.value if prior else None,
        batch_size=config.train.batch_size,
        seed=config.seed,
    )
    network = config.backbone.learner()
    backbone = build_backbone(
        network,
        split.sample_shape,
        problem.data.mean,
        problem.data.std,
        generator(config.seed, "backbone"),
    )
    show_samples(backbone, split, config.seed)
    load_initial_weights(network, backbone)
    with seeded(config.seed, "method"):
        return config.method.build(facts, backbone)


def _write(problem: Problem, folder: RunFolder, trained: Trained) -> dict[str, Any]:
    """Write model, scores, report data and, last of all, the result; return that."""
    split, finished = problem.split, finish(problem, trained)
    predictor, scored = finished.predictor, finished.scored
    save_model(folder.path, predictor.method, finished.model, embedder=predictor.embedder)
    parts = [split.train] if split.held_out is None else [split.train, split.held_out]
    names = [part.names[row] for part in parts for row in np.flatnonzero(part.unlabelled)]
    ranked = ranked_rows(names, scored.unlabelled, predictor.threshold)
    columns = ("item", "score", "rank", "decision")
    write_text(folder.path / SCORES, csv_text(columns, ranked))
    scored.save(folder.path / SCORED)
    pictures = problem.data.source.split
    path = folder.path / REPORT_DATA
    save_report_data(path, pictures, scored.train, scored.held_out, predictor)
    write_json(folder.path / RESULT, finished.result)
    return finished.result


def finish(problem: Problem, trained: Trained) -> Finished:
    """Score all there is, choose the threshold by it, and say how well that works."""
    config, loaded = problem.config, problem.data
    scored = score_everything(problem, trained.predictor)
    given = config.prior if isinstance(config.prior, float) else None
    known = trained.prior.value if trained.prior else given
    chosen = threshold_after_training(config.threshold, scored, known)
    predictor = replace(trained.predictor, threshold=chosen.value)
    trained = replace(trained, predictor=predictor)
    prior = prior_for_estimates(scored, trained.prior, given)
    scenario = loaded.split.scenario
    evaluation = figures_at(scored, chosen.value, scenario=scenario, prior=prior)
    finished = entries_at(scored, chosen.value, evaluation, prior)
    result = describe_result(config, loaded, replace(trained, prior=prior), finished)
    result["threshold_rule"] = chosen.to_json("onesided fit")
    result["notices"] += chosen.notices
    model = describe_model(config, loaded, trained)
    return Finished(predictor, model, scored, evaluation, result)


def score_everything(problem: Problem, predictor: Predictor) -> Scored:
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


def ranked_rows(
    names: list[str], scores: np.ndarray, threshold: float
) -> list[tuple[str, str, int, str]]:
    """Return (item, score, rank, decision), best first; equal scores in the order of names."""
    order = sorted(range(len(names)), key=lambda row: (-scores[row], names[row]))
    words = {True: "positive", False: "negative"}
    return [
        (names[row], f"{scores[row]:.9g}", place, words[bool(scores[row] > threshold)])
        for place, row in enumerate(order, start=1)
    ]
