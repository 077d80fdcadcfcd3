"""The settings of a run: data, method, backbone, prior, training, seed.

`config.toml` of a run folder holds them; `onesided fit --config` repeats the run.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, cast

from pydantic import Field

from onesided.core.config import Config, Settings, nearest
from onesided.core.errors import ConfigError
from onesided.core.former import first_names, method_today
from onesided.data.columns.cells import ColumnKind
from onesided.data.problem.dataset import Scenario
from onesided.data.problem.split import SplitRecipe
from onesided.data.read.images import Size
from onesided.data.sources import source_named
from onesided.engine.train_config import TrainConfig
from onesided.methods import AUTO, method_named
from onesided.methods.base import MethodConfig
from onesided.metrics.threshold_rules import BY_PRIOR, HALF, ThresholdRule, parse_rule
from onesided.nets.build import BackboneConfig
from onesided.run.default_method import DEFAULT_METHOD
from onesided.storage.names import printable

Prior = float | Literal["auto", "km2", "km1", "truth"]


class SetConfig(SplitRecipe):
    """A published data set, divided into P, U and test by a recipe."""

    name: str
    """Name of the data set, see onesided data list."""
    root: str | None = None
    """Folder that holds its files; not a part of the run's identity."""
    answers: str | None = None
    """CSV file of answers (item, answer): confirmed positives join P, confirmed negatives become
    known negatives; onesided review --apply writes it."""


class OwnConfig(Config):
    """People's own data: two folders, or a table."""

    name: Literal["folders", "table"]
    """Whether the data is in folders or listed in a table."""
    positive_folder: str | None = None
    """Folder of positives."""
    unlabelled_folder: str | None = None
    """Folder of the unlabelled pool."""
    negative_folder: str | None = None
    """Folder of known negatives: for training, where the method uses them, and for evaluation."""
    test_folder: str | None = None
    """Folder with two folders `positive` and `negative`, for reporting."""
    table: str | None = None
    """CSV file with columns path and label, or label and columns to learn from."""
    kinds: dict[str, ColumnKind] | None = None
    """Kinds of columns of the table (number, category, boolean, date, text) by their names, where
    they are not to be found out."""
    group: str | None = None
    """Column of the table whose rows of one value are never both trained on and held out; for
    folders `parent`, the folder that a file lies in."""
    sample_weight: str | None = None
    """Column of the table that says how much each row counts in training; figures count every item
    once. For methods that can weigh samples."""
    text_encoder: str | None = None
    """Pretrained encoder of texts, hf:FOLDER (a model of the library transformers, or its name on
    the hub); without one the words of the training texts are counted."""
    image_size: int = Field(default=0, ge=0, le=1024)
    """Side to which images are resized; 0 chooses from the data."""
    largest_side: int = Field(default=128, ge=8, le=1024)
    """Largest side that is chosen from the data."""
    held_out: float = Field(default=0.2, ge=0, lt=0.9)
    """Share of P, U and known negatives held out of training, for evaluation."""
    tolerate: float = Field(default=0.05, ge=0, le=1)
    """Share of files of a folder that may be unreadable."""
    answers: str | None = None
    """CSV file of answers (item, answer): confirmed positives join P, confirmed negatives become
    known negatives; onesided review --apply writes it."""
    scenario: Scenario = "single-set"
    """Whether U is the rest of one set after labelling, or a separate sample."""
    seed: int = 57
    """Seed of the division into training and held-out parts."""

    def size(self) -> Size:
        """Return the height and width asked for, or the largest side that may be chosen."""
        return (self.image_size, self.image_size) if self.image_size else self.largest_side


class ChipsConfig(Config):
    """Buildings that `onesided map` cut out of images."""

    name: Literal["chips"] = "chips"
    """Cut out by onesided map; that command also repeats the run."""
    size: int = Field(default=64, ge=8, le=512)
    """Side of a chip in pixels."""
    margin: float = Field(default=0.5, ge=0, le=8)
    """Surroundings of a building on each side, in multiples of its size."""
    held_out: float = Field(default=0.2, ge=0, lt=0.9)
    """Share of the marked buildings held out of training, with all their neighbours."""
    answers: str | None = None
    """CSV file of answers (item, answer): confirmed positives join P, confirmed negatives become
    known negatives; onesided review --apply writes it."""
    scenario: Scenario = "single-set"
    """The marked buildings are some of all buildings of the area."""
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
PUBLISHED = ("positive_classes", "positives", "unlabelled", "prior", *FIRST_NAMES)
"""Settings of the data that a published set brings with it."""
PATHS = frozenset(
    {
        *("root", "positive_folder", "unlabelled_folder", "negative_folder", "test_folder"),
        *("table", "text_encoder", "answers"),
    }
)


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides the result of a run."""

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
        """Build the configuration, or raise with one sentence on the wrong setting."""
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
        name = str(method.pop("name", DEFAULT_METHOD))
        if "minutes" in method and name != AUTO:
            raise ConfigError(
                f"A budget is the time of {AUTO}, and the method is {name}. Leave the budget out "
                "and choose a preset, or leave the method out."
            )
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
            threshold=parse_rule(settings.get("threshold", BY_PRIOR if name == AUTO else HALF)),
        )

    def to_settings(self) -> Settings:
        """Return the content of `config.toml`."""
        return {
            "seed": self.seed,
            "prior": self.prior,
            "threshold": str(self.threshold),
            "data": {
                key: storable(value) if key in PATHS else value
                for key, value in self.data.model_dump(mode="json", exclude_none=True).items()
            },
            "method": {"name": self.method_name, **self.method.stored()},
            "backbone": self.backbone.model_dump(mode="json"),
            # A search plans the training of each candidate around what was asked for.
            "train": self.train.model_dump(mode="json", exclude_unset=self.method_name == AUTO),
        }

    def fingerprint(self) -> str:
        """Return a hash of every setting that changes results; paths do not."""
        settings = self.to_settings()
        if self.threshold == HALF:
            del settings["threshold"]  # older runs had no such setting and keep their identity
        del settings["backbone"]
        # Under the names they first had: a run keeps its identity when a setting is renamed.
        settings["network"] = self.backbone.identity()
        settings["method"] = first_names(self.method_name, self.method.model_dump(mode="json"))
        settings["data"] = {
            FIRST_NAMES.get(key, key): value
            for key, value in settings["data"].items()
            if key not in PATHS
        }
        for key in ("device", "threads", "save_minutes", "tensorboard"):
            settings["train"].pop(key, None)
        # Older runs had neither setting, and keep their identity.
        if self.train.keep == "last":
            settings["train"].pop("keep", None)
        if settings["data"].get("pool") == "apart":
            del settings["data"]["pool"]
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def with_new_names(settings: Mapping[str, Any]) -> Settings:
    """Return the settings of an earlier version's `config.toml` under the names of today."""
    old, data = dict(settings), dict(settings.get("data", {}))
    first = {old_name: name for name, old_name in FIRST_NAMES.items()}
    old["data"] = {first.get(key, key): value for key, value in data.items()}
    if "network" in old:
        backbone = dict(old.pop("network"))
        backbone["freeze"] = backbone.pop("trained", "all") == "head"
        old["backbone"] = backbone
    if isinstance(method := old.get("method"), Mapping) and "name" in method:
        name, own = method_today(
            str(method["name"]), {key: method[key] for key in method if key != "name"}
        )
        old["method"] = {"name": name, **own}
    return old


def data_config(settings: Mapping[str, Any], where: str) -> DataConfig:
    """Return the data settings, with a published set's own numbers where none is given."""
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
            "No data was given. Give two folders (-p and -u), a table (--table), or a data set "
            "(--data); onesided data list shows them."
        )
    entry = source_named(name)
    published = {key: getattr(entry, key) for key in PUBLISHED}
    return SetConfig.from_settings({**published, **settings}, where)


def _check_table(name: str, settings: object, where: str) -> None:
    if not isinstance(settings, Mapping):
        raise ConfigError(
            f"{where}: {name} is {settings!r}, but it is a table of settings. Set one of them, "
            f"for example {EXAMPLES[name]}."
        )


def check_prior(value: object) -> Prior:
    """Return a prior between 0 and 1, or the name of an estimator."""
    if value in ("auto", "km2", "km1", "truth"):
        return cast("Prior", value)
    try:
        number = None if isinstance(value, bool) else float(cast("float", value))
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None:
        raise ConfigError(
            f"The prior is {value!r}; expected a number between 0 and 1, or auto, km2, km1."
        )
    if not 0 < number < 1:
        raise ConfigError(
            f"The prior is {number:g}. It is the share of positives among the unlabelled and "
            'lies between 0 and 1; use "auto" to estimate it.'
        )
    return number


def storable(path: str) -> str:
    """Return a path that UTF-8 can hold; `original_name` undoes it where it had to change."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return printable(path)
    return path


def _check_seed(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ConfigError(f"The seed is {value!r}; expected a whole number from 0 on.")
