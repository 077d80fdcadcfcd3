"""What mkdocs calls while it builds: navigation by person, links, formulas and pictures.

The Markdown of docs/ is written for readers of the repository. Here links that leave docs/ become
pages of the site or addresses in the repository, `$...$` becomes MathML, which browsers show
without a script, and `<!-- picture: NAME -->` becomes a picture that `website/pictures.py` draws.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

import latex2mathml.converter
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

from website.places import ADDRESS, OUTSIDE

DOCS = Path(__file__).parents[1] / "docs"

Nav = list[dict[str, "str | Nav"]]

PEOPLE: dict[str, list[tuple[str, str]]] = {
    "Start": [
        ("onesided", "index.md"),
        ("Quickstart", "quickstart.md"),
        ("PU learning in one page", "concepts.md"),
        ("Questions and answers", "faq.md"),
        ("Glossary", "reference/glossary.md"),
    ],
    "Analyst": [
        ("Map damaged buildings", "damage-mapping.md"),
        ("Look through a ranking", "review.md"),
        ("Check by a sample", "audit.md"),
        ("Did it work?", "evaluation.md"),
    ],
    "Practitioner": [
        ("What the default does", "auto.md"),
        ("Large data", "scale.md"),
        ("Export a model", "export.md"),
        ("Serve a model", "serve.md"),
        ("What training reaches", "results.md"),
        ("What it costs", "cost.md"),
        ("Promises about files", "promises.md"),
    ],
    "Researcher": [
        ("Method cards", "methods.md"),
        ("Papers and released code", "differences.md"),
        ("Theory of NcPU", "theory.md"),
        ("What was tried", "laboratory.md"),
        ("How to cite", "citing.md"),
    ],
    "Python": [
        ("From Python", "python.md"),
        ("Design", "design.md"),
        ("Contribute", "project/contributing.md"),
    ],
}
"""Section to its pages; one that docs/ does not have yet is left out."""
REFERENCE = [
    ("Commands", "reference/commands.md"),
    ("Settings", "reference/settings.md"),
    ("Python API", "reference/api.md"),
]
GENERATED = {path for _, path in REFERENCE} | {"reference/glossary.md"} | set(OUTSIDE.values())
FENCE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$\n][^$]*?)\$", re.DOTALL)
PICTURE = re.compile(r"<!-- picture: (?P<name>\w+), (?P<words>[^>]+) -->")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Build the navigation; a page of docs/ that no section names is put under "More"."""
    config.nav = navigation()
    config.watch.append(str(Path(__file__).parent))
    return config


def navigation() -> Nav:
    """Return sections by person, then tutorials, benchmarks, reference and project."""
    nav: Nav = [
        {section: [{title: path} for title, path in pages if _exists(path)]}
        for section, pages in PEOPLE.items()
    ]
    named = {path for pages in PEOPLE.values() for _, path in pages}
    more = sorted({path.name for path in DOCS.glob("*.md")} - named)
    tutorials = [(_title(path), f"tutorials/{path.stem}.md") for path in _tutorials()]
    measured = sorted(DOCS.glob("benchmarks/*.md"))
    project = [(path.stem.capitalize(), path.as_posix()) for path in map(Path, OUTSIDE.values())]
    nav += [
        {"Tutorials": [{title: path} for title, path in tutorials]},
        {"Benchmarks": [{_title(path): f"benchmarks/{path.name}"} for path in measured]},
        {"Reference": [{title: path} for title, path in REFERENCE]},
        {"Project": [{t: path} for t, path in project if t != "Contributing"]},
    ]
    if more:
        nav.append({"More": [{_title(DOCS / name): name} for name in more]})
    return nav


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the page with links, formulas and pictures as the site shows them."""
    where = posixpath.dirname(page.file.src_uri)
    parts = FENCE.split(markdown)
    prose = [_prose(part, where) if number % 2 == 0 else part for number, part in enumerate(parts)]
    return LINK.sub(lambda found: _link(found, where), "".join(prose))


def _prose(text: str, where: str) -> str:
    up = "../" * len(list(filter(None, where.split("/"))))
    text = PICTURE.sub(rf"![\g<words>]({up}assets/\g<name>.svg)", text)
    return FORMULA.sub(_mathml, text)


def _mathml(found: re.Match[str]) -> str:
    block, inline = found.groups()
    display = "block" if block else "inline"
    return str(latex2mathml.converter.convert((block or inline).strip(), display=display))


def _link(found: re.Match[str], where: str) -> str:
    start, target, end = found.groups()
    place = posixpath.normpath(posixpath.join("docs", where, target))
    if place.startswith("docs/") and not target.startswith("/"):
        inside = place.removeprefix("docs/")
        if _exists(inside) or inside.endswith((".svg", ".ipynb")) or "tutorials" in inside:
            return found[0]
    if place in OUTSIDE:
        return f"{start}{posixpath.relpath(OUTSIDE[place], where or '.')}{end}"
    return f"{start}{ADDRESS}/{place}{end}"


def _exists(path: str) -> bool:
    return path in GENERATED or (DOCS / path).is_file()


def _tutorials() -> Iterator[Path]:
    return iter(sorted(DOCS.glob("tutorials/*.py")))


def _title(path: Path) -> str:
    """Return the first heading of a page or of a tutorial."""
    heading = r"^# # (.+)$" if path.suffix == ".py" else r"^# (.+)$"
    found = re.search(heading, path.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else path.stem
