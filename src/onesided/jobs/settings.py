"""From what a person gives to a job, to the settings of a run."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onesided.core.config import Settings, merge
from onesided.core.errors import ConfigError

PathLike = str | Path

GOES_WITH = {
    "--data": ("--root", "--cache"),
    "--table": (
        "--test",
        "--tolerate",
        "--cache",
        "--text",
        "--text-encoder",
        "--group",
        "--sample-weight",
    ),
    "-p and -u": (
        "-p",
        "-u",
        "-n",
        "--test",
        "--tolerate",
        "--cache",
        "--text-encoder",
        "--group",
    ),
}
"""Which flags say something about which kind of data."""


def names_in(given: str | Sequence[str], what: str) -> list[str]:
    """Return names from a list, or from words with commas between them; none is refused."""
    words = given.split(",") if isinstance(given, str) else given
    names = list(dict.fromkeys(word.strip() for word in words if word.strip()))
    if not names:
        raise ConfigError(f"{what} names nothing. Give one name or more, with commas between them.")
    return names


def training_flags(
    *,
    method: str | None,
    backbone: str | None,
    weights: PathLike | None,
    freeze: bool,
    epochs: int | None,
    prior: float | str | None,
    seed: int | None,
) -> dict[str, object]:
    """Return the settings that every training takes as parameters, by their keys."""
    return {
        "method.name": method,
        "backbone.name": backbone,
        "backbone.weights": weights,
        "backbone.freeze": freeze or None,
        "train.epochs": epochs,
        "prior": prior,
        "seed": seed,
    }


def minutes_of(budget: str | float | None) -> float | None:
    """Return the minutes that a budget such as 2min, 20min or 2h means; a number is minutes."""
    if budget is None:
        return None
    match = re.fullmatch(r"\s*([0-9.]+)\s*(s|sec|m|min|h|)\s*", str(budget).lower())
    try:
        number = float(match[1]) if match else 0.0
    except ValueError:
        number = 0.0
    if match is None or not number > 0:
        raise ConfigError(
            f"The budget is {budget!r}; expected a time such as 90s, 2min, 20min or 2h; a "
            "bare number means minutes."
        )
    return number * {"s": 1 / 60, "sec": 1 / 60, "h": 60.0}.get(match[2], 1.0)


def nested(flags: Mapping[str, object]) -> Settings:
    """Return nested settings for the entries that are not None: `train.epochs` to a table."""
    layers = []
    for key, value in flags.items():
        if value is None:
            continue
        setting: Any = str(value) if isinstance(value, Path) else value
        for part in reversed(key.split(".")):
            setting = {part: setting}
        layers.append(setting)
    return merge(*layers)


def data_name(
    data: str | None,
    table: PathLike | None,
    folders: Mapping[str, PathLike | None],
    others: Mapping[str, object],
) -> str | None:
    """Return the name of the data that was given, or say what does not go together."""
    given = [flag for flag, value in {**folders, **others}.items() if value is not None]
    kinds = {"--data": data, "--table": table, "-p and -u": folders["-p"] or folders["-u"]}
    named = [kind for kind, value in kinds.items() if value is not None]
    if len(named) > 1:
        raise ConfigError(
            "Give one kind of data: --data, or --table, or -p with -u; "
            f"got {' beside '.join(named)}."
        )
    if not named:
        return None
    allowed = GOES_WITH[named[0]]
    for flag in given:
        if flag not in allowed:
            fitting = " or ".join(kind for kind, flags in GOES_WITH.items() if flag in flags)
            raise ConfigError(f"{flag} goes with {fitting}, not with {named[0]}. Leave it out.")
    if named[0] != "-p and -u":
        return data or "table"
    for flag, what in (("-p", "positives"), ("-u", "unlabelled items")):
        if folders[flag] is None:
            raise ConfigError(f"Two folders are needed; {flag} FOLDER of {what} is missing.")
    return "folders"


def without_other_settings(from_file: Settings, said: Settings) -> Settings:
    """Return a file's settings without those of a data set or method that is not meant.

    The positive classes of CIFAR-10 mean nothing in CIFAR-100, and Teacher's settings
    are unknown to nnPU.
    """
    kept = dict(from_file)
    for part in ("data", "method", "backbone"):
        old, new = from_file.get(part), said.get(part)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            name = new.get("name", old.get("name"))
            if name != old.get("name"):
                del kept[part]
    return kept
