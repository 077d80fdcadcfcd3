"""Every method of the table, built for a tiny problem; the suites run over these by themselves."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from onesided.core.batch import DataFacts
from onesided.core.rng import generator
from onesided.data.problem.dataset import PUSplit
from onesided.data.problem.split import SplitRecipe, split_source
from onesided.data.sources import SOURCES
from onesided.engine.checkpoint import Checkpoints
from onesided.engine.fit import Memory, Watcher, fit
from onesided.engine.log import EpochLog
from onesided.engine.predict import Predictor
from onesided.engine.train_config import TrainConfig
from onesided.methods import METHODS
from onesided.methods.base import Method, MethodConfig
from onesided.nets.build import BackboneConfig, build_backbone, seeded

SEED = 3
EPOCHS = 3
# Small enough for seconds, late enough that what follows a warm-up is reached.
SMALL: Mapping[str, Any] = {"warmup_epochs": 1, "projector_width": 16, "target_momentum": 0.5}


@dataclass(frozen=True)
class Case:
    """A method with settings that differ from its defaults."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def config(self) -> MethodConfig:
        """Return its settings, made small."""
        known = METHODS[self.name].model_fields
        small = {key: value for key, value in SMALL.items() if key in known}
        return METHODS[self.name].from_settings({**small, **self.settings})

    def __str__(self) -> str:
        return "-".join([self.name, *map(str, self.settings.values())])


CASES = [
    *(Case(name) for name in METHODS),
    Case("ncpu", {"variant": "released"}),
    Case("teacher", {"variant": "features"}),
    Case("pico", {"variant": "ncpu-paper"}),
    Case("pico", {"variant": "plus", "neighbours_from": 2}),
    Case("wsc", {"variant": "ncpu-paper"}),
    Case("wsc", {"transition": "known", "known_prior": 0.4}),
    Case("lagam", {"neighbours_from": 1}),
    Case("pusb", {"order": "ratio"}),
    Case("elkan-noto", {"learner": "forest", "training": "weighted", "trees": 5}),
    *(
        Case(name, {"alignment": "robust"})
        for name in METHODS
        if name not in ("ncpu", "teacher") and "alignment" in METHODS[name].model_fields
    ),
]


def toy_split(seed: int = 57) -> PUSplit:
    entry = SOURCES["toy-images"]
    recipe = SplitRecipe(
        positive_classes=entry.positive_classes,
        positives=24,
        unlabelled=72,
        prior=0.4,
        held_out_positives=12,
        held_out_unlabelled=24,
        clean=8,
        seed=seed,
    )
    return split_source(entry.load(None), recipe)


def build(case: Case, split: PUSplit, *, normalisation: str = "batch") -> Method:
    """Return the untrained method of a case, with a network of a few thousand weights."""
    config = case.config()
    facts = DataFacts(
        rows=len(split.train),
        labelled=int(split.train.labelled.sum()),
        sample_shape=split.sample_shape,
        prior=0.4 if config.needs.prior else None,
        batch_size=24,
        seed=SEED,
    )
    network = BackboneConfig.from_settings({"width": 0.125, "normalisation": normalisation})
    channels = split.sample_shape[0]
    backbone = build_backbone(
        network, split.sample_shape, [0.5] * channels, [0.25] * channels, generator(SEED, "net")
    )
    with seeded(SEED, "method"):
        return config.build(facts, backbone)


def train(
    method: Method,
    split: PUSplit,
    *,
    folder: Path | None = None,
    watcher: Watcher | None = None,
    learning_rate: float = 0.02,
) -> Predictor:
    """Train as every suite trains; with a folder, the run can be stopped and resumed."""
    config = TrainConfig(
        epochs=EPOCHS, batch_size=24, learning_rate=learning_rate, device="cpu", precision="fp32"
    )
    memory = None
    if folder is not None:
        memory = Memory(Checkpoints(folder / "last.pt", "case"), EpochLog(folder / "log.jsonl"))
    return fit(method, split, config, seed=SEED, memory=memory, watcher=watcher)


def equal_states(first: Method, second: Method) -> bool:
    one, two = first.state_dict(), second.state_dict()
    return one.keys() == two.keys() and all(torch.equal(one[key], two[key]) for key in one)


def with_other_truth(split: PUSplit) -> PUSplit:
    """Return the same problem with the true classes swapped, which most methods must not use."""
    return replace(split, train=replace(split.train, truth=1 - split.train.truth))
