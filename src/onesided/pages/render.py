"""Templates in, HTML out. Whatever a template is given is text unless it is `Markup`."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


@cache
def environment() -> Environment:
    """Return the one environment of all pages.

    Everything is escaped, a name that was not given is an error, and a template knows
    nothing but what it is given. Templates are named by their path in the package.
    """
    made = Environment(
        loader=PackageLoader("onesided", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.clear()
    return made


def render(template: str, **values: object) -> Markup:
    """Return a filled template, ready to be put into another one."""
    return Markup(environment().get_template(template).render(values))
