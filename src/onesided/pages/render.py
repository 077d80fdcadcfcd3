"""Templates in, HTML or Markdown out. What a template is given is text, unless it is `Markup`."""

import json
import re
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

ZERO_WIDTH_JOINERS = "\u200c\u200d"
"""Invisible, but part of Persian words and of many emoji: kept as they are."""


@cache
def environment() -> Environment:
    """Return the one environment of all pages.

    Everything is escaped, an undefined name is an error, and a template knows nothing but
    what it is given. Templates are named by their path in the package. Text that comes from
    a file passes through the filter `visible`.
    """
    made = Environment(
        loader=PackageLoader("onesided", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.clear()
    made.filters["visible"] = visible
    made.filters["markdown"] = markdown
    made.filters["yaml"] = yaml
    return made


def render(template: str, **values: object) -> Markup:
    """Return a filled template, ready to be put into another one."""
    return Markup(environment().get_template(template).render(values))


def visible(value: object, limit: int = 300) -> str:
    """Return text of bounded length in which every character can be seen.

    Newlines, control characters, reversed writing and bytes that are not UTF-8 are written
    as escapes. With such bytes a page could not even be encoded.
    """
    text = "".join(
        letter if letter.isprintable() or letter in ZERO_WIDTH_JOINERS else _escaped(letter)
        for letter in str(value)
    )
    if len(text) <= limit:
        return text
    # Both ends are kept: the last part of a path matters most, and the first of a sentence.
    return f"{text[: limit // 2]}…{text[-(limit // 2) :]}"


def markdown(value: object, limit: int = 300) -> Markup:
    """Return text that is shown as it is written, in a line or a cell of a Markdown table."""
    marked = re.sub(r"([\\\\`*_\[\]#|~])", r"\\\1", visible(value, limit))
    return Markup(escape(marked))


def yaml(value: object) -> Markup:
    """Return a number or a text as YAML that means just this; in JSON's form, which YAML reads."""
    return Markup(json.dumps(visible(value) if isinstance(value, str) else value))


def _escaped(letter: str) -> str:
    if 0xDC80 <= ord(letter) <= 0xDCFF:  # how Python carries a byte that is not UTF-8
        return f"\\x{ord(letter) - 0xDC00:02x}"
    return letter.encode("unicode_escape").decode("ascii")
