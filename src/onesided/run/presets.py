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
from onesided.methods import method_named

Preset = Literal["quick", "standard", "paper"]

# Steps a preset spends. On two cores a step of the small network takes about a tenth of a
# second on digits and a second on CIFAR; docs/performance.md has measured times.
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
    return merge(recipe, _budget_settings(STEPS[preset], method_name, rows, recipe, given))


def _budget_settings(
    steps: int,
    method_name: str,
    rows: int,
    recipe: Mapping[str, Any],
    given: Mapping[str, Any],
) -> Settings:
    train = given.get("train", {})
    batch_size = int(train.get("batch_size", _batch_size(rows)))
    per_epoch = max(1, rows // batch_size)
    epochs = int(
        train.get("epochs", min(max(round(steps / per_epoch), FEWEST_EPOCHS), MOST_EPOCHS))
    )
    method = merge(recipe.get("method", {}), given.get("method", {}))
    method = {key: value for key, value in method.items() if key != "name"}
    planned = method_named(method_name).from_settings(method).for_budget(epochs)
    return {
        "network": {"name": "auto"},
        "train": {"epochs": epochs, "batch_size": batch_size, "learning_rate": 0.02},
        "method": planned.model_dump(mode="json", exclude_unset=False),
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
