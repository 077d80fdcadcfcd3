import json

import pytest

from onesided.methods import METHODS
from tests.cli.command import assert_refused, call


def test_the_list_has_every_method_and_what_it_needs() -> None:
    shown = call("methods")
    assert shown.exit_code == 0
    cards = json.loads(call("methods", "--json").out)
    assert list(cards) == list(METHODS)
    for name, card in cards.items():
        assert name in shown.out
        assert ("prior" in card["needs"]) == METHODS[name].needs.prior


def test_the_quiet_list_is_names_only() -> None:
    assert call("methods", "--quiet").out.split() == list(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_a_card_tells_the_citation_and_every_setting_with_its_meaning(name: str) -> None:
    card = json.loads(call("methods", name, "--json").out)
    assert card["citation"]
    assert set(card["settings"]) == set(METHODS[name].model_fields)
    assert all(setting["meaning"] for setting in card["settings"].values())
    shown = call("methods", name).out
    assert card["citation"] in shown
    for setting in card["settings"]:
        assert f"  {setting}: " in shown


@pytest.mark.parametrize(("name", "nearest"), [("ncpo", "ncpu"), ("super", "supervised")])
def test_an_unknown_method_gets_the_nearest_name(name: str, nearest: str) -> None:
    assert_refused(call("methods", name), f"'{name}'", f"Did you mean '{nearest}'?")
