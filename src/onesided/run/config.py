"""What a run is: data, method, network, prior, training, seed. All of it, and nothing else.

`config.toml` of a run folder is this, written out; `onesided fit --config` repeats it.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from pydantic import Field

from onesided.core.config import Config, Settings, nearest
from onesided.core.errors import ConfigError
from onesided.data.problem.dataset import Scenario
from onesided.data.problem.split import SplitRecipe
from onesided.data.read.images import Size
from onesided.data.sources import source_named
from onesided.engine.train_config import TrainConfig
from onesided.methods import method_named
from onesided.methods.base import MethodConfig
from onesided.metrics.threshold_rules import HALF, ThresholdRule, parse_rule
from onesided.nets.build import BackboneConfig
from onesided.storage.names import printable

Prior = float | Literal["auto", "km2", "km1", "truth"]


class SetConfig(SplitRecipe):
    """A published data set, divided into P, U and test by a recipe."""

    name: str
    """Name of the data set, see onesided data list."""
    root: str | None = None
    """Folder that holds its files; no part of the run's identity."""


class OwnConfig(Config):
    """People's own data: two folders, or a table."""

    name: Literal["folders", "table"]
    """Whether the data is in folders or listed in a table."""
    positive_folder: str | None = None
    """Folder of positives."""
    unlabelled_folder: str | None = None
    """Folder of everything else."""
    negative_folder: str | None = None
    """Folder of known negatives: taught to methods that use them, and for evaluation."""
    test_folder: str | None = None
    """Folder with two folders `positive` and `negative`, for reporting."""
    table: str | None = None
    """CSV file with columns path and label, or label and numbers."""
    image_size: int = Field(default=0, ge=0, le=1024)
    """Side to which images are resized; 0 chooses from the data."""
    largest_side: int = Field(default=128, ge=8, le=1024)
    """Largest side that is chosen from the data."""
    held_out: float = Field(default=0.2, ge=0, lt=0.9)
    """Share of P, U and known negatives kept out of training, to tell whether it worked."""
    tolerate: float = Field(default=0.05, ge=0, le=1)
    """Share of files of a folder that may be unreadable."""
    scenario: Scenario = "single-set"
    """Whether U is what remains of one set after labelling, or a sample of its own."""
    seed: int = 57
    """Seed of the division into training and held-out parts."""

    def size(self) -> Size:
        """Return the height and width asked for, or the largest side that may be chosen."""
        return (self.image_size, self.image_size) if self.image_size else self.largest_side


class ChipsConfig(Config):
    """Buildings that `onesided map` cut out of images."""

    name: Literal["chips"] = "chips"
    """Cut out by onesided map, which is also how to do the run again."""
    size: int = Field(default=64, ge=8, le=512)
    """Side of a chip in pixels."""
    margin: float = Field(default=0.5, ge=0, le=8)
    """Surroundings of a building on each side, in its own sizes."""
    held_out: float = Field(default=0.2, ge=0, lt=0.9)
    """Share of the marked buildings kept out of training, with all their neighbours."""
    scenario: Scenario = "single-set"
    """The marked buildings are some of all buildings of the place."""
    seed: int = Field(default=57, ge=0, lt=2**32)
    """Seed of the division into training and held-out parts."""


DataConfig = SetConfig | OwnConfig | ChipsConfig
EXAMPLES = {
    "data": "data.held_out=0.3",
    "method": "method.name=nnpu",
    "backbone": "backbone.name=small",
    "train": "train.epochs=20",
}
RENAMED = {"network": "backbone"}
"""Tables of settings that had another name."""
FIRST_NAMES = {
    "held_out_positives": "validation_positives",
    "held_out_unlabelled": "validation_unlabelled",
}
PATHS = frozenset(
    {"root", "positive_folder", "unlabelled_folder", "negative_folder", "test_folder", "table"}
)


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides how a run comes out."""

    data: DataConfig
    method_name: str
    method: MethodConfig
    backbone: BackboneConfig
    train: TrainConfig
    prior: Prior = "auto"
    seed: int = 0
    threshold: ThresholdRule = HALF

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], where: str = "configuration") -> Self:
        """Build the configuration, or say in one sentence which setting is wrong."""
        known = ("data", "method", "backbone", "train", "prior", "seed", "threshold")
        for key in settings:
            if key in RENAMED:
                raise ConfigError(
                    f"{where}: '{key}' is now called '{RENAMED[key]}'. Rename it, and give the "
                    "same command again."
                )
            if key not in known:
                raise ConfigError(f"{where}: unknown setting '{key}'.{nearest(key, known)}")
        for table in EXAMPLES:
            _check_table(table, settings.get(table, {}), where)
        method = dict(settings.get("method", {}))
        name = str(method.pop("name", "ncpu"))
        return cls(
            data=data_config(settings.get("data", {}), where),
            method_name=name,
            method=method_named(name).from_settings(method, f"{where} [method]"),
            backbone=BackboneConfig.from_settings(
                settings.get("backbone", {}), f"{where} [backbone]"
            ),
            train=TrainConfig.from_settings(settings.get("train", {}), f"{where} [train]"),
            prior=check_prior(settings.get("prior", "auto")),
            seed=_check_seed(settings.get("seed", 0)),
            threshold=parse_rule(settings.get("threshold", HALF)),
        )

    def to_settings(self) -> Settings:
        """Return what `config.toml` holds."""
        return {
            "seed": self.seed,
            "prior": self.prior,
            "threshold": str(self.threshold),
            "data": {
                key: storable(value) if key in PATHS else value
                for key, value in self.data.model_dump(mode="json", exclude_none=True).items()
            },
            "method": {"name": self.method_name, **self.method.model_dump(mode="json")},
            "backbone": self.backbone.model_dump(mode="json"),
            "train": self.train.model_dump(mode="json"),
        }

    def fingerprint(self) -> str:
        """Return a hash of every setting that changes results; places of files do not."""
        settings = self.to_settings()
        if self.threshold == HALF:
            del settings["threshold"]  # runs from before there was a choice stay the same runs
        settings["data"] = {k: v for k, v in settings["data"].items() if k not in PATHS}
        del settings["backbone"]
        settings["network"] = self.backbone.identity()
        # Under the names they first had: a run keeps its identity when a setting is renamed.
        settings["data"] = {FIRST_NAMES.get(k, k): v for k, v in settings["data"].items()}
        for key in ("device", "save_minutes", "tensorboard"):
            settings["train"].pop(key)
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def data_config(settings: Mapping[str, Any], where: str) -> DataConfig:
    """Return the data settings, with a published set's own numbers where none are given."""
    _check_table("data", settings, where)
    name = settings.get("name")
    where = f"{where} [data]"
    if not isinstance(name, str | None):
        raise ConfigError(f"{where}: name: a data set has a name, such as digits. Got {name!r}.")
    if name in ("folders", "table"):
        return OwnConfig.from_settings(settings, where)
    if name == "chips":
        return ChipsConfig.from_settings(settings, where)
    if name is None:
        raise ConfigError(
            "No data was named. Give two folders (-p and -u), a table (--table), or a data set "
            "(--data); onesided data list shows them."
        )
    entry = source_named(name)
    published = {
        "positive_classes": entry.positive_classes,
        "positives": entry.positives,
        "unlabelled": entry.unlabelled,
        "prior": entry.prior,
        "held_out_positives": entry.held_out_positives,
        "held_out_unlabelled": entry.held_out_unlabelled,
    }
    return SetConfig.from_settings({**published, **settings}, where)


def _check_table(name: str, settings: object, where: str) -> None:
    if not isinstance(settings, Mapping):
        raise ConfigError(
            f"{where}: {name} is {settings!r}, but it is a table of settings. Set one of them, "
            f"for example {EXAMPLES[name]}."
        )


def check_prior(value: object) -> Prior:
    """Return a prior between 0 and 1, or the name of the way to find one."""
    match value:
        case "auto" | "km2" | "km1" | "truth":
            return value
        case str() if (number := _as_number(value)) is not None:
            return check_prior(number)
        case bool():
            pass
        case int() | float():
            if 0 < value < 1:
                return float(value)
            raise ConfigError(
                f"The prior is {value:g}. It is the share of positives among the unlabelled and "
                'lies between 0 and 1; use "auto" to estimate it.'
            )
    raise ConfigError(
        f"The prior is {value!r}; expected a number between 0 and 1, or auto, km2, km1."
    )


def storable(path: str) -> str:
    """Return a path that UTF-8 can hold; `original_name` undoes it where it had to change."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return printable(path)
    return path


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _check_seed(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ConfigError(f"The seed is {value!r}; expected a whole number from 0 on.")
