"""Two overlapping clouds with few labels: small enough to train whole methods on in seconds."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onesided.core.batch import DataFacts
from onesided.core.clock import Clock
from onesided.core.labels import POSITIVE
from onesided.core.rng import generator
from onesided.data.problem.dataset import PUSplit
from onesided.data.problem.split import SplitRecipe, split_source
from onesided.data.sources import SOURCES
from onesided.engine.checkpoint import Checkpoints
from onesided.engine.fit import Memory, Watcher, fit
from onesided.engine.log import EpochLog
from onesided.engine.predict import Predictor
from onesided.engine.train_config import TrainConfig
from onesided.methods.base import GradientMethod, MethodConfig
from onesided.nets.build import BackboneConfig, build_backbone, seeded


def toy_split(seed: int, *, positives: int = 100, unlabelled: int = 1000) -> PUSplit:
    """Return the clouds with 40 % positives in U; no classifier is right above 97.78 %."""
    entry = SOURCES["toy-vectors"]
    recipe = SplitRecipe(
        positive_classes=entry.positive_classes,
        positives=positives,
        unlabelled=unlabelled,
        prior=0.4,
        seed=seed,
    )
    return split_source(entry.load(None), recipe)


def build_for(
    split: PUSplit,
    config: MethodConfig,
    *,
    seed: int,
    batch_size: int,
    prior: float | None = None,
    normalisation: str = "batch",
) -> GradientMethod:
    """Return the untrained method on a network of two layers of 32 units."""
    network = BackboneConfig.from_settings({"width": 0.125, "normalisation": normalisation})
    facts = DataFacts(
        rows=len(split.train),
        labelled=int(split.train.labelled.sum()),
        sample_shape=split.sample_shape,
        prior=prior,
        batch_size=batch_size,
        seed=seed,
    )
    backbone = build_backbone(
        network, split.sample_shape, (0.0, 0.0), (1.0, 1.0), generator(seed, "network")
    )
    with seeded(seed, "method"):
        method = config.build(facts, backbone)
    assert isinstance(method, GradientMethod)
    return method


def training(**settings: Any) -> TrainConfig:  # noqa: ANN401 - any setting of the loop
    """Return settings of the loop for one thread of a processor."""
    return TrainConfig.from_settings({"device": "cpu", "precision": "fp32", **settings})


@dataclass(frozen=True)
class Outcome:
    """What a trained method is worth on the test part."""

    accuracy: float
    recall: float


def outcome(predictor: Predictor, split: PUSplit) -> Outcome:
    """Return accuracy and recall on the test part."""
    assert split.test is not None
    called = predictor.decisions(predictor.scores(split.test.values))
    positive = split.test.truth == POSITIVE
    return Outcome(float(np.mean(called == positive)), float(np.mean(called[positive])))


class StopAfter:
    """Asks for a stop by a real signal after so many steps."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def step(self, clock: Clock) -> None:
        """Count one step."""
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGTERM)


def train_in(
    folder: Path,
    method: GradientMethod,
    split: PUSplit,
    train: TrainConfig,
    *,
    stop_after: int = 0,
) -> None:
    """Train with a memory that a second call goes on from."""
    memory = Memory(Checkpoints(folder / "last.pt", "toy"), EpochLog(folder / "log.jsonl"))
    watcher = Watcher(step=StopAfter(stop_after).step)
    fit(method, split, train, seed=0, memory=memory, watcher=watcher)
