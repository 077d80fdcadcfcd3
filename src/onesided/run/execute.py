"""RunConfig to result: load, split, prior, build, fit, evaluate, write."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from onesided.core.batch import DataFacts
from onesided.core.dist import rank, wait_for_all, world
from onesided.core.errors import ConfigError, DataError
from onesided.core.labels import UNKNOWN
from onesided.core.rng import generator
from onesided.data.dataset import PUSplit
from onesided.engine.checkpoint import Checkpoints
from onesided.engine.fit import Memory, Watcher, fit
from onesided.engine.log import EpochLog
from onesided.engine.model_file import ModelDescription, save_model
from onesided.engine.predict import Predictor
from onesided.engine.train_config import choose_device, choose_precision
from onesided.methods.base import Method
from onesided.metrics.intervals import clopper_pearson
from onesided.metrics.pu import PUEvaluation, evaluate_pu
from onesided.metrics.truth import truth_metrics
from onesided.nets.build import build_backbone, seeded
from onesided.run.config import RunConfig
from onesided.run.folder import LAST, LOG, REPORT_DATA, RESULT, SCORES, RunFolder
from onesided.run.gallery import save_report_data
from onesided.run.load import LoadedData
from onesided.run.prior import PriorUsed, find_prior


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


def run(
    config: RunConfig,
    loaded: LoadedData,
    path: Path,
    *,
    overwrite: bool = False,
    watcher: Watcher | None = None,
) -> RunResult:
    """Do the run, or go on with it, or return what it already found."""
    check_needs(config, loaded.split)
    split_hash, data_hash = loaded.split.fingerprint(), loaded.split.content_hash()
    identity = f"{config.fingerprint()[:24]}-{split_hash[:24]}-{data_hash[:24]}"
    folder = RunFolder(path, identity)
    if rank() == 0:
        folder.claim(overwrite=overwrite)
    wait_for_all()
    done = folder.finished()
    if done is not None:
        return RunResult(path, done)
    if rank() == 0 and not (path / LAST).exists():
        facts = {"seed": config.seed, "data_hash": data_hash, "split_hash": split_hash}
        folder.describe(config, loaded.split.roles(), {**facts, "threads": torch.get_num_threads()})
    prior = (
        find_prior(config.prior, loaded.split, config.seed) if config.method.needs.prior else None
    )
    method = build_method(config, loaded, prior)
    memory = Memory(
        Checkpoints(path / LAST, folder.identity),
        EpochLog(path / LOG, tensorboard=config.train.tensorboard),
    )
    started = time.monotonic()
    predictor = fit(
        method, loaded.split, config.train, seed=config.seed, memory=memory, watcher=watcher
    )
    seconds = memory.log.seconds() or time.monotonic() - started
    if rank() == 0:
        _finish(config, loaded, folder, predictor, prior, seconds)
    wait_for_all()
    result = folder.finished()
    assert result is not None
    return RunResult(path, result)


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
            "Add data.clean = 100, or choose a method without 'clean' in onesided methods."
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
    backbone = build_backbone(
        config.network,
        split.sample_shape,
        loaded.mean,
        loaded.std,
        generator(config.seed, "backbone"),
    )
    with seeded(config.seed, "method"):
        return config.method.build(facts, backbone)


def _finish(
    config: RunConfig,
    loaded: LoadedData,
    folder: RunFolder,
    predictor: Predictor,
    prior: PriorUsed | None,
    seconds: float,
) -> None:
    """Write model, scores, report data and, last of all, the result."""
    split = loaded.split
    save_model(folder.path, predictor.method, _description(config, loaded, predictor, prior))
    scores = predictor.scores(split.train.values)
    scored = [(split.train, scores)]
    held_out = None
    if split.validation is not None:
        held_out = predictor.scores(split.validation.values)
        scored.append((split.validation, held_out))
    folder.write_table(
        SCORES,
        ("item", "score", "rank", "decision"),
        ranked_rows(
            [part.names[row] for part, _ in scored for row in np.flatnonzero(~part.labelled)],
            np.concatenate([values[~part.labelled] for part, values in scored]),
            predictor.threshold,
        ),
    )
    evaluation = evaluate_held_out(held_out, split, predictor.threshold, prior)
    save_report_data(folder.path / REPORT_DATA, split, scores, held_out, predictor)
    content = _result(config, loaded, predictor, prior, evaluation, seconds)
    folder.write_json(RESULT, content)


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


def evaluate_held_out(
    scores: np.ndarray | None, split: PUSplit, threshold: float, prior: PriorUsed | None
) -> PUEvaluation | None:
    """Return what the scores of held-out P and U say, or None where nothing is held out."""
    data = split.validation
    if data is None or scores is None:
        return None
    interval = None
    if prior is not None and prior.low is not None and prior.high is not None:
        interval = (prior.low, prior.high)
    return evaluate_pu(
        scores[data.labelled],
        scores[~data.labelled],
        threshold=threshold,
        scenario=split.scenario,
        prior=prior.value if prior else None,
        prior_interval=interval,
        labelled_share=float(split.train.labelled.mean())
        if split.scenario == "single-set"
        else None,
    )


def _description(
    config: RunConfig, loaded: LoadedData, predictor: Predictor, prior: PriorUsed | None
) -> ModelDescription:
    return ModelDescription(
        method=config.method_name,
        settings=config.method.model_dump(mode="json"),
        network=config.network,
        sample_shape=loaded.split.sample_shape,
        mean=loaded.mean,
        std=loaded.std,
        kind=loaded.split.kind,
        threshold=predictor.threshold,
        prior=prior.value if prior else None,
    )


def _result(
    config: RunConfig,
    loaded: LoadedData,
    predictor: Predictor,
    prior: PriorUsed | None,
    evaluation: PUEvaluation | None,
    seconds: float,
) -> dict[str, Any]:
    split, device = loaded.split, choose_device(config.train.device)
    test = None
    if split.test is not None:
        scores = predictor.scores(split.test.values)
        test = truth_metrics(split.test.truth, scores, threshold=predictor.threshold).to_json()
    warnings = [*(evaluation.warnings if evaluation else ()), *(prior.notes if prior else ())]
    half = choose_precision(config.train.precision, device) == torch.bfloat16
    return {
        "method": config.method_name,
        "variant": getattr(config.method, "variant", "published"),
        "data": config.data.name,
        "seed": config.seed,
        "epochs": config.train.epochs,
        "seconds": round(seconds, 3),
        "device": str(device),
        "precision": "bf16" if half else "fp32",
        "n_positive": int(split.train.labelled.sum()),
        "n_unlabelled": int((~split.train.labelled).sum()),
        "scenario": split.scenario,
        "threshold": predictor.threshold,
        "prior": prior.to_json() if prior else None,
        "test": test,
        "pu": evaluation.to_json() if evaluation else None,
        "known_negatives": _known_negatives(loaded, predictor),
        "warnings": warnings,
        "notices": list(loaded.notices),
        "skipped": [list(item) for item in loaded.skipped[:1000]],
    }


def _known_negatives(loaded: LoadedData, predictor: Predictor) -> dict[str, Any] | None:
    """Return how many known negatives are wrongly called positive, with an exact interval."""
    if loaded.known_negatives is None:
        return None
    wrong = int(predictor.decisions(predictor.scores(loaded.known_negatives)).sum())
    count = len(loaded.known_negatives)
    low, high = clopper_pearson(wrong, count)
    return {"count": count, "called_positive": wrong / count, "low": low, "high": high}
