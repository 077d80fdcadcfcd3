"""Configuration: TOML and `--set` in, frozen models out; unknown keys are refused.

TOML, not Python or YAML: it is data and not code, and has no surprises in `no` and `1e3`.
"""

import difflib
import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from datetime import date, time
from pathlib import Path
from typing import Any, ClassVar, Self, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from onesided.core.errors import ConfigError

Settings = dict[str, Any]

LARGEST = 2**63
LONGEST_SHOWN = 200


class Config(BaseModel):
    """Base of every configuration model: frozen, no unknown keys, documented fields."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        validate_default=True,
        allow_inf_nan=False,
    )

    renamed: ClassVar[Mapping[str, str]] = {}
    """Old names of settings, and their new names."""

    @field_validator("*", mode="before")
    @classmethod
    def _fits_sixty_four_bits(cls, value: object) -> object:
        """Refuse a whole number that neither torch nor a float could hold, in any setting."""
        if isinstance(value, int) and abs(value) >= LARGEST:
            raise ValueError("the number is absurdly large")
        return value

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], where: str = "configuration") -> Self:
        """Return the model, or raise one sentence that names the wrong setting."""
        try:
            return cls.model_validate(dict(settings))
        except ValidationError as error:
            raise ConfigError(_one_sentence(cls, error, where)) from None

    def fingerprint(self) -> str:
        """Return 8 hex digits that change when any setting changes."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]


def read_toml(path: Path) -> Settings:
    """Return the settings of a TOML file."""
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise ConfigError(f"There is no configuration file {path}.") from None
    except (ValueError, RecursionError) as error:  # also of integers with thousands of digits
        raise ConfigError(f"{path} is not valid TOML: {error}.") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None


def parse_assignment(text: str) -> Settings:
    """Turn `train.epochs=5` into {"train": {"epochs": 5}}; bare words are strings."""
    key, equals, value = text.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts):
        raise ConfigError(f"--set takes KEY=VALUE, for example train.epochs=5; got {text!r}.")
    parsed: Any = _value_of(value.strip())
    for part in reversed(parts):
        parsed = {part: parsed}
    settings: Settings = parsed
    return settings


def _value_of(text: str) -> object:
    try:
        document = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    # No setting is a date, but a folder may be called 2024-01-31. A value of several lines is
    # text, even if a later line is an assignment.
    is_word = len(document) > 1 or isinstance(document["value"], date | time)
    return text if is_word else document["value"]


def merge(*layers: Mapping[str, Any]) -> Settings:
    """Return one set of settings; later layers win, tables are merged key by key."""
    merged: Settings = {}
    for layer in layers:
        for key, value in layer.items():
            old = merged.get(key)
            both_tables = isinstance(old, Mapping) and isinstance(value, Mapping)
            merged[key] = merge(old, value) if both_tables else value  # type: ignore[arg-type]
    return merged


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ` Did you mean 'x'?` for the nearest known name, or the list of them."""
    names, given = sorted(known), str(name).lower()
    close = difflib.get_close_matches(given, names, n=len(names) or 1, cutoff=0.5)
    if close:
        # Letters in another order are a slip of the fingers; of equally near names it is this one.
        best = max(close, key=lambda one: (_likeness(given, one), sorted(one) == sorted(given)))
        return f" Did you mean '{best}'?"
    return f" Known: {', '.join(names)}."


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other).ratio()


def dump_toml(settings: Mapping[str, Any]) -> str:
    """Return settings as TOML: plain values first, then one `[table]` per nested mapping.

    The standard library reads TOML but does not write it. Our settings are numbers, strings,
    booleans and flat lists, which TOML and JSON write alike. (tomli-w would put every entry of a
    list on a line of its own and refuses None.)
    """
    return "\n".join(_toml_lines(settings, ())) + "\n"


def _toml_lines(settings: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    plain = {k: v for k, v in settings.items() if not isinstance(v, Mapping) and v is not None}
    lines = [f"{_toml_key(key)} = {_toml_value(value)}" for key, value in plain.items()]
    for key, value in settings.items():
        if isinstance(value, Mapping):
            inner = (*path, _toml_key(key))
            lines += ["", f"[{'.'.join(inner)}]", *_toml_lines(value, inner)]
    return lines


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml_value(key)


def _toml_value(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, float):
        return float.__repr__(value)  # JSON writes Infinity and NaN, TOML inf and nan
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ConfigError(
                f"{value!r} is not valid UTF-8, and TOML can hold nothing else. Rename that file "
                "or folder."
            ) from None
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _one_sentence(model: type[BaseModel], error: ValidationError, where: str) -> str:
    first = error.errors()[0]
    location = [str(part) for part in first["loc"]]
    key = ".".join(location) or "settings"
    if first["type"] == "extra_forbidden":
        inner = _model_at(model, location[:-1])
        known = list(inner.model_fields)
        table = f" [{'.'.join(location[:-1])}]" if len(location) > 1 else ""
        renamed = getattr(inner, "renamed", {}).get(location[-1])
        if renamed is not None:
            return f"{where}{table}: '{location[-1]}' is now called {renamed}. Rename it."
        return f"{where}{table}: unknown setting '{location[-1]}'.{nearest(location[-1], known)}"
    message = first["msg"].removeprefix("Value error, ")
    given = first.get("input")
    shown = "" if isinstance(given, Mapping) else f" Got {shortened(given)}."
    return f"{where}: {key}: {message.rstrip('.')}.{shown}"


def shortened(value: object) -> str:
    """Return a value as a message shows it; Python spells no number of thousands of digits."""
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def _model_at(model: type[BaseModel], location: list[str]) -> type[BaseModel]:
    for part in location:
        fields = model.model_fields
        annotation = fields[part].annotation if part in fields else None
        for inner in (annotation, *get_args(annotation)):  # Inner, Inner | None, tuple[Inner, ...]
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                model = inner
    return model
