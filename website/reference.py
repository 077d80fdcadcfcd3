"""References that are generated from the code: commands, settings, API, glossary."""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typer.testing import CliRunner

import onesided
from onesided.cli import app
from onesided.cli.methods import card_of
from onesided.methods import choices, method_named
from website.places import ADDRESS, OUTSIDE

DOCS = Path(__file__).parents[1] / "docs"
LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")
PARTS = {
    "Figures without negatives": ["onesided.metrics.pu", "onesided.metrics.figure"],
    "Probabilities": ["onesided.metrics.calibration"],
    "Audits": ["onesided.metrics.audit"],
    "Class priors": ["onesided.priors.km2", "onesided.priors.bbe", "onesided.priors.elkan_noto"],
    "Losses": [
        *("onesided.losses.alignment", "onesided.losses.risk", "onesided.losses.classification"),
        *("onesided.losses.distribution", "onesided.losses.variational"),
    ],
    "The contract of methods": ["onesided.methods.base", "onesided.core.batch"],
    "Errors": ["onesided.core.errors"],
}
"""Parts of the library that are useful alone, by title."""


def moved(text: str, source: str, page: str) -> str:
    """Return a file of the repository with links that hold where the site has it."""

    def link(found: re.Match[str]) -> str:
        start, target, end = found.groups()
        place = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        home = posixpath.dirname(page)
        if place in OUTSIDE:
            return f"{start}{posixpath.relpath(OUTSIDE[place], home)}{end}"
        if place.startswith("docs/") and (DOCS.parent / place).is_file():
            return f"{start}{posixpath.relpath(place.removeprefix('docs/'), home)}{end}"
        return f"{start}{ADDRESS}/{place}{end}"

    return LINK.sub(link, text)


def commands() -> str:
    """Return the help of every command, as the terminal shows it."""
    text = [
        "# Commands",
        "",
        "Generated from the commands themselves; `--help` prints the same.",
        "",
    ]
    for words in command_names():
        shown = CliRunner().invoke(app, [*words, "--help"], prog_name="onesided")
        if shown.exit_code:
            raise RuntimeError(f"onesided {' '.join(words)} --help failed: {shown.output}")
        text += [f"## onesided {' '.join(words)}", "", "```text", shown.output.strip(), "```", ""]
    return "\n".join(text)


def command_names() -> Iterator[list[str]]:
    """Yield every command as words, those of groups too."""
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        below = getattr(command, "commands", None)
        yield from ([[name, verb] for verb in below] if below else [[name]])


def settings() -> str:
    """Return every setting that `--set` and config.toml know, from the models."""
    from onesided.engine.train_config import TrainConfig
    from onesided.nets.build import BackboneConfig
    from onesided.run.config import ChipsConfig, OwnConfig, SetConfig

    head = (
        "# Settings\n\nGenerated from the models. `--set KEY=VALUE` changes one, and `config.toml` "
        "of a run folder holds all of them. Settings of a method begin with `method.`\n"
    )
    tables: dict[str, tuple[str, type[BaseModel]]] = {
        "Training": ("train", TrainConfig),
        "Backbone": ("backbone", BackboneConfig),
        "Your own folders and tables": ("data", OwnConfig),
        "Published data sets": ("data", SetConfig),
        "Buildings of a map": ("data", ChipsConfig),
    }
    parts = [_table(title, prefix, model) for title, (prefix, model) in tables.items()]
    methods = [_method(key) for key in choices()]
    return "\n".join([head, *parts, "## Methods\n", *methods])


def _table(title: str, prefix: str, model: type[BaseModel]) -> str:
    rows = [
        (f"{prefix}.{name}", _given(field), field.description)
        for name, field in model.model_fields.items()
    ]
    return f"## {title}\n\n{' '.join((model.__doc__ or '').split())}\n\n{_rows(rows)}"


def _method(key: str) -> str:
    card = card_of(key, method_named(key))
    rows = [
        (f"method.{name}", one["default"], one["meaning"]) for name, one in card["settings"].items()
    ]
    return f"### {card['title']}\n\n{_rows(rows) if rows else 'It has no settings.'}\n"


def _rows(rows: list[tuple[str, object, str | None]]) -> str:
    lines = [
        f"| `{name}` | `{_default(default)}` | {_cell(words)} |" for name, default, words in rows
    ]
    return "\n".join(["| setting | default | meaning |", "|---|---|---|", *lines, ""])


def _given(field: FieldInfo) -> object:
    return field.get_default(call_default_factory=True, validated_data={})


def _default(value: object) -> str:
    if str(value) == "PydanticUndefined":
        return "must be given"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|").replace("<", "&lt;")


def api() -> str:
    """Return the API reference: the public names, then the parts that are useful alone."""
    text = ["# Python API", "", "Generated from the docstrings.", "", "## Whole jobs", ""]
    for name in (name for name in onesided.__all__ if not name.startswith("_")):
        text += [f"::: {onesided._HOMES[name]}.{name}", "    options: {heading_level: 3}", ""]
    for title, modules in PARTS.items():
        text += [f"## {title}", ""]
        for module in modules:
            text += [f"::: {module}", "    options: {heading_level: 3}", ""]
    return "\n".join(text)


def glossary() -> str:
    """Return the glossary of docs/design.md as a page of its own."""
    page = (DOCS / "design.md").read_text(encoding="utf-8")
    section = page.partition("## Glossary\n")[2].partition("\n## ")[0]
    if "|" not in section:
        raise RuntimeError("docs/design.md has no section Glossary with a table.")
    return f"# Glossary\n{section}\n"
