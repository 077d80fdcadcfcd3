"""Presets: how long a run trains, from minutes to the length of a publication.

A preset is a TOML file, one of `src/onesided/presets` or the user's own. Later layers win: the
data set's own numbers, the recipe, the preset, a configuration file, flags. A preset with a
budget derives epochs from the amount of data, because time is spent by steps, not by epochs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import Field, model_validator

from onesided.core.batch import Batching, Mixed, Stratified
from onesided.core.config import Config, Settings, merge, nearest, read_toml
from onesided.core.errors import ConfigError
from onesided.data.problem.dataset import PUSplit
from onesided.data.sources import source_named
from onesided.engine.train_config import TrainConfig
from onesided.methods import AUTO, choices, method_named
from onesided.methods.auto import AutoConfig
from onesided.methods.base import MOST_GENTLE_EPOCHS, MethodConfig
from onesided.nets.build import BackboneConfig
from onesided.nets.efficientnet import Layers
from onesided.run.config import (
    ChipsConfig,
    DataConfig,
    OwnConfig,
    RunConfig,
    SetConfig,
    data_config,
)
from onesided.run.default_method import DEFAULT_METHOD
from onesided.run.preset_files import preset_path

RECIPES = Path(str(resources.files("onesided") / "recipes"))
Section = TypeVar("Section", BackboneConfig, TrainConfig)
ESTIMATED_ON = ("positive_classes", "positives", "unlabelled", "prior")
"""Settings of the split that a recipe's prior was estimated on."""
NOT_PRETRAINED = ("width", "normalisation")
"""Settings that a published network does not have."""
PRETRAINED = "efficientnet_lite0"
SEARCHED_LAYERS: Layers = "several"
"""Layers of it that a search takes."""
SIZES, SECONDS_AT_FULL_SIZE, EMBEDDING_SHARE = (224, 160, 128), 0.0125, 0.4
"""Sizes at which a search embeds images, what one image takes at the first of them on one core, and
the share of the budget that may go into it."""
FROM_SCRATCH = ("auto", "small")
"""The backbone for images that has no pretrained weights, by its two names."""


class Preset(Config):
    """The settings of a preset; everything that the user sets wins over them."""

    summary: str = ""
    """How long it takes, in a few words."""
    training: Literal["budget", "recipe"]
    """As many epochs as the steps allow, or the published recipe of data set and method."""
    steps: int | None = Field(default=None, ge=1)
    """Steps to spend, whatever the size of the data."""
    fewest_epochs: int = Field(default=4, ge=1)
    """Passes over the data at least, even if they take more steps."""
    most_epochs: int = Field(default=200, ge=1)
    """Passes over the data at most, even if steps are left."""
    largest_side: int | None = Field(default=None, ge=8, le=1024)
    """Largest side of people's own images where the backbone starts from scratch. A pretrained
    one needs larger images, and a frozen one reads them only once."""
    backbone: BackboneConfig = BackboneConfig()
    """The backbone for images; vectors cost little at any width."""
    train: TrainConfig = TrainConfig()
    """Training settings that do not depend on the amount of data."""
    method: Mapping[str, Settings] = Field(default_factory=dict)
    """Settings of methods, each under the method's name."""
    default_method: str | None = None
    """The method where the user names none; None leaves it to the library."""

    @model_validator(mode="after")
    def _spends_steps_or_follows_a_recipe(self) -> Self:
        if (self.training == "budget") != (self.steps is not None):
            raise ValueError(
                'training = "budget" and steps go together: give the number of steps, or '
                'training = "recipe" without it'
            )
        if self.fewest_epochs > self.most_epochs:
            raise ValueError(
                f"fewest_epochs is {self.fewest_epochs} and most_epochs is {self.most_epochs}; "
                "the fewest cannot be more than the most"
            )
        return self


@dataclass(frozen=True)
class Amount:
    """How much training data there is.

    Where a batch holds more of P than its share, a pass over U takes more steps: so `labelled`
    counts too.
    """

    rows: int = 1
    labelled: int = 0
    images: bool = True
    pixels: int = 1024  # of an image


def amount_of(split: PUSplit) -> Amount:
    """Return how much there is to train on."""
    shape, train = split.sample_shape, split.train
    images = len(shape) == 3
    pixels = shape[1] * shape[2] if images else 1
    return Amount(len(train), int(train.labelled.sum()), images, pixels)


@dataclass(frozen=True)
class Plan:
    """Checked settings, before the data is read; a budget decides the rest by its amount."""

    checked: RunConfig
    budget: "Budget | None" = None
    vectors: BackboneConfig | None = None  # as asked for, of a search on data that are no images

    def with_pairs(self) -> "Plan":
        """Return the plan for images before and after: a frozen backbone sees them one by one."""
        backbone = self.checked.backbone
        if not backbone.freeze:
            return self
        pair = backbone.model_copy(update={"pair": True})
        return replace(self, checked=replace(self.checked, backbone=pair))

    def for_data(self, split: PUSplit) -> RunConfig:
        """Return the settings of the run on this data."""
        return self.for_amount(amount_of(split))

    def for_amount(self, amount: Amount) -> RunConfig:
        """Return the settings of the run on this much data."""
        if self.vectors is not None and not amount.images:
            return replace(self.checked, backbone=self.vectors)
        if self.vectors is not None:
            _check_pretrained(self.checked.backbone, self.vectors)
            return replace(self.checked, backbone=_sharp_in_time(self.checked, amount))
        return self.budget.spent(self.checked, amount) if self.budget else self.checked


@dataclass(frozen=True)
class Budget:
    """A number of training steps, and what they are spent on."""

    steps: int
    epochs: tuple[int, int]  # fewest and most passes over the data
    method: MethodConfig  # for a short run, before it is adapted to a number of epochs
    asked: frozenset[str]  # settings of the method that the user gave and that stay
    vectors: BackboneConfig  # for data that are not images

    def spent(self, checked: RunConfig, amount: Amount) -> RunConfig:
        """Return the run with backbone, training and method for this much data."""
        train = self._training(checked.train, amount)
        return replace(
            checked,
            backbone=checked.backbone if amount.images else self.vectors,
            train=train,
            method=at_pace(self.method, train.epochs, self.asked, checked.backbone),
        )

    def _training(self, asked: TrainConfig, amount: Amount) -> TrainConfig:
        chosen = "batch_size" in asked.model_fields_set
        for size in [asked.batch_size] if chosen else _batch_sizes(amount.rows):
            planned = {"batch_size": size, **self.method.budget_training(size)}
            train = _beneath(asked, planned)
            per_epoch = _steps_per_epoch(self.method.batching(size), train, amount)
            if per_epoch:
                break
        fewest, most = self.epochs
        planned["epochs"] = min(max(round(self.steps / max(1, per_epoch)), fewest), most)
        if _beneath(asked, planned).epochs > MOST_GENTLE_EPOCHS:
            planned["views"] = "published"
        return _beneath(asked, planned)


def plan_run(given: Settings, preset: str | Path | None, *, where: str = "configuration") -> Plan:
    """Return the plan of a run, or raise with one sentence on the wrong setting.

    Args:
        given: The settings that the user gave.
        preset: Name of a preset or a file of one; None where everything is given.
        where: Where `given` comes from, for errors.
    """
    chosen = None if preset is None else read_preset(preset)
    if chosen is not None and chosen.default_method is not None:
        given = merge({"method": {"name": chosen.default_method}}, given)
    own = RunConfig.from_settings(given, where)
    if chosen is None:
        if isinstance(own.method, AutoConfig):
            check_candidates(own.method)
        return Plan(own)
    if own.method_name == AUTO:
        return _plan_search(own, chosen, given, where)
    recipe = recipe_settings(own.data.name, own.method_name)
    backbone = _backbone(own, chosen, given, where)
    added = dict(recipe.get("data", {}))
    if isinstance(own.data, OwnConfig) and backbone.name in FROM_SCRATCH and chosen.largest_side:
        added["largest_side"] = chosen.largest_side
    asked = merge(chosen.method.get(own.method_name, {}), given.get("method", {}))
    asked.pop("name", None)
    # The recipe's loss weights and extra data suit the data set; its epochs, learning rates and
    # prior suit the paper's budget and split.
    published = recipe if chosen.training == "recipe" else {}
    beneath = merge(published.get("train", {}), chosen.train.model_dump(exclude_unset=True))
    data = data_config(merge(added, given["data"]), where) if added else own.data
    checked = replace(
        own,
        data=data,
        backbone=backbone,
        train=_over(beneath, own.train, given.get("train", {}), f"{where} [train]"),
        prior=own.prior if "prior" in given else prior_of_recipe(published, data) or own.prior,
    )
    if chosen.steps is None:
        return Plan(replace(checked, method=_published_method(checked, recipe, asked, where)))
    method = _short_method(checked, recipe, asked, where)
    epochs = (chosen.fewest_epochs, chosen.most_epochs)
    return Plan(checked, Budget(chosen.steps, epochs, method, frozenset(asked), own.backbone))


def _plan_search(own: RunConfig, chosen: Preset, given: Settings, where: str) -> Plan:
    """Return the plan of a search: on features of a pretrained backbone where data are images.

    Nothing is held out, because every item gets a score from a model that did not see it.
    """
    asked = merge(chosen.method.get(AUTO, {}), given.get("method", {}))
    asked.pop("name", None)
    method = AutoConfig.from_settings(asked, f"{where} [method]")
    check_candidates(method)
    data, backbone = own.data, own.backbone
    if isinstance(data, OwnConfig | ChipsConfig) and "held_out" not in data.model_fields_set:
        data = data.model_copy(update={"held_out": 0.0})
    if isinstance(data, OwnConfig) and "largest_side" not in data.model_fields_set:
        data = data.model_copy(update={"largest_side": SIZES[0]})
    if backbone.name == "auto":
        further = {key: given["backbone"][key] for key in backbone.model_fields_set - {"name"}}
        for key in NOT_PRETRAINED:
            further.pop(key, None)  # of the network for vectors, should the data be vectors
        settings = merge({"name": PRETRAINED, "freeze": True, "layers": SEARCHED_LAYERS}, further)
        backbone = BackboneConfig.from_settings(settings, f"{where} [backbone]")
    elif backbone.starts_trained and "freeze" not in backbone.model_fields_set:
        # Who names a pretrained network means its features: simple methods would get pixels.
        named = {key: given["backbone"][key] for key in backbone.model_fields_set}
        layers = {"layers": SEARCHED_LAYERS} if backbone.name == PRETRAINED else {}
        settings = {"freeze": True, **layers, **named}
        backbone = BackboneConfig.from_settings(settings, f"{where} [backbone]")
    beneath = chosen.train.model_dump(exclude_unset=True)
    train = _over(beneath, own.train, given.get("train", {}), f"{where} [train]")
    checked = replace(own, data=data, backbone=backbone, method=method, train=train)
    return Plan(checked, vectors=own.backbone)


def _check_pretrained(pretrained: BackboneConfig, asked: BackboneConfig) -> None:
    """Refuse settings that only a network from scratch has, once the data turn out as images."""
    lost = [key for key in NOT_PRETRAINED if getattr(pretrained, key) != getattr(asked, key)]
    if lost:
        raise ConfigError(
            f"backbone.{lost[0]} is a setting of a network that starts from scratch, and auto "
            f"takes features of {pretrained.name}. Leave it out, or add --backbone small."
        )


def _sharp_in_time(config: RunConfig, amount: Amount) -> BackboneConfig:
    """Return the pretrained backbone at the largest size that takes a part of the budget.

    It was trained at 224 pixels and sees most at that size, also in images that are enlarged.
    """
    backbone, method = config.backbone, config.method
    assert isinstance(method, AutoConfig)
    if backbone.name != PRETRAINED or not backbone.freeze or backbone.resize:
        return backbone
    allowed = 60 * method.minutes * EMBEDDING_SHARE
    for size in SIZES:
        if amount.rows * SECONDS_AT_FULL_SIZE * (size / SIZES[0]) ** 2 <= allowed:
            return backbone.model_copy(update={"resize": size})
    return backbone


def check_candidates(method: AutoConfig) -> None:
    """Refuse methods that a search cannot try."""
    for name in (*method.candidates, *method.also):
        needs = method_named(name).needs
        if name == AUTO:
            raise ConfigError("auto cannot be a candidate of itself. Leave it out.")
        if needs.clean or needs.truth or needs.held_out:
            raise ConfigError(
                f"{name} needs more than P and U, so auto cannot try it beside others. Train it "
                f"alone with --method {name}."
            )


def short_run(config: RunConfig, name: str, steps: int, amount: Amount) -> RunConfig:
    """Return the run that trains a method for so many steps, as a preset would."""
    # A run's config.toml gives every setting: what is as by default counts as not asked for.
    train = TrainConfig.from_settings(config.train.model_dump(exclude_defaults=True))
    checked = replace(config, method_name=name, method=method_named(name)(), train=train)
    method = _short_method(checked, {}, {}, name)
    fewest, most = (Preset.model_fields[f"{end}_epochs"].default for end in ("fewest", "most"))
    budget = Budget(steps, (fewest, most), method, frozenset(), BackboneConfig())
    return budget.spent(checked, amount)


def steps_of(config: RunConfig, amount: Amount) -> int:
    """Return how many training steps a run takes on this much data."""
    batching = config.method.batching(config.train.batch_size)
    return config.train.epochs * _steps_per_epoch(batching, config.train, amount)


def read_preset(preset: str | Path) -> Preset:
    """Return a preset by its name, or the user's own by its file; all of it is checked."""
    path = preset_path(preset)
    chosen = Preset.from_settings(read_toml(path), str(path))
    named: dict[str, Settings] = {chosen.default_method: {}} if chosen.default_method else {}
    for name, settings in {**named, **chosen.method}.items():
        if name not in choices():
            raise ConfigError(
                f"{path} [method]: there is no method '{name}'.{nearest(name, choices())}"
            )
        method_named(name).from_settings(settings, f"{path} [method.{name}]")
    return chosen


def published_settings(
    preset: str | Path,
    *,
    data_name: str,
    method_name: str = DEFAULT_METHOD,
    given: Mapping[str, Any],
) -> Settings:
    """Return the settings of `onesided fit --data NAME` without reading the published set."""
    names = {"data": {"name": data_name}, "method": {"name": method_name}}
    plan = plan_run(merge(names, given), preset)
    data = plan.checked.data
    if not isinstance(data, SetConfig):
        raise ConfigError(f"'{data_name}' is no published set; see onesided data list.")
    amount = Amount(data.positives + data.unlabelled, data.positives)
    return plan.for_amount(amount).to_settings()


def demo_settings(method_name: str, seed: int) -> Settings:
    """Return one run of `onesided demo`: a few labelled even digits, minutes on two cores.

    Both methods share data and backbone, and each is trained as the preset `quick` trains it: its
    values were chosen on photographs, and nothing here was chosen on digits.
    """
    shared = published_settings("quick", data_name="digits", given={})
    given = {"seed": seed, "backbone": shared["backbone"]}
    return published_settings("quick", data_name="digits", method_name=method_name, given=given)


def recipe_settings(data_name: str, method_name: str) -> Settings:
    """Return the recipe of this data set and method; {} where there is none."""
    path = RECIPES / f"{method_name}.toml"
    sections = read_toml(path) if path.is_file() else {}
    return merge(sections.get("all", {}), sections[data_name]) if data_name in sections else {}


def prior_of_recipe(recipe: Settings, data: DataConfig) -> float | None:
    """Return the recipe's prior if the split is the one it was estimated on; else None.

    The number is what KM2 gave the paper's authors on their P and U: with other counts, another
    share or other classes it would be a wrong prior, and none is better.
    """
    if "prior" not in recipe or not isinstance(data, SetConfig):
        return None
    entry = source_named(data.name)
    same = all(getattr(data, name) == getattr(entry, name) for name in ESTIMATED_ON)
    return float(recipe["prior"]) if same and data.scenario == "case-control" else None


def _backbone(own: RunConfig, chosen: Preset, given: Settings, where: str) -> BackboneConfig:
    """Return the backbone for images: the preset's, unless the user asked for another one."""
    names = {own.backbone.name, chosen.backbone.name}
    another = len(names) > 1 and not names <= set(FROM_SCRATCH)
    # A published run does not depend on the data that is read: a table is taken to hold numbers.
    numbers = chosen.training == "recipe" and own.data.name == "table"
    if numbers or (another and "name" in own.backbone.model_fields_set):
        return own.backbone
    beneath = chosen.backbone.model_dump(exclude_unset=True)
    return _over(beneath, own.backbone, given.get("backbone", {}), f"{where} [backbone]")


def _published_method(
    checked: RunConfig, recipe: Settings, asked: Settings, where: str
) -> MethodConfig:
    """Return the recipe's method, adapted to fewer epochs where the user asked for fewer.

    Momentum per epoch and warm-ups suit the published length: in 40 epochs NcPU's targets would
    never change sides.
    """
    settings = merge(recipe.get("method", {}), asked)
    config = type(checked.method).from_settings(settings, f"{where} [method]")
    published = recipe.get("train", {}).get("epochs", TrainConfig().epochs)
    # `for_budget` may change more than the pace; then the method would not be the paper's.
    if checked.train.epochs >= published or config.for_budget(published) != config:
        return config
    return at_pace(config, checked.train.epochs, frozenset(asked), checked.backbone)


def _short_method(
    checked: RunConfig, recipe: Settings, asked: Settings, where: str
) -> MethodConfig:
    """Return the method for a short run, before it is adapted to a number of epochs."""
    own = checked.method
    suited = own.features_variant if checked.backbone.freeze else own.budget_variant
    variant = asked.get("variant", suited)
    # A variant for short runs has its own loss weights: the recipe's suit 1300 epochs.
    short = variant is not None and variant in (own.budget_variant, own.features_variant)
    beneath = {"variant": variant} if short else recipe.get("method", {})
    return type(own).from_settings(merge(beneath, asked), f"{where} [method]")


def _over(beneath: Settings, own: Section, asked: Settings, where: str) -> Section:
    """Return a section over the layers beneath it; as it is where there are none."""
    return type(own).from_settings(merge(beneath, asked), where) if beneath else own


def at_pace(
    config: MethodConfig, epochs: int, asked: frozenset[str], backbone: BackboneConfig
) -> MethodConfig:
    """Return the method adapted to this many epochs, but for the settings asked for."""
    kept = {key: getattr(config, key) for key in asked}
    adapted = config.for_features(epochs) if backbone.freeze else config.for_budget(epochs)
    return adapted.model_copy(update=kept)


def _beneath(asked: TrainConfig, planned: Settings) -> TrainConfig:
    """Return the settings asked for, and the planned ones where none was given."""
    free = {key: value for key, value in planned.items() if key not in asked.model_fields_set}
    return asked.model_copy(update=free)


def _steps_per_epoch(batching: Batching, train: TrainConfig, amount: Amount) -> int:
    """Return how many batches one pass takes, as the loader counts them; 0 if none is full."""
    size = train.batch_size
    if train.batching == "mixed" or (train.batching == "method" and isinstance(batching, Mixed)):
        return amount.rows // size
    asked = train.positives_per_batch if train.batching == "stratified" else 0
    if train.batching == "method" and isinstance(batching, Stratified):
        asked = batching.positives
    positives = min(asked or round(size * amount.labelled / amount.rows) or 1, size - 1)
    return (amount.rows - amount.labelled) // (size - positives)


def _batch_sizes(rows: int) -> list[int]:
    """Return batch sizes to try: first one with about 20 steps per epoch, 128 on large data.

    Smaller ones follow, for data with too few unlabelled samples to fill a batch.
    """
    first = next((size for size in (128, 64, 32) if rows >= size * 16), 16)
    return [size for size in (128, 64, 32, 16, 8, 4, 2) if size <= first]
