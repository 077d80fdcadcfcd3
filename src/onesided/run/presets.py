"""How much to spend: minutes (quick), an hour (standard), one or two (evening), or as the paper.

Later layers win: the data set's own numbers, the preset, a configuration file, flags.
`paper` reads the recipe of the data set and method; the others derive their numbers
from the amount of data, because what costs time is steps, not epochs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from onesided.core.batch import Batching, Mixed, Stratified
from onesided.core.config import Settings, merge, nearest, read_toml
from onesided.core.errors import ConfigError
from onesided.data.problem.dataset import PUSplit
from onesided.engine.train_config import TrainConfig
from onesided.methods import method_named
from onesided.methods.base import MOST_GENTLE_EPOCHS, MethodConfig
from onesided.run.config import RunConfig, SetConfig

RECIPES = Path(str(resources.files("onesided") / "recipes"))
Preset = Literal["quick", "standard", "evening", "paper"]

# Steps a preset spends: what costs time is steps, whatever the size of the data. And the
# width of its network for images; vectors cost little at any width.
STEPS = {"quick": 2500, "standard": 10000, "evening": 10000}
WIDTHS = {"quick": 0.25, "standard": 0.5, "evening": 1.0}
FEWEST_EPOCHS, MOST_EPOCHS = 4, 200


@dataclass(frozen=True)
class Amount:
    """How much data there is, as far as it decides what can be afforded.

    Attributes:
        rows: Training rows.
        labelled: How many of them are labelled: methods that draw more of P than its share
            need more steps for a pass over U.
        images: Whether they are images.
    """

    rows: int = 1
    labelled: int = 0
    images: bool = True

    @classmethod
    def of(cls, split: PUSplit) -> "Amount":
        """Return the amount of training data in a split."""
        labelled = int(split.train.labelled.sum())
        return cls(len(split.train), labelled, images=len(split.sample_shape) == 3)


def resolve(
    given: Settings,
    preset: str | None,
    split: PUSplit | None = None,
    *,
    where: str = "configuration",
) -> RunConfig:
    """Return the configuration: the preset's numbers for this data, under what was given.

    Without a split it only says whether what was given makes sense.
    """
    own = RunConfig.from_settings(given, where)
    if preset is None:
        return own
    planned = preset_settings(
        preset,
        data_name=own.data.name,
        method_name=own.method_name,
        amount=Amount.of(split) if split else Amount(),
        given=given,
    )
    return RunConfig.from_settings(merge(planned, given), where)


def preset_settings(
    preset: str,
    *,
    data_name: str,
    method_name: str,
    amount: Amount,
    given: Mapping[str, Any],
) -> Settings:
    """Return the settings of a preset for this much data.

    Args:
        preset: quick, standard, evening or paper.
        data_name: Name of the data set, or folders, or table.
        method_name: Name of the method.
        amount: How much data there is.
        given: What the user set: epochs and batch size decide the rest.
    """
    if preset not in (*STEPS, "paper"):
        raise ConfigError(f"There is no preset '{preset}'.{nearest(preset, (*STEPS, 'paper'))}")
    recipe = recipe_settings(data_name, method_name)
    if preset == "paper":
        published = {"network": _paper_network(data_name)}
        return merge(published, recipe, _compressed(method_name, recipe, given))
    # The recipe's weights and extra data belong to the data set; its epochs, rates and the
    # paper's own estimate of the prior belong to the paper's budget and split.
    config = _budget_method(method_name, recipe.get("method", {}), given)
    network = {"name": "auto", **({"width": WIDTHS[preset]} if amount.images else {})}
    planned = _budget_training(STEPS[preset], config, amount, given.get("train", {}))
    method = config.for_budget(planned["epochs"]).model_dump(mode="json")
    return {
        "data": {**recipe.get("data", {}), **_smaller_images(preset, data_name, given)},
        "network": _as_published(given.get("network", {}), network),
        "train": planned,
        "method": method,
    }


def _compressed(method_name: str, recipe: Settings, given: Mapping[str, Any]) -> Settings:
    """Return the method at a pace for fewer epochs than the recipe's, where they were asked for.

    Momentum per epoch and warm-ups belong to the published length: at 40 epochs NcPU's targets
    would never turn.
    """
    own, asked = (
        TrainConfig.from_settings(settings.get("train", {}), "configuration [train]").epochs
        for settings in (recipe, merge(recipe, given))
    )
    if asked >= own:
        return {}
    config = method_named(method_name).from_settings(
        merge(recipe.get("method", {}), _asked_of_method(given)), "configuration [method]"
    )
    if config.for_budget(own) != config:
        return {}  # what it does for short runs is more than a pace, and not the paper's
    return {"method": config.for_budget(asked).model_dump(mode="json")}


def published_settings(
    preset: str, *, data_name: str, method_name: str = "ncpu", given: Mapping[str, Any]
) -> Settings:
    """Return what `onesided fit --data NAME` would do with a published set, without reading it."""
    data = RunConfig.from_settings({"data": {"name": data_name, **given.get("data", {})}}).data
    if not isinstance(data, SetConfig):
        raise ConfigError(f"'{data_name}' is no published set; see onesided data list.")
    return preset_settings(
        preset,
        data_name=data_name,
        method_name=method_name,
        amount=Amount(data.positives + data.unlabelled, data.positives),
        given=given,
    )


def _smaller_images(preset: str, data_name: str, given: Mapping[str, Any]) -> Settings:
    """Return a limit to people's own images in `quick`: at 128 pixels, minutes become an hour.

    A pretrained network wants to see more, and frozen ones look only once.
    """
    own = data_name in ("folders", "table")
    from_scratch = given.get("network", {}).get("name", "auto") in ("auto", "small")
    return {"largest_side": 64} if own and from_scratch and preset == "quick" else {}


def _budget_method(name: str, weights: Mapping[str, Any], given: Mapping[str, Any]) -> MethodConfig:
    """Return the method as it suits a short run, before its pace is set."""
    kind = method_named(name)
    asked = _asked_of_method(given)
    frozen = given.get("network", {}).get("trained") == "head"
    variant = asked.get("variant", kind.features_variant if frozen else kind.budget_variant)
    # A variant for short runs has weights of its own: the recipe's belong to 1300 epochs.
    short = variant is not None and variant in (kind.budget_variant, kind.features_variant)
    own = {"variant": variant} if short else weights
    return kind.from_settings(merge(own, asked), "configuration [method]")


def _asked_of_method(given: Mapping[str, Any]) -> Settings:
    """Return what was set of the method, without its name."""
    return {key: value for key, value in given.get("method", {}).items() if key != "name"}


def _as_published(given: Mapping[str, Any], network: Settings) -> Settings:
    """Return the preset's network, without a width where a published network was asked for."""
    return network if given.get("name", "auto") in ("auto", "small") else {"name": "auto"}


def _budget_training(
    steps: int, config: MethodConfig, amount: Amount, given: Mapping[str, Any]
) -> Settings:
    asked = TrainConfig.from_settings(given, "configuration [train]")
    chosen = asked.model_fields_set
    sizes = [asked.batch_size] if "batch_size" in chosen else _batch_sizes(amount.rows)
    for batch_size in sizes:
        planned = {"batch_size": batch_size, **config.budget_training(batch_size)}
        train = TrainConfig.from_settings(merge(planned, given), "configuration [train]")
        per_epoch = _steps_per_epoch(config.batching(batch_size), train, amount, batch_size)
        if per_epoch:
            break
    affordable = min(max(round(steps / max(1, per_epoch)), FEWEST_EPOCHS), MOST_EPOCHS)
    epochs = asked.epochs if "epochs" in chosen else affordable
    if epochs > MOST_GENTLE_EPOCHS:
        planned["views"] = "published"
    return {**planned, "epochs": epochs}


def _steps_per_epoch(
    batching: Batching, train: TrainConfig, amount: Amount, batch_size: int
) -> int:
    """Return how many batches one pass takes, as the loader will count them; 0 if none fills."""
    if train.batching == "mixed" or (train.batching == "method" and isinstance(batching, Mixed)):
        return amount.rows // batch_size
    asked = train.positives_per_batch if train.batching == "stratified" else 0
    if train.batching == "method" and isinstance(batching, Stratified):
        asked = batching.positives
    positives = min(asked or round(batch_size * amount.labelled / amount.rows) or 1, batch_size - 1)
    return (amount.rows - amount.labelled) // (batch_size - positives)


def _batch_sizes(rows: int) -> list[int]:
    """Return a batch with some 20 steps per epoch on small data, 128 on large.

    And smaller ones behind it, for data with too few unlabelled samples to fill it once.
    """
    first = next((size for size in (128, 64, 32) if rows >= size * 16), 16)
    return [size for size in (128, 64, 32, 16, 8, 4, 2) if size <= first]


def _paper_network(data_name: str) -> Settings:
    return {"name": "auto"} if data_name == "table" else {"name": "resnet18"}


def recipe_settings(data_name: str, method_name: str) -> Settings:
    """Return the recipe of this data set and method; the method's own defaults where none is."""
    path = RECIPES / f"{method_name}.toml"
    sections = read_toml(path) if path.is_file() else {}
    return merge(sections.get("all", {}), sections[data_name]) if data_name in sections else {}
