"""Everything a preset decides by: data of several kinds and amounts, methods, what was asked for.

python -m tests.run.situations      # records recipes and configurations anew, on purpose only
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onesided.core.config import Settings, merge
from onesided.data.problem.dataset import PUDataset, PUSplit, Selection
from onesided.data.sources import SOURCES
from onesided.methods import METHODS, choices
from onesided.run.config import RunConfig
from onesided.run.presets import plan_run, read_preset, recipe_settings

RECIPES = Path(__file__).with_name("recorded_recipes.json")
CONFIGS = Path(__file__).with_name("recorded_configs.json")
PRESETS = ("quick", "standard", "evening", "paper")


@dataclass(frozen=True)
class Problem:
    """Data by name, with as much of it as there is to train on."""

    name: str
    rows: int
    labelled: int
    images: bool = True

    @property
    def words(self) -> str:
        """What there is, in words."""
        return f"{self.name}, {self.rows} {'images' if self.images else 'vectors'}"

    def split(self) -> PUSplit:
        """Return a split of this size, all of whose rows are one sample."""
        pool = np.zeros((1, 3, 8, 8) if self.images else (1, 5), np.uint8)
        train = PUDataset(
            Selection(pool, np.zeros(self.rows, np.int64)),
            np.arange(self.rows) < self.labelled,
            np.zeros(self.rows, np.int64),
            ("",) * self.rows,
        )
        return PUSplit(train, None, None, None, "photograph", "single-set")


PROBLEMS = (
    Problem("cifar10", 41_000, 1_000),
    Problem("cifar100", 41_000, 1_000),
    Problem("stl10", 91_000, 1_000),
    Problem("xbd", 20_500, 500),
    Problem("folders", 7, 4),
    Problem("folders", 500, 60),
    Problem("chips", 4_000, 300),
    Problem("table", 3_000, 200),
    Problem("table", 3_000, 200, images=False),
)
ASKED: Mapping[str, Settings] = {
    "few epochs": {"train": {"epochs": 12}},
    "many epochs": {"train": {"epochs": 130}},
    "batches": {"train": {"batch_size": 20, "batching": "stratified", "positives_per_batch": 5}},
    "mixed": {"train": {"batching": "mixed", "learning_rate": 0.3, "views": "published"}},
    "frozen": {"backbone": {"name": "efficientnet_lite0", "freeze": True}},
    "residual": {"backbone": {"name": "resnet34"}},
    "narrow": {"backbone": {"name": "small", "width": 0.125, "normalisation": "none"}},
    "unnormalised": {"backbone": {"normalisation": "none"}},
    "momentum": {"method": {"target_momentum": 0.95}, "train": {"epochs": 40}},
    "paper": {"method": {"name": "ncpu", "variant": "paper"}},
    "released": {
        "method": {"name": "ncpu", "variant": "released", "warmup_epochs": 9},
        "train": {"epochs": 20},
    },
    "class pairs": {"method": {"name": "nnpu", "alignment": "robust"}},
    "stages": {"method": {"name": "holisticpu"}, "train": {"epochs": 39}},
    "others": {"prior": 0.3, "seed": 4, "threshold": "max-f1", "train": {"device": "cpu"}},
}


def situations() -> Iterator[tuple[str, str, Settings, Problem]]:
    """Return each situation: its name, the preset, what was asked for, and the data."""
    for preset in PRESETS:
        for problem in PROBLEMS:
            wanted = {method: {"method": {"name": method}} for method in choices()}
            if problem in (PROBLEMS[1], PROBLEMS[5], PROBLEMS[-1]):
                wanted |= ASKED
            network = read_preset(preset).default_method or "teacher"
            for words, asked in wanted.items():
                names = {"data": {"name": problem.name}, "method": {"name": network}}
                given = merge(names, asked)
                yield f"{preset}: {words} on {problem.words}", preset, given, problem


def difference(config: RunConfig) -> dict[str, Any]:
    """Return the settings that differ from the defaults, with the names that --set gives them."""
    names = {"data": {"name": config.data.name}, "method": {"name": config.method_name}}
    usual = dict(_flat(RunConfig.from_settings(names).to_settings()))
    return {key: value for key, value in _flat(config.to_settings()) if usual[key] != value}


def _flat(settings: Settings) -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{inner}", deep) for inner, deep in value.items())
        else:
            yield key, value


def recipes() -> Settings:
    """Return the recipe of every data set and method that has one with settings."""
    pairs = {f"{data}/{method}": (data, method) for data in SOURCES for method in METHODS}
    found = {name: recipe_settings(*pair) for name, pair in pairs.items()}
    return {name: settings for name, settings in found.items() if settings}


def outcome(given: Settings, preset: str, problem: Problem) -> dict[str, Any] | str:
    """Return what the preset makes of the situation, or the sentence that refuses it."""
    try:
        return difference(plan_run(given, preset).for_data(problem.split()))
    except ValueError as error:
        return str(error)


def write(path: Path, content: Settings) -> None:
    """Write one entry per line, so that a change of one is seen as one."""
    lines = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in content.items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    write(RECIPES, recipes())
    write(
        CONFIGS,
        {name: outcome(given, preset, problem) for name, preset, given, problem in situations()},
    )
