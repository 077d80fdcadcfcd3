"""`onesided methods`: the methods, what each needs, its settings and what it logs."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from onesided.cli.options import Json, Names

if TYPE_CHECKING:
    from onesided.methods.base import MethodConfig

NEEDS = {
    "prior": "the share of positives among the unlabelled items (`--prior`, else estimated)",
    "held_out": "held-out positives and unlabelled items",
    "clean": "a few items of known class, of both classes",
    "truth": "the true class of every training item",
}
"""What a method must be given beyond positives and unlabelled items, in words."""

ONLY_P_AND_U = "positives and unlabelled items only"
NEGATIVES = {
    True: "used in training, as certain negatives",
    False: "not used in training, only to measure false alarms",
}

HEAD = """# Methods

This page is generated from the code by `onesided methods --markdown`. In a terminal,
`onesided methods teacher` prints the same about one method. Start with the default, auto, which
tries several of them on your data and keeps the best. `--compare` adds methods to what it tries.
Teacher is ours, a network made for runs of minutes to hours. NcPU is the method of the paper, and
needs days. Measured results are in [benchmarks](benchmarks/methods.md). Differences between papers
and released code are in [differences](differences.md).

Methods of publications are written from these and from descriptions, under Apache-2.0. The line
*Licence* names the terms of the authors' own code, for readers who want to use it.
"""

LOG_TABLE = """
<details>
<summary>Log</summary>

| in `log.jsonl` | title in the report | meaning |
|---|---|---|
{rows}
</details>
"""


def methods(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="One method, in detail.")
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the page docs/methods.md.")
    ] = False,
    as_json: Json = False,
    quiet: Names = False,
) -> None:
    """List the methods, or describe one of them.

    What each needs (a prior, held-out data, truth), its settings, what it logs, how to cite it.

    Example: onesided methods nnpu
    """
    from onesided.cli.show import console, print_json, say
    from onesided.methods import choices, method_named

    chosen = [name] if name else list(choices())
    cards = {key: card_of(key, method_named(key)) for key in chosen}
    if as_json:
        print_json(cards if name is None else cards[name])
    elif markdown:
        typer.echo(markdown_page(cards), nl=False)
    elif quiet:
        say("\n".join(cards))
    elif name:
        for key, value in cards[name].items():
            say(f"{key}: {_words(value)}")
    else:
        from rich.table import Table

        table = Table()
        for column in ("method", "needs", "what it does"):
            table.add_column(column)
        for key, card in cards.items():
            table.add_row(key, ", ".join(card["needs"]) or "P and U only", card["summary"])
        console.print(table)


def card_of(key: str, config: "type[MethodConfig]") -> dict[str, Any]:
    """Return the card of a method and its settings, as plain values."""
    card = config.card
    settings = {
        field: {
            "default": info.get_default(call_default_factory=True, validated_data={}),
            "meaning": " ".join((info.description or "").split()),
        }
        for field, info in config.model_fields.items()
    }
    return {
        "name": key,
        "title": card.title,
        "summary": card.summary,
        "needs": [need for need in NEEDS if getattr(config.needs, need)],
        "known negatives": NEGATIVES[config.uses_negatives],
        "good at": card.good_at,
        "bad at": card.bad_at,
        "variants": dict(card.variants),
        "variant setting": f"method.{variant_field(config)}" if card.variants else None,
        "fidelity": card.fidelity,
        "citation": card.citation,
        "licence": card.licence,
        "settings": settings,
        "logs": {name: asdict(logged) for name, logged in card.logs.items()},
    }


def variant_field(config: "type[MethodConfig]") -> str:
    """Return the setting whose values are the variants of the card, which has some."""
    names = set(config.card.variants)
    fields = config.model_fields.items()
    (field,) = [key for key, info in fields if names <= set(get_args(info.annotation))]
    return field


def _words(value: Any) -> str:  # noqa: ANN401 - any cell of a card
    match value:
        case {"meaning": meaning, "default": default}:
            return f"{meaning} [{default}]"
        case {"title": title, "note": note}:
            return f"{title}. {note}"
        case dict():
            return "".join(f"\n  {key}: {_words(entry)}" for key, entry in value.items()) or "none"
        case list():
            return ", ".join(value) or "P and U only"
        case _:
            return str(value)


def markdown_page(cards: Mapping[str, Mapping[str, Any]]) -> str:
    """Return all cards as one page: a table to choose from, then one section each."""
    rows = "".join(
        f"| [{card['title']}](#{card['title'].lower()}) | `{key}` | "
        f"{', '.join(card['needs']) or 'nothing'} | {card['summary']} |\n"
        for key, card in cards.items()
    )
    table = (
        f"| method | `--method` | needs beyond P and U | what it does |\n|---|---|---|---|\n{rows}"
    )
    return "\n".join([HEAD, table, *map(_section, cards.values())])


def _section(card: Mapping[str, Any]) -> str:
    needs = "; ".join(NEEDS[need] for need in card["needs"]) or ONLY_P_AND_U
    variants = "".join(
        f"\n  - `--set {card['variant setting']}={name}`: {meaning}"
        for name, meaning in card["variants"].items()
    )
    variants = variants or " none."
    settings = "".join(
        f"| `{name}` | `{_plain(setting['default'])}` | {_cell(setting['meaning'])} |\n"
        for name, setting in card["settings"].items()
    )
    logged = "".join(
        f"| `{name}` | {_cell(entry['title'])} | {_cell(entry['note'])} |\n"
        for name, entry in card["logs"].items()
    )
    return (
        f"## {card['title']}\n\n{card['summary']}\n\n"
        f"- **Needs**: {needs}.\n"
        f"- **Known negatives** (`-n`): {card['known negatives']}.\n"
        f"- **Good at**: {card['good at']}\n"
        f"- **Bad at**: {card['bad at']}\n"
        f"- **Variants**:{variants}\n"
        f"- **Fidelity**: {card['fidelity']}\n"
        f"- **Citation**: {card['citation']}\n"
        f"- **Licence**: {card['licence']}\n\n"
        "<details>\n<summary>Settings</summary>\n\n"
        f"| `method.` | default | meaning |\n|---|---|---|\n{settings}\n</details>\n"
    ) + (logged and LOG_TABLE.format(rows=logged))


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
