"""RunConfig to result: load, split, prior, build, fit, evaluate, write."""

import hashlib
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from onesided.core.batch import DataFacts
from onesided.core.dist import rank, wait_for_all, world
from onesided.core.errors import ConfigError, DataError, Interrupted
from onesided.core.labels import UNKNOWN
from onesided.core.rng import generator
from onesided.data.problem.dataset import LabelledDataset, PUDataset, PUSplit
from onesided.engine.checkpoint import Checkpoints
from onesided.engine.fit import Memory, Watcher, fit
from onesided.engine.log import EpochLog
from onesided.engine.model_file import ModelDescription, save_model
from onesided.engine.predict import Predictor
from onesided.engine.train_config import choose_device
from onesided.methods.base import Method
from onesided.metrics.figure import PUEvaluation
from onesided.nets.build import build_backbone, give_first_weights, seeded
from onesided.run.config import RunConfig
from onesided.run.decisions import check_rule, threshold_after_training
from onesided.run.describe import Trained, describe_model, describe_result
from onesided.run.embed import seen_through
from onesided.run.first_look import show_samples
from onesided.run.folder import (
    FEATURES,
    LAST,
    LOG,
    REPORT_DATA,
    RESULT,
    SCORED,
    SCORES,
    RunFolder,
    check_place,
    working_in,
)
from onesided.run.gallery import save_report_data
from onesided.run.load import LoadedData, negatives_for_evaluation, training_split
from onesided.run.prior import PriorUsed, find_prior
from onesided.run.scored import (
    Scored,
    entries_at,
    figures_at,
    prior_for_estimates,
    score_everything,
)


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
class Judged:
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
    config: RunConfig,
    loaded: LoadedData,
    path: Path,
    *,
    overwrite: bool = False,
    watcher: Watcher | None = None,
) -> RunResult:
    """Do the run, or go on with it, or return what it already found."""
    training = training_split(loaded, config.method)
    check_needs(config, training)
    unseen = negatives_for_evaluation(loaded, config.method)
    split_hash, data_hash = _split_hash(training, unseen), training.content_hash()
    identity = f"{config.fingerprint()[:24]}-{split_hash[:24]}-{data_hash[:24]}"
    folder = RunFolder(path, identity, training.held_out_hash(unseen))
    if rank() == 0:
        check_place(path, overwrite=overwrite)
    with working_in(path):
        if rank() == 0:
            folder.claim(overwrite=overwrite)
        wait_for_all()
        done = folder.finished()
        if done is not None:
            return RunResult(path, done)
        if rank() == 0 and not (path / LAST).exists():
            facts = {"seed": config.seed, "data_hash": data_hash, "split_hash": split_hash}
            roles = training.roles()
            if unseen is not None:
                roles += [("validation-negative", name) for name in unseen.names]
            folder.describe(config, roles, {**facts, "threads": torch.get_num_threads()})
        try:
            return _run(config, loaded, folder, watcher or Watcher())
        except Interrupted as stop:
            if overwrite:
                stop.add_remedy("Leave --overwrite out then, or it begins anew.")
            raise


def _run(config: RunConfig, loaded: LoadedData, folder: RunFolder, watcher: Watcher) -> RunResult:
    """Train what is not trained yet, judge it and write everything."""
    path = folder.path
    memory = Memory(
        Checkpoints(path / LAST, folder.identity),
        EpochLog(path / LOG, tensorboard=config.train.tensorboard),
    )
    loaded = seen_through(
        config.network,
        loaded,
        choose_device(config.train.device),
        cache=path / FEATURES,
        progress=watcher.embed,
    )
    trained = train(config, loaded, memory=memory, watcher=watcher)
    if rank() == 0:
        _finish(config, loaded, folder, trained)
    wait_for_all()
    result = folder.finished()
    assert result is not None
    return RunResult(path, result)


def train(
    config: RunConfig,
    loaded: LoadedData,
    *,
    memory: Memory | None = None,
    watcher: Watcher | None = None,
) -> Trained:
    """Find the prior, build the method and fit it; only `memory` writes anything."""
    loaded = seen_through(config.network, loaded, choose_device(config.train.device))
    needed = config.method.needs.prior
    prior = find_prior(config.prior, loaded.split, config.seed) if needed else None
    split = training_split(loaded, config.method)
    method = build_method(config, replace(loaded, split=split), prior)
    memory = memory or Memory()
    started = time.monotonic()
    predictor = fit(method, split, config.train, seed=config.seed, memory=memory, watcher=watcher)
    predictor = replace(predictor, embedder=loaded.embedder)
    return Trained(predictor, prior, memory.log.seconds() or time.monotonic() - started)


def check_needs(config: RunConfig, split: PUSplit) -> None:
    """Refuse a method whose needs this data cannot meet, before anything is written."""
    needs, title = config.method.needs, config.method.card.title
    if needs.truth and (split.train.truth == UNKNOWN).any():
        raise DataError(
            f"{title} needs the true class of every training sample, and this data has no labels "
            "for the unlabelled. Choose a method without 'truth' in onesided methods."
        )
    if needs.validation and split.validation is None:
        raise DataError(
            f"{title} needs held-out positives and unlabelled samples, and this split has none. "
            "Set data.validation_positives and data.validation_unlabelled, or data.held_out."
        )
    if needs.clean and split.clean is None:
        raise DataError(
            f"{title} needs a small clean set with negatives, and this split has none. "
            "Give known negatives with -n, or add data.clean = 100 to a published data set, or "
            "choose a method without 'clean' in onesided methods."
        )
    check_rule(
        config.threshold,
        unlabelled=int(split.train.unlabelled.sum()) + _unlabelled(split.validation),
        held_out=split.validation is not None,
    )
    rows, batch = len(split.train), config.train.batch_size
    if batch > rows:
        raise ConfigError(
            f"train.batch_size is {batch}, but there are only {rows} training samples. "
            f"Use at most {rows}."
        )
    if batch % world():
        raise ConfigError(
            f"train.batch_size is {batch}, which {world()} processes cannot share equally."
        )


def _unlabelled(data: PUDataset | None) -> int:
    return 0 if data is None else int(data.unlabelled.sum())


def _split_hash(split: PUSplit, unseen: LabelledDataset | None) -> str:
    """Return the split's hash, with the known negatives that only evaluation sees."""
    if unseen is None:
        return split.fingerprint()
    words = "\x1e".join((split.fingerprint(), *unseen.names))
    return hashlib.sha256(words.encode("utf-8", "surrogateescape")).hexdigest()


def build_method(config: RunConfig, loaded: LoadedData, prior: PriorUsed | None) -> Method:
    """Return the untrained method; its first weights depend on the seed alone."""
    split = loaded.split
    facts = DataFacts(
        rows=len(split.train),
        labelled=int(split.train.labelled.sum()),
        sample_shape=split.sample_shape,
        prior=prior.value if prior else None,
        batch_size=config.train.batch_size,
        seed=config.seed,
    )
    network = config.network.learner()
    backbone = build_backbone(
        network,
        split.sample_shape,
        loaded.mean,
        loaded.std,
        generator(config.seed, "backbone"),
    )
    show_samples(backbone, split, config.seed)
    give_first_weights(network, backbone)
    with seeded(config.seed, "method"):
        return config.method.build(facts, backbone)


def _finish(
    config: RunConfig,
    loaded: LoadedData,
    folder: RunFolder,
    trained: Trained,
) -> None:
    """Write model, scores, report data and, last of all, the result."""
    split, judged = loaded.split, judge_run(config, loaded, trained)
    predictor, scored = judged.predictor, judged.scored
    save_model(folder.path, predictor.method, judged.model, embedder=predictor.embedder)
    parts = [split.train] if split.validation is None else [split.train, split.validation]
    names = [part.names[row] for part in parts for row in np.flatnonzero(part.unlabelled)]
    folder.write_table(
        SCORES,
        ("item", "score", "rank", "decision"),
        ranked_rows(names, scored.unlabelled, predictor.threshold),
    )
    scored.save(folder.path / SCORED)
    pictures = loaded.source.split
    path = folder.path / REPORT_DATA
    save_report_data(path, pictures, scored.train, scored.held_out, predictor)
    folder.write_json(RESULT, judged.result)


def judge_run(config: RunConfig, loaded: LoadedData, trained: Trained) -> Judged:
    """Score all there is, choose the threshold by it, and say how well that works."""
    scored = score_everything(loaded, config.method, trained.predictor)
    given = config.prior if isinstance(config.prior, float) else None
    known = trained.prior.value if trained.prior else given
    chosen = threshold_after_training(config.threshold, scored, known)
    predictor = replace(trained.predictor, threshold=chosen.value)
    trained = replace(trained, predictor=predictor)
    prior = prior_for_estimates(scored, trained.prior, given)
    scenario = loaded.split.scenario
    evaluation = figures_at(scored, chosen.value, scenario=scenario, prior=prior)
    judged = entries_at(scored, chosen.value, evaluation, prior)
    result = describe_result(config, loaded, replace(trained, prior=prior), judged)
    result["threshold_rule"] = chosen.to_json("onesided fit")
    result["notices"] += chosen.notices
    model = describe_model(config, loaded, trained)
    return Judged(predictor, model, scored, evaluation, result)


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
