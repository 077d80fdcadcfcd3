"""Settings in, frozen models out; and one sentence for every mistake."""

import math
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError, field_validator

from onesided.core.config import (
    Config,
    Settings,
    dump_toml,
    merge,
    nearest,
    parse_assignment,
    read_toml,
)
from onesided.core.errors import ConfigError


class Alignment(Config):
    """A table inside the settings."""

    alignment_weight: float = 50.0
    """Weight of the alignment loss."""
    kind: str = "robust"
    """Which loss."""


class Recipe(Config):
    """Settings with one of each kind of value."""

    epochs: int = Field(default=1300, ge=1)
    """Passes over the data."""
    learning_rate: float = Field(default=1e-3, gt=0)
    """Learning rate."""
    name: str = "ncpu"
    """Name."""
    nesterov: bool = False
    """Whether to look ahead."""
    classes: tuple[int, ...] = (0, 1)
    """Class indices."""
    prior: float | None = None
    """Share of positives."""
    alignment: Alignment = Alignment()
    """The alignment branch."""
    warmup: Alignment | None = None
    """Another one, before the first."""
    branches: tuple[Alignment, ...] = ()
    """Any number of them."""

    @field_validator("name")
    @classmethod
    def _is_a_word(cls, name: str) -> str:
        if not name.isidentifier():
            raise ValueError("a name is one word.")
        return name


CHANGES: list[tuple[str, Any]] = [
    ("epochs", 5),
    ("learning_rate", 0.1),
    ("name", "nnpu"),
    ("nesterov", True),
    ("classes", (0, 1, 8, 9)),
    ("prior", 0.4),
    ("alignment", {"alignment_weight": 20}),
    ("warmup", {}),
    ("branches", [{}]),
]


def test_no_settings_give_the_defaults() -> None:
    assert Recipe.from_settings({}) == Recipe()


@pytest.mark.parametrize(("key", "value"), CHANGES)
def test_a_setting_arrives(key: str, value: object) -> None:
    recipe = Recipe.from_settings({key: value})
    assert recipe != Recipe()
    assert recipe == Recipe(**{key: value})


def test_a_model_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Recipe().epochs = 3  # type: ignore[misc]


def test_the_docstring_under_a_field_describes_it() -> None:
    assert Recipe.model_fields["epochs"].description == "Passes over the data."


def test_defaults_are_validated_too() -> None:
    class Impossible(Config):
        share: float = Field(default=2.0, le=1)

    with pytest.raises(ConfigError, match="share: Input should be less than or equal to 1"):
        Impossible.from_settings({})


def test_equal_settings_have_equal_fingerprints() -> None:
    given_by_hand = Recipe.from_settings({"epochs": 1300, "learning_rate": 0.001})
    assert given_by_hand.fingerprint() == Recipe().fingerprint()


def test_a_fingerprint_is_8_hex_digits() -> None:
    fingerprint = Recipe().fingerprint()
    assert len(fingerprint) == 8
    assert int(fingerprint, 16) >= 0


def test_any_change_changes_the_fingerprint() -> None:
    changed = [Recipe.from_settings({key: value}) for key, value in CHANGES]
    fingerprints = {recipe.fingerprint() for recipe in (Recipe(), *changed)}
    assert len(fingerprints) == 1 + len(CHANGES)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"epoch": 5}, "recipe.toml: unknown setting 'epoch'. Did you mean 'epochs'?"),
        (
            {"alignment": {"aligment_weight": 20}},
            "recipe.toml [alignment]: unknown setting 'aligment_weight'. "
            "Did you mean 'alignment_weight'?",
        ),
        (
            {"warmup": {"knd": "self"}},
            "recipe.toml [warmup]: unknown setting 'knd'. Did you mean 'kind'?",
        ),
        (
            {"branches": [{}, {"knd": "self"}]},
            "recipe.toml [branches.1]: unknown setting 'knd'. Did you mean 'kind'?",
        ),
        (
            {"alignment": {"xyz": 20}},
            "recipe.toml [alignment]: unknown setting 'xyz'. Known: alignment_weight, kind.",
        ),
        (
            {"epochs": "many"},
            "recipe.toml: epochs: Input should be a valid integer, unable to parse string as "
            "an integer. Got 'many'.",
        ),
        (
            {"epochs": 0},
            "recipe.toml: epochs: Input should be greater than or equal to 1. Got 0.",
        ),
        (
            {"learning_rate": math.nan},
            "recipe.toml: learning_rate: Input should be a finite number. Got nan.",
        ),
        (
            {"alignment": {"alignment_weight": math.inf}},
            "recipe.toml: alignment.alignment_weight: Input should be a finite number. Got inf.",
        ),
        ({"name": "two words"}, "recipe.toml: name: a name is one word. Got 'two words'."),
        (
            {"classes": [0, "one"]},
            "recipe.toml: classes.1: Input should be a valid integer, unable to parse string "
            "as an integer. Got 'one'.",
        ),
    ],
)
def test_a_wrong_setting_is_named_with_its_place_and_remedy(
    settings: Settings, sentence: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        Recipe.from_settings(settings, "recipe.toml")
    assert str(caught.value) == sentence


def test_several_mistakes_are_reported_one_at_a_time() -> None:
    with pytest.raises(ConfigError) as caught:
        Recipe.from_settings({"epochs": 0, "learning_rate": -1, "nme": "x"})
    assert str(caught.value).count("\n") == 0
    assert "learning_rate" not in str(caught.value)


def test_a_missing_setting_is_named_without_repeating_all_others() -> None:
    class Complete(Config):
        positives: int
        unlabelled: int

    with pytest.raises(ConfigError) as caught:
        Complete.from_settings({"unlabelled": 7})
    assert str(caught.value) == "configuration: positives: Field required."


def test_pydantics_own_traceback_is_not_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        Recipe.from_settings({"epochs": 0})
    assert caught.value.__suppress_context__


def test_nearest_suggests_or_lists() -> None:
    assert nearest("cifar", ["cifar10", "digits"]) == " Did you mean 'cifar10'?"
    assert nearest("xbd", ["digits", "cifar10"]) == " Known: cifar10, digits."
    assert nearest("NCPU", ["ncpu", "nnpu"]) == " Did you mean 'ncpu'?"
    assert nearest("npcu", ["ncpu", "nnpu", "upu"]) == " Did you mean 'ncpu'?"


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("seed=3", {"seed": 3}),
        ("train.epochs=5", {"train": {"epochs": 5}}),
        ("a.b.c=-1", {"a": {"b": {"c": -1}}}),
        ("train.epochs = 5 ", {"train": {"epochs": 5}}),
        ("x=1_000", {"x": 1000}),
        ("x=0.4", {"x": 0.4}),
        ("x=1e-3", {"x": 0.001}),
        ("x=1e3", {"x": 1000.0}),
        ("x=true", {"x": True}),
        ("x=false", {"x": False}),
        ("x=[0, 1, 8]", {"x": [0, 1, 8]}),
        ('x=["a", "b"]', {"x": ["a", "b"]}),
        ("x=[]", {"x": []}),
        ("x=nnpu", {"x": "nnpu"}),
        ('x="5"', {"x": "5"}),
        ("x='a\"b'", {"x": 'a"b'}),
        ("x=no", {"x": "no"}),
        ("x=True", {"x": "True"}),
        ("x=two words", {"x": "two words"}),
        ("x=a=b", {"x": "a=b"}),
        ("x=über/größe", {"x": "über/größe"}),
        (r"x=C:\data", {"x": r"C:\data"}),
        ("x=[1, 2", {"x": "[1, 2"}),
        ("x=2024-01-31", {"x": "2024-01-31"}),
        ("x=07:30:00", {"x": "07:30:00"}),
        ("x=1\ny=2", {"x": "1\ny=2"}),
        ("x=", {"x": ""}),
    ],
)
def test_a_value_is_what_toml_says_and_a_bare_word_a_string(text: str, settings: Settings) -> None:
    parsed = parse_assignment(text)
    assert parsed == settings
    assert repr(parsed) == repr(settings)  # 1 is not True and not 1.0


@pytest.mark.parametrize("text", ["", "train.epochs", "=5", " =5", "a..b=1", ".a=1", "a.=1"])
def test_what_is_no_assignment_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match=r"KEY=VALUE, for example train.epochs=5; got "):
        parse_assignment(text)


@given(st.text())
def test_any_text_is_an_assignment_or_a_config_error(text: str) -> None:
    try:
        settings = parse_assignment(text)
    except ConfigError:
        assert "=" not in text or not all(text.split("=")[0].strip().split("."))
    else:
        assert len(settings) == 1


def test_tables_are_merged_and_values_replaced() -> None:
    merged = merge(
        {"seed": 0, "train": {"epochs": 5, "lr": 0.1}, "data": {"name": "digits"}},
        {"train": {"epochs": 7}, "method": {"name": "ncpu"}},
        {"seed": 2},
    )
    assert merged == {
        "seed": 2,
        "train": {"epochs": 7, "lr": 0.1},
        "data": {"name": "digits"},
        "method": {"name": "ncpu"},
    }


def test_tables_are_merged_at_any_depth() -> None:
    assert merge({"a": {"b": {"c": 1}}}, {"a": {"b": {"d": 2}}}) == {"a": {"b": {"c": 1, "d": 2}}}


def test_lists_are_replaced_as_a_whole() -> None:
    assert merge({"classes": [0, 1, 2]}, {"classes": [3]}) == {"classes": [3]}


def test_a_table_and_a_value_replace_each_other() -> None:
    assert merge({"prior": 0.4}, {"prior": {"kind": "km2"}}) == {"prior": {"kind": "km2"}}
    assert merge({"prior": {"kind": "km2"}}, {"prior": 0.4}) == {"prior": 0.4}


def test_the_layers_stay_as_they_were() -> None:
    below: Settings = {"train": {"epochs": 5}}
    above: Settings = {"train": {"lr": 0.1}}
    merge(below, above)
    assert (below, above) == ({"train": {"epochs": 5}}, {"train": {"lr": 0.1}})


def test_nothing_merges_to_nothing() -> None:
    assert merge() == {}


scalars = st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
values = scalars | st.lists(scalars, max_size=3)
tables = st.recursive(
    st.dictionaries(st.text(), values, max_size=4),
    lambda inner: st.dictionaries(st.text(), values | inner, max_size=4),
    max_leaves=8,
)


@given(tables)
def test_settings_survive_the_round_trip(settings: Settings) -> None:
    read = tomllib.loads(dump_toml(settings))
    assert read == settings
    assert _kinds(read) == _kinds(settings)


@pytest.mark.parametrize(
    "text",
    ['"', "'", "\\", "a\nb", "\t", "\r", "\x00", "\x1b", "\x7f", "\u2028", "größe", "火", "🔥"],
)
def test_strings_survive_whatever_they_hold(text: str) -> None:
    assert tomllib.loads(dump_toml({"path": text, "paths": [text]})) == {
        "path": text,
        "paths": [text],
    }


@pytest.mark.parametrize(
    "number", [0.0, 1.0, 1e-5, 1e22, 1e-320, 0.1, math.pi, math.inf, -math.inf]
)
def test_floats_stay_floats_to_the_bit(number: float) -> None:
    read = tomllib.loads(dump_toml({"number": number}))["number"]
    assert (type(read), read) == (float, number)


def test_not_a_number_stays_one() -> None:
    assert math.isnan(tomllib.loads(dump_toml({"number": math.nan}))["number"])


def test_tuples_become_lists() -> None:
    assert tomllib.loads(dump_toml({"classes": (0, 1)})) == {"classes": [0, 1]}


def test_what_is_not_set_is_not_written() -> None:
    assert tomllib.loads(dump_toml({"prior": None, "data": {"root": None}})) == {"data": {}}


def test_plain_values_stand_above_tables() -> None:
    text = dump_toml({"train": {"epochs": 5}, "seed": 3})
    assert text == "seed = 3\n\n[train]\nepochs = 5\n"


def test_bytes_that_are_no_text_are_refused_with_a_sentence() -> None:
    not_utf8 = b"dam\xff".decode("utf-8", "surrogateescape")
    with pytest.raises(ConfigError, match=r"'dam\\udcff' is not valid UTF-8.*Rename"):
        dump_toml({"data": {"positive_folder": not_utf8}})


def test_a_model_survives_its_file(tmp_path: Path) -> None:
    recipe = Recipe.from_settings({"epochs": 3, "classes": [4], "warmup": {"kind": "self"}})
    path = tmp_path / "config.toml"
    settings = recipe.model_dump(mode="json", exclude={"branches"})
    path.write_text(dump_toml(settings), encoding="utf-8")
    assert Recipe.from_settings(read_toml(path)) == recipe


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    with pytest.raises(ConfigError, match=r"There is no configuration file .*recipe\.toml\."):
        read_toml(path)


def test_a_folder_is_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_toml(tmp_path)


@pytest.mark.parametrize("content", [b"epochs: 5", b"a = 1\na = 2", b"name = '\xff'"])
def test_a_file_that_is_no_toml_is_named_with_the_reason(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "recipe.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"recipe\.toml is not valid TOML: .+\."):
        read_toml(path)


def _kinds(value: object) -> object:
    """The types of all values, because True == 1 == 1.0."""
    if isinstance(value, dict):
        return {key: _kinds(inner) for key, inner in value.items()}
    return [_kinds(item) for item in value] if isinstance(value, list) else type(value)
