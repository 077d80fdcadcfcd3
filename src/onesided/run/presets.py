"""How much to spend: quick (minutes), standard (an hour), paper (1300 epochs).

Later layers win: the data set's own numbers, the preset, a configuration file, flags.
`paper` reads the recipe of the data set and method; the other two derive their numbers
from the amount of data, because what costs time is steps, not epochs.
"""

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from onesided.core.config import Settings, merge, nearest, read_toml
from onesided.core.errors import ConfigError
from onesided.engine.train_config import TrainConfig
from onesided.methods import method_named

Preset = Literal["quick", "standard", "paper"]

# Steps a preset spends: what costs time is steps, whatever the size of the data.
STEPS = {"quick": 1500, "standard": 6000}
FEWEST_EPOCHS, MOST_EPOCHS = 10, 200


def preset_settings(
    preset: str, *, data_name: str, method_name: str, rows: int, given: Mapping[str, Any]
) -> Settings:
    """Return the settings of a preset for this much data.

    Args:
        preset: quick, standard or paper.
        data_name: Name of the data set, or folders, or table.
        method_name: Name of the method.
        rows: Training rows.
        given: What the user set: epochs and batch size decide the rest.
    """
    if preset not in ("quick", "standard", "paper"):
        raise ConfigError(f"There is no preset '{preset}'.{nearest(preset, (*STEPS, 'paper'))}")
    recipe = recipe_settings(data_name, method_name)
    if preset == "paper":
        return merge({"network": _paper_network(data_name)}, recipe)
    # The recipe's weights and extra data belong to the data set; its epochs, rates and the
    # paper's own estimate of the prior belong to the paper's budget and split.
    budget = _budget_settings(STEPS[preset], method_name, rows, recipe.get("method", {}), given)
    return merge({"data": recipe.get("data", {})}, budget)


def _budget_settings(
    steps: int,
    method_name: str,
    rows: int,
    weights: Mapping[str, Any],
    given: Mapping[str, Any],
) -> Settings:
    train = TrainConfig.from_settings(given.get("train", {}), "configuration [train]")
    chosen = train.model_fields_set
    batch_size = train.batch_size if "batch_size" in chosen else _batch_size(rows)
    per_epoch = max(1, rows // batch_size)
    affordable = min(max(round(steps / per_epoch), FEWEST_EPOCHS), MOST_EPOCHS)
    epochs = train.epochs if "epochs" in chosen else affordable
    method = merge(weights, given.get("method", {}))
    method.pop("name", None)
    config = method_named(method_name).from_settings(method, "configuration [method]")
    return {
        "network": {"name": "auto"},
        "train": {
            "epochs": epochs,
            "batch_size": batch_size,
            "learning_rate": config.budget_learning_rate(),
        },
        "method": config.for_budget(epochs).model_dump(mode="json"),
    }


def _batch_size(rows: int) -> int:
    """Return a batch with some 20 steps per epoch on small data, 256 on large."""
    for size in (256, 128, 64, 32):
        if rows >= size * 16:
            return size
    return 16


def _paper_network(data_name: str) -> Settings:
    return {"name": "auto"} if data_name == "table" else {"name": "resnet18"}


def recipe_settings(data_name: str, method_name: str) -> Settings:
    """Return the recipe of this data set and method; the method's own defaults where none is."""
    path = resources.files("onesided") / "recipes" / data_name / f"{method_name}.toml"
    return read_toml(Path(str(path))) if path.is_file() else {}
