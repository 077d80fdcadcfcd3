"""One run, from a problem to its result: embed, prior, build, fit, score, evaluate, write."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from onesided.core.dist import rank, wait_for_all
from onesided.core.errors import Interrupted
from onesided.core.threads import using_threads
from onesided.data.problem.content import counted
from onesided.engine.checkpoint import Checkpoints
from onesided.engine.fit import Memory, Watcher
from onesided.engine.log import EpochLog
from onesided.engine.model_file import ModelDescription, save_model
from onesided.engine.predict import Predictor
from onesided.engine.train_config import choose_device, choose_precision
from onesided.methods import AUTO
from onesided.methods.auto import AutoConfig
from onesided.metrics.calibration import Calibration
from onesided.metrics.figure import PUEvaluation
from onesided.metrics.selection import Optimism
from onesided.run.calibrated import calibrate, with_truth
from onesided.run.cards import write_cards
from onesided.run.columns import columns_of, numbers_of
from onesided.run.config import RunConfig
from onesided.run.decisions import threshold_after_training
from onesided.run.doubts import doubts_of
from onesided.run.embed import embed
from onesided.run.familiar import reference_of
from onesided.run.folder import (
    CACHE,
    DESCRIBED,
    LAST,
    LOG,
    REPORT_DATA,
    RESULT,
    SCORED,
    SCORES,
    SEARCH,
    STORE,
    THREADS,
    Place,
    RunFolder,
)
from onesided.run.gallery import save_report_data
from onesided.run.prior import PriorUsed
from onesided.run.problem import Hashes, Problem
from onesided.run.scored import (
    Scored,
    entries_at,
    figures_at,
    group_numbers,
    prior_for_estimates,
)
from onesided.run.search.race import Search, search
from onesided.run.training import Trained, train
from onesided.run.truth_log import true_accuracy
from onesided.run.typical import examine, without_probabilities
from onesided.run.work import threads_for
from onesided.storage.atomic import write_json, write_text
from onesided.storage.table import csv_text
from onesided.storage.together import together, write_checksums


@dataclass(frozen=True)
class RunResult:
    """The folder of a finished run, and the content of its `result.json`."""

    folder: Path
    content: dict[str, Any]


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
        features: Folder of frozen backbones' features, where several runs share one.
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
        watcher.resumed(
            f"{path} holds this run, and it is finished: nothing is trained again. To train anew, "
            "add --overwrite."
        )
        return RunResult(path, result)
    if done := _done_before(path):
        watcher.resumed(f"Resuming the run in {path}: {done}.")
    if rank() == 0:
        _record(problem, folder, hashes)
    wait_for_all()
    memory = Memory(
        Checkpoints(path / LAST, folder.identity),
        EpochLog(path / LOG, tensorboard=config.train.tensorboard),
    )
    # As rank 0 recorded it: processes with other numbers would not stay equal.
    with using_threads(folder.threads()):
        try:
            seen = embed(problem, cache=features or path / CACHE / STORE, progress=watcher.embed)
            problem, found = choose(seen, problem, folder=path / SEARCH, watcher=watcher)
            prior = found.prior if found else None
            if log_truth:
                watcher = replace(watcher, measure=true_accuracy(problem.split, log_truth))
            trained = train(problem, memory=memory, watcher=watcher, prior=prior)
        except Interrupted as stop:
            if place.overwrite:
                again = "Leave --overwrite out then, or it starts again from the beginning."
                stop.add_remedy(again)
            raise
        if rank() == 0:
            finished = finish(problem, trained, found)
            _write(path, problem, finished)
            result = finished.result
    wait_for_all()
    result = result or folder.finished()
    assert result is not None
    return RunResult(path, result)


def _done_before(path: Path) -> str:
    """Return what a stopped run has done already, "" where it did not come so far."""
    if (path / LAST).exists():
        return f"training continues from the state in {LAST}"
    folds = len(list((path / SEARCH).glob("*/*.npz")))
    if folds or any((path / SEARCH).glob("*/*.pt")):
        return f"{folds} trainings of its search are done and are not repeated"
    return ""


def _record(problem: Problem, folder: RunFolder, hashes: Hashes) -> None:
    """Write what the run is and how many threads it has; a run that was begun keeps its number.

    Sums depend on it in their last bits. Only the user's setting changes it, and that is recorded.
    """
    config, recorded = problem.config, folder.threads()
    threads = config.train.threads_given or recorded or threads_for(problem)
    if not (folder.path / LAST).exists():
        facts = {"seed": config.seed, "data_hash": hashes.content, "split_hash": hashes.split}
        folder.describe(config, problem.roles(), {**facts, THREADS: threads})
    elif threads != recorded:
        folder.change_threads(threads)


def run_in_memory(problem: Problem, watcher: Watcher | None = None) -> Finished:
    """Do the run without a folder: it writes nothing and cannot be resumed."""
    with using_threads(problem.config.train.threads_given or threads_for(problem)):
        seen = embed(problem)
        problem, found = choose(seen, problem, folder=None, watcher=watcher or Watcher())
        prior = found.prior if found else None
        return finish(problem, train(problem, watcher=watcher, prior=prior), found)


def choose(
    problem: Problem, images: Problem, *, folder: Path | None, watcher: Watcher
) -> tuple[Problem, Search | None]:
    """Return the problem with the method that a search chose, or as it is if one was named.

    `images` is the same problem before its images were replaced by features.
    """
    if not isinstance(problem.config.method, AutoConfig):
        return problem, None
    found = search(problem, images, folder=folder, watcher=watcher)
    chosen = images if found.winner.on_images else problem
    return chosen.for_method(found.winner.config), found


def finish(problem: Problem, trained: Trained, found: Search | None = None) -> Finished:
    """Score every sample, choose the threshold by the scores, and evaluate at it.

    After a search the training samples have their out-of-fold scores: the model itself was
    taught about every one of them.
    """
    config = problem.config
    scored = _score_everything(problem, trained.predictor, found)
    given = config.prior if isinstance(config.prior, float) else None
    known = trained.prior.value if trained.prior else given
    chosen = threshold_after_training(config.threshold, scored, known)
    prior = prior_for_estimates(scored, trained.prior, given)
    optimism = found.board.optimism() if found else Optimism()
    evaluation = figures_at(
        scored, chosen.value, scenario=problem.split.scenario, prior=prior, optimism=optimism
    )
    calibrated = with_truth(calibrate(scored, prior, evaluation), scored, problem.split)
    typical = examine(problem, trained.predictor, scored, calibrated, prior)
    calibrated = without_probabilities(calibrated, typical)
    doubts = (*doubts_of(problem), *trained.warnings)
    result = {
        **_training_entries(problem, trained.seconds + (found.seconds if found else 0.0)),
        **_search_entries(found, optimism),
        "prior": prior.to_json() if prior else None,
        **entries_at(scored, chosen.value, evaluation, prior, training_warnings=doubts),
        "training_warnings": list(doubts),
        "notices": [*problem.data.notices, *_method_notice(config), *chosen.notices],
        "skipped": [list(item) for item in problem.data.skipped[:1000]],
        "threshold_rule": chosen.to_json("onesided fit"),
        "calibration": calibrated.to_json(),
        "typical": typical.to_json() if typical else None,
    }
    curve = calibrated.curve
    predictor = replace(
        trained.predictor,
        threshold=chosen.value,
        calibration=curve,
        reference=reference_of(problem, trained.predictor, scored),
    )
    model = _describe_model(problem, predictor, trained.prior)
    return Finished(predictor, model, scored, evaluation, result)


def _method_notice(config: RunConfig) -> tuple[str, ...]:
    """Return what the method says of a run of this length, for report and README of the run."""
    notice = config.method.notice(config.train.epochs)
    return () if notice is None else (notice,)


def _score_everything(problem: Problem, predictor: Predictor, found: Search | None) -> Scored:
    """Return the scores of every part of the data; each sample is scored once."""
    split = problem.split
    train, held_out, test = split.train, split.held_out, split.test
    groups = group_numbers(train.groups, None if held_out is None else held_out.groups)
    return Scored(
        train=predictor.scores(train.values) if found is None else found.scores,
        train_labelled=train.labelled,
        held_out=None if held_out is None else predictor.scores(held_out.values),
        held_out_labelled=None if held_out is None else held_out.labelled,
        test=None if test is None else predictor.scores(test.values),
        test_truth=None if test is None else test.truth,
        negatives=_score_negatives(problem, predictor, found),
        fold=None if found is None else found.board.fold,
        train_counted=counted(train),
        train_found=train.found,
        train_group=groups[0],
        held_out_group=groups[1],
        held_out_counted=None if held_out is None else counted(held_out, train),
    )


def _score_negatives(
    problem: Problem, predictor: Predictor, found: Search | None
) -> np.ndarray | None:
    """Return scores of known negatives by models not trained on them; None if there are none.

    After a search those that teach the model have out-of-fold scores, like P and U.
    """
    unseen = problem.unseen_negatives
    parts = [] if unseen is None else [predictor.scores(unseen.values)]
    if found is not None and len(found.negatives):
        parts.append(found.negatives)
    return np.concatenate(parts) if parts else None


def _training_entries(problem: Problem, seconds: float) -> dict[str, Any]:
    """Return the entries of `result.json` that say what was trained, and on what."""
    config, split = problem.config, problem.split
    device = choose_device(config.train.device)
    half = choose_precision(config.train.precision, device) == torch.bfloat16
    return {
        "method": config.method_name,
        "title": config.method.card.title,
        "summary": config.method.card.summary,
        "citation": config.method.card.citation,
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


def _search_entries(found: Search | None, optimism: Optimism) -> dict[str, Any]:
    """Return the entries of `result.json` that say what was tried and why one was kept."""
    if found is None:
        return {}
    return {
        "chosen_by": AUTO,
        "words": found.winner.words,
        "leaderboard": found.board.to_json(),
        **optimism.to_json(),
        "folds": int(found.board.fold.max()) + 1,
        "search_seconds": round(found.seconds, 3),
    }


def _describe_model(
    problem: Problem, predictor: Predictor, prior: PriorUsed | None
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
        encoder=predictor.encoder.description if predictor.encoder else None,
        threshold=predictor.threshold,
        prior=prior.value if prior else None,
        calibration=predictor.calibration,
    )


def _write(path: Path, problem: Problem, finished: Finished) -> None:
    """Write model, scores, report data and the result: all of them or none."""
    split, predictor, scored = problem.split, finished.predictor, finished.scored
    parts = [split.train] if split.held_out is None else [split.train, split.held_out]
    names = [part.names[row] for part in parts for row in np.flatnonzero(part.unlabelled)]
    ranked = ranked_rows(names, scored.unlabelled, predictor.threshold, predictor.calibration)
    with together(path) as new:
        save_model(
            new,
            predictor.method,
            finished.model,
            embedder=predictor.embedder,
            encoder=predictor.encoder,
            reference=predictor.reference,
        )
        write_text(new / SCORES, csv_text(columns_of(predictor.calibration), ranked))
        scored.save(new / SCORED)
        images = problem.data.source.split
        save_report_data(
            new / REPORT_DATA,
            images,
            scored.train,
            scored.held_out,
            predictor,
            feature_names=problem.data.source.feature_names or (),
        )
        write_json(new / RESULT, finished.result)
        write_cards(new, path, finished.result, kind=finished.model.kind)
        write_checksums(new, path, also=DESCRIBED)


def ranked_rows(
    names: list[str], scores: np.ndarray, threshold: float, curve: Calibration | None = None
) -> list[tuple[object, ...]]:
    """Return rows below `columns_of`, best first; equal scores in the order of names."""
    order = sorted(range(len(names)), key=lambda row: (-scores[row], names[row]))
    decisions = np.where(scores > threshold, "positive", "negative").tolist()
    return [
        (names[row], *numbers_of(float(scores[row]), curve), number, decisions[row])
        for number, row in enumerate(order, start=1)
    ]
