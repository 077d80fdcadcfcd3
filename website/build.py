"""Build the site, and check it as a visitor would: every page is reached, no link is broken.

python -m website.build --output build/site
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

ROOT = Path(__file__).parents[1]
QUIET = {"NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
"""mkdocs is below 2, see pyproject.toml: what is said about 2 does not concern this build."""
UNREACHED = {"404.html"}


class _Page(HTMLParser):
    """Where a page leads, and which anchors it has."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors.update(filter(None, (given.get("id"), given.get("name"))))
        for name in ("href", "src"):
            if given.get(name):
                self.links.append(str(given[name]))


def build(output: Path) -> None:
    """Build the site; raise where mkdocs warns."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    words = ("-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(output.resolve()))
    environment = {**os.environ, **QUIET, "PYTHONPATH": path}
    subprocess.run([sys.executable, *words], cwd=ROOT, env=environment, check=True)


def faults(site: Path) -> Iterator[str]:
    """Yield a sentence for every link that leads nowhere and every page that nothing leads to."""
    pages = {path.resolve(): _read(path) for path in sorted(site.rglob("*.html"))}
    reached: set[Path] = set()
    waiting = [(site / "index.html").resolve()]
    while waiting:
        here = waiting.pop()
        if here in reached:
            continue
        reached.add(here)
        for link in pages[here].links:
            target, anchor = _target(here, link, site)
            if target is None:
                continue
            if not target.exists():
                yield f"{here.relative_to(site)} leads to {link}, which is not there."
            elif target in pages:
                waiting.append(target)
                if anchor and anchor not in pages[target].anchors:
                    yield f"{here.relative_to(site)} leads to {link}, which has no such anchor."
    for page in sorted(pages.keys() - reached):
        if page.name not in UNREACHED:
            yield f"Nothing leads to {page.relative_to(site)}."


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def _target(here: Path, link: str, site: Path) -> tuple[Path | None, str]:
    """Return the file that a link leads to, None for addresses elsewhere, and the anchor."""
    address, anchor = urldefrag(link)
    if urlsplit(address).scheme or address.startswith("//"):
        return None, ""
    if not address:
        return here, unquote(anchor)
    base = site if address.startswith("/") else here.parent
    target = (base / unquote(urlsplit(address).path).lstrip("/")).resolve()
    return (target / "index.html" if target.is_dir() else target), unquote(anchor)


def main() -> None:
    """Build and check; the exit code is 1 if anything leads nowhere."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "site")
    asked = parser.parse_args()
    build(asked.output)
    found = list(faults(asked.output.resolve()))
    for fault in found:
        print(fault, file=sys.stderr)
    if found:
        sys.exit(1)
    pages = len(list(asked.output.rglob("*.html")))
    print(f"{pages} pages in {asked.output}, all links lead somewhere.")


if __name__ == "__main__":
    main()
