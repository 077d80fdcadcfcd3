"""From the parameters of an estimator to the configuration of a run, as the command has it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from onesided.core.config import Settings, merge
from onesided.core.errors import ConfigError

RandomState = int | np.random.RandomState | None


def given_settings(parameters: Mapping[str, Any], *, images: bool, seed: int) -> Settings:
    """Return what the user said, in the words of a recipe; `settings` has the last one.

    `folders` and `table` are what the run calls images and numbers of one's own.
    """
    own = parameters["settings"]
    if not isinstance(own, Mapping | None):
        raise ConfigError(
            f'settings is {own!r}; expected a mapping such as {{"train": {{"batch_size": 64}}}}.'
        )
    data = (own or {}).get("data")
    if isinstance(data, Mapping) and "name" in data:
        raise ConfigError(
            f"settings names the data set {data['name']!r}, but X is the data. Leave out the name."
        )
    train = {"device": parameters["device"]}
    if parameters["epochs"] is not None:
        train["epochs"] = _plain(parameters["epochs"])
    flags = {
        "data": {
            "name": "folders" if images else "table",
            "held_out": _plain(parameters["held_out"]),
        },
        "method": {"name": parameters["method"]},
        "backbone": {"name": parameters["backbone"]},
        "train": train,
        "prior": _plain(parameters["prior"]),
        "threshold": _plain(parameters["threshold"]),
        "seed": seed,
    }
    return merge(flags, own or {})


def seed_of(random_state: RandomState) -> int:
    """Return the seed of a run: the number itself, or one drawn as scikit-learn draws."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def checked_minimum(minimum: object) -> int:
    """Return how many positives are the fewest, a whole number from 1 on."""
    if isinstance(minimum, int | np.integer) and minimum >= 1:
        return int(minimum)
    raise ConfigError(f"min_positives is {minimum!r}; expected a whole number from 1 on.")


def _plain(value: object) -> object:
    """Return a number of numpy, as a parameter search draws them, as Python's."""
    return value.item() if isinstance(value, np.generic) else value
