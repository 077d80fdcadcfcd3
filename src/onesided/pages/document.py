"""A whole page in one file. It runs no script but its own, and loads nothing by itself."""

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from markupsafe import Markup

from onesided.pages.render import render

STYLE = "pages/style.css"
"""The style tokens and rules that all pages share."""


def document(
    template: str,
    *,
    title: str,
    style: str,
    scripts: Sequence[str] = (),
    style_attributes: bool = False,
    loads_scripts: bool = False,
    image_hosts: Sequence[str] = (),
    talks_to_server: bool = False,
    **values: object,
) -> str:
    """Return a page as HTML, the same text for the same values.

    Args:
        template: Path in the package of a template that extends `pages/base.html`.
        style: Path of the page's own style sheet.
        scripts: Paths of scripts that become one: later ones use what earlier ones define.
        style_attributes: Whether elements carry `style=`, as those of plots do.
        loads_scripts: Whether the page's script loads others that lie beside the page.
        image_hosts: Addresses that pictures may come from.
        talks_to_server: Whether the page asks the server that it came from, and shows its pictures.
    """
    styles, script = _joined([STYLE, style]), _joined(scripts)
    policy = content_security_policy(
        styles,
        script,
        style_attributes=style_attributes,
        loads_scripts=loads_scripts,
        image_hosts=image_hosts,
        talks_to_server=talks_to_server,
    )
    return render(template, title=title, style=styles, script=script, policy=policy, **values)


def content_security_policy(
    style: str,
    script: str,
    *,
    style_attributes: bool = False,
    loads_scripts: bool = False,
    image_hosts: Sequence[str] = (),
    talks_to_server: bool = False,
) -> str:
    """Return a policy that allows only this style, this script, and `data:` images.

    A policy has no hash for attributes, so with them any style that is inside the page applies.
    With `loads_scripts` this script may add others; a script element in the page's markup, which
    is what an attacker could add, still may not ('strict-dynamic'). With `talks_to_server` it may
    ask its own server, and nobody else.
    """
    styles = "unsafe-inline" if style_attributes else _hash(style)
    scripts = _hash(script) if script else "none"
    dynamic = " 'strict-dynamic'" if loads_scripts else ""
    rules = [
        "default-src 'none'",
        " ".join(["img-src data:", *(["'self'"] if talks_to_server else []), *image_hosts]),
        *(["connect-src 'self'"] if talks_to_server else []),
        f"style-src '{styles}'",
        f"script-src '{scripts}'{dynamic}",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join(rules)


def _joined(paths: Sequence[str]) -> Markup:
    package = files("onesided")
    return Markup("\n".join(package.joinpath(path).read_text("utf-8") for path in paths))


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
