"""Variants fill switches, a given switch wins, and what is filled travels with the settings."""

import pytest

from onesided.core.errors import ConfigError
from onesided.methods.base import VariantConfig
from onesided.methods.lagam import LaGAMConfig
from onesided.methods.pico import PiCOConfig
from onesided.methods.wsc import WSCConfig

every_method = pytest.mark.parametrize("config", [PiCOConfig, WSCConfig, LaGAMConfig])


@every_method
def test_the_published_form_is_the_default(config: type[VariantConfig]) -> None:
    assert config() == config.from_settings({"variant": "published"})


@every_method
def test_every_variant_changes_what_it_names_and_nothing_else(config: type[VariantConfig]) -> None:
    published = config().model_dump()
    for name, switches in config.switches.items():
        filled = config.from_settings({"variant": name}).model_dump()
        changed = {key: value for key, value in filled.items() if value != published[key]}
        changed.pop("variant", None)
        assert changed == dict(switches)


@every_method
def test_the_card_describes_every_variant(config: type[VariantConfig]) -> None:
    assert config.card.variants.keys() == config.switches.keys()


def test_a_given_switch_wins_over_the_variant() -> None:
    config = PiCOConfig.from_settings({"variant": "ncpu-paper", "query_view": "strong"})
    assert config.query_view == "strong"
    assert config.classification == "groups"


@every_method
def test_stored_settings_give_the_same_method_back(config: type[VariantConfig]) -> None:
    for name in config.switches:
        stored = config.from_settings({"variant": name})
        assert config.from_settings(stored.model_dump(mode="json")) == stored


def test_an_unknown_variant_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="published"):
        PiCOConfig.from_settings({"variant": "publish"})
