import json

import pytest

from onesided.cli.methods import markdown_page, variant_field
from onesided.methods import choices
from onesided.run.default_method import DEFAULT_METHOD
from tests.cli.command import assert_refused, call


def test_the_list_has_every_method_and_what_it_needs() -> None:
    shown = call("methods")
    assert shown.exit_code == 0
    cards = json.loads(call("methods", "--json").out)
    assert list(cards) == list(choices())
    for name, card in cards.items():
        assert name in shown.out
        assert ("prior" in card["needs"]) == choices()[name].needs.prior


def test_the_quiet_list_is_names_only() -> None:
    assert call("methods", "--quiet").out.split() == list(choices())


@pytest.mark.parametrize("name", choices())
def test_a_card_shows_the_citation_and_every_setting_with_its_meaning(name: str) -> None:
    card = json.loads(call("methods", name, "--json").out)
    assert card["citation"]
    assert set(card["settings"]) == set(choices()[name].model_fields)
    assert all(setting["meaning"] for setting in card["settings"].values())
    shown = call("methods", name).out
    assert card["citation"] in shown
    for setting in card["settings"]:
        assert f"  {setting}: " in shown


@pytest.mark.parametrize("name", choices())
def test_a_card_shows_every_number_that_the_method_logs(name: str) -> None:
    logs = json.loads(call("methods", name, "--json").out)["logs"]
    assert set(logs) == set(choices()[name].card.logs)
    shown, page = call("methods", name).out, call("methods", name, "--markdown").out
    for key, entry in logs.items():
        assert f"  {key}: {entry['title']}. {entry['note']}" in shown
        assert f"| `{key}` | {entry['title']} | {entry['note']} |" in page


@pytest.mark.parametrize(("name", "nearest"), [("ncpo", "ncpu"), ("super", "supervised")])
def test_an_unknown_method_gets_the_nearest_name(name: str, nearest: str) -> None:
    assert_refused(call("methods", name), f"'{name}'", f"Did you mean '{nearest}'?")


@pytest.mark.parametrize("name", choices())
def test_no_field_of_a_card_is_empty_and_sentences_end(name: str) -> None:
    card = json.loads(call("methods", name, "--json").out)
    for field in ("summary", "good at", "bad at", "fidelity", "citation", "licence"):
        assert len(card[field]) > 20, field
        assert card[field].endswith("."), field
    whose = ("Authors' code: ", "A formula of textbooks; nobody's code.", "Ours, under Apache-2.0")
    assert card["licence"].startswith(whose)
    assert card["known negatives"]
    # Without a publication or a network there may be nothing to vary; one variant alone is none.
    assert len(card["variants"]) >= 2 or (not card["variants"] and "Ours" in card["licence"])
    assert all(card["variants"].values())


@pytest.mark.parametrize("name", choices())
def test_every_variant_of_a_card_can_be_chosen_by_the_setting_it_names(name: str) -> None:
    config = choices()[name]
    for variant in config.card.variants:
        field = variant_field(config)
        assert getattr(config.from_settings({field: variant}), field) == variant


def test_the_default_stands_first() -> None:
    assert call("methods", "--quiet").out.split()[0] == DEFAULT_METHOD


def test_the_page_shows_every_method_its_needs_and_every_setting() -> None:
    page = call("methods", "--markdown").out
    for name, config in choices().items():
        section = page.partition(f"\n## {config.card.title}\n")[2].partition("\n## ")[0]
        assert config.card.summary in section
        assert config.card.licence in section
        assert ("share of positives among" in section) == config.needs.prior, name
        for setting in config.model_fields:
            assert f"| `{setting}` |" in section


def test_a_bar_in_a_meaning_does_not_break_the_table() -> None:
    card = json.loads(call("methods", "ce", "--json").out)
    card["settings"] = {"one": {"default": True, "meaning": "this | that"}}
    assert "| `one` | `true` | this \\| that |" in markdown_page({"ce": card})
