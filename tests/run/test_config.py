import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onesided.core.config import dump_toml, merge, parse_assignment
from onesided.core.errors import ConfigError
from onesided.data.sources import SOURCES
from onesided.methods import METHODS
from onesided.run.config import (
    OwnConfig,
    RunConfig,
    SetConfig,
    check_prior,
    data_config,
    storable,
)
from onesided.storage.names import original_name

FOLDERS = {"data": {"name": "folders", "positive_folder": "P", "unlabelled_folder": "U"}}


NETWORK = "method.name=teacher"


def configured(*assignments: str) -> RunConfig:
    return RunConfig.from_settings(merge(FOLDERS, *map(parse_assignment, assignments)))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("data", ["folders", "table", "digits", "stl10"])
def test_a_written_configuration_reads_back_as_the_same_run(method: str, data: str) -> None:
    config = RunConfig.from_settings({"data": {"name": data}, "method": {"name": method}})
    text = dump_toml(config.to_settings())
    assert RunConfig.from_settings(tomllib.loads(text)) == config


@pytest.mark.parametrize(
    "assignment",
    [
        "seed=1",
        "prior=0.3",
        "data.held_out=0.3",
        "data.scenario=case-control",
        "data.seed=58",
        "data.image_size=64",
        "method.name=ce",
        "method.entropy_weight=1",
        "backbone.width=0.5",
        "train.epochs=7",
        "train.learning_rate=0.5",
        "train.precision=fp32",
        "train.keep=best",
        "train.keep=best-accuracy",
        "threshold=0.6",
        "threshold=recall=0.9",
    ],
)
def test_whatever_changes_results_changes_the_fingerprint(assignment: str) -> None:
    assert configured(NETWORK, assignment).fingerprint() != configured(NETWORK).fingerprint()


@pytest.mark.parametrize(
    "assignment",
    ["method.minutes=3", "method.folds=3", 'method.also=["ce"]', "threshold=0.5", NETWORK],
)
def test_whatever_changes_a_search_changes_the_fingerprint(assignment: str) -> None:
    assert configured(assignment).fingerprint() != configured().fingerprint()


@pytest.mark.parametrize(
    "assignment",
    [
        "data.positive_folder=elsewhere/P",
        "data.unlabelled_folder=elsewhere/U",
        "data.test_folder=T",
        "train.device=cpu",
        "train.threads=3",
        "train.save_minutes=1",
        "train.tensorboard=true",
        "threshold=0.5",
    ],
)
def test_where_and_how_often_leave_the_fingerprint_alone(assignment: str) -> None:
    assert configured(NETWORK, assignment).fingerprint() == configured(NETWORK).fingerprint()


def test_a_whole_pool_is_another_run_and_one_apart_is_what_runs_always_had() -> None:
    def of(**pool: str) -> RunConfig:
        return RunConfig.from_settings({"data": {"name": "digits", **pool}})

    assert of(pool="whole").fingerprint() != of().fingerprint()
    assert of(pool="apart").fingerprint() == of().fingerprint()


@pytest.mark.parametrize("name", SOURCES)
def test_a_published_set_brings_its_own_numbers(name: str) -> None:
    config, entry = data_config({"name": name}, "here"), SOURCES[name]
    assert isinstance(config, SetConfig)
    assert config.positive_classes == entry.positive_classes
    assert (config.positives, config.unlabelled) == (entry.positives, entry.unlabelled)
    assert config.prior == entry.prior


def test_numbers_that_are_given_win() -> None:
    config = data_config({"name": "digits", "positives": 77, "prior": 0.25}, "here")
    assert isinstance(config, SetConfig)
    assert (config.positives, config.prior) == (77, 0.25)
    assert config.unlabelled == SOURCES["digits"].unlabelled


def test_own_data_takes_no_settings_of_published_sets() -> None:
    with pytest.raises(ConfigError, match="unknown setting 'positives'"):
        data_config({"name": "folders", "positives": 10}, "here")
    assert isinstance(data_config({"name": "table", "table": "x.csv"}, "here"), OwnConfig)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "No data was given"),
        ({"data": {"name": "cifar"}}, "no data set called 'cifar'. Did you mean 'cifar10'"),
        ({"data": {"name": 3}}, "Got 3"),
        ({"data": "digits"}, "data is 'digits', but it is a table of settings"),
        ({**FOLDERS, "train": 3}, "train is 3"),
        ({**FOLDERS, "method": "ce"}, "method.name="),
        ({**FOLDERS, "backbone": []}, "backbone is"),
        ({**FOLDERS, "sed": 3}, "unknown setting 'sed'. Did you mean 'seed'"),
        ({**FOLDERS, "seed": -1}, "The seed is -1"),
        ({**FOLDERS, "seed": True}, "The seed is True"),
        ({**FOLDERS, "seed": "0"}, "The seed is '0'"),
        ({**FOLDERS, "prior": []}, r"The prior is \[\]"),
    ],
)
def test_a_wrong_setting_is_refused_in_one_line(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refusal:
        RunConfig.from_settings(settings)
    assert "\n" not in str(refusal.value)


@given(st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_a_prior_between_0_and_1_is_taken_as_number_or_text(value: float) -> None:
    assert check_prior(value) == check_prior(repr(value)) == value


@given(st.floats().filter(lambda value: not 0 < value < 1))
def test_any_other_number_is_refused_as_a_prior(value: float) -> None:
    for given_as in (value, repr(value)):
        with pytest.raises(ConfigError, match="lies between 0 and 1"):
            check_prior(given_as)


@pytest.mark.parametrize("word", ["auto", "km2", "km1", "truth"])
def test_ways_to_find_a_prior_have_names(word: str) -> None:
    assert check_prior(word) == word


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_paths_in_utf8_are_stored_as_they_are(path: str) -> None:
    assert storable(path) == path


@given(st.binary(min_size=1).filter(lambda name: b"\0" not in name))
def test_any_path_can_be_stored_and_found_again(name: bytes) -> None:
    path = name.decode("utf-8", "surrogateescape")
    stored = storable(path)
    stored.encode("utf-8")
    assert path in (stored, original_name(stored))


def test_a_run_with_paths_that_are_not_utf8_can_be_written() -> None:
    settings = merge(FOLDERS, {"data": {"unlabelled_folder": "not\udcffutf8"}})
    text = dump_toml(RunConfig.from_settings(settings).to_settings())
    again = RunConfig.from_settings(tomllib.loads(text))
    assert isinstance(again.data, OwnConfig)
    assert again.data.unlabelled_folder == "not\\xffutf8"
