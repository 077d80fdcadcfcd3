"""`onesided methods`: what there is, and what each asks for."""

from typing import Annotated, Any

import typer

from onesided.cli.options import Json, Names


def methods(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One method, in full.")] = None,
    as_json: Json = False,
    quiet: Names = False,
) -> None:
    """List the methods, or tell all about one of them.

    What each needs (a prior, held-out data, truth), its settings, and how to cite it.

    Example: onesided methods nnpu
    """
    from onesided.cli.show import console, print_json, say
    from onesided.methods import METHODS, method_named

    chosen = [name] if name else list(METHODS)
    cards = {key: _card(key, method_named(key)) for key in chosen}
    if as_json:
        print_json(cards if name is None else cards[name])
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


def _card(key: str, config: Any) -> dict[str, Any]:  # noqa: ANN401 - imported lazily
    card = config.card
    settings = {
        field: {"default": info.default, "meaning": " ".join((info.description or "").split())}
        for field, info in config.model_fields.items()
    }
    needs = [
        need for need in ("prior", "validation", "clean", "truth") if getattr(config.needs, need)
    ]
    return {
        "name": key,
        "title": card.title,
        "summary": card.summary,
        "needs": needs,
        "citation": card.citation,
        "fidelity": card.fidelity,
        "good at": card.good_at,
        "bad at": card.bad_at,
        "variants": dict(card.variants),
        "settings": settings,
    }


def _words(value: Any) -> str:  # noqa: ANN401 - any cell of a card
    if isinstance(value, dict):
        lines = []
        for key, entry in value.items():
            text = f"{entry['meaning']} [{entry['default']}]" if isinstance(entry, dict) else entry
            lines.append(f"\n  {key}: {text}")
        return "".join(lines)
    if isinstance(value, list):
        return ", ".join(value) or "P and U only"
    return str(value)
