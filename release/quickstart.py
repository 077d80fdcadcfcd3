"""Follow the quickstart's page: run its Python and its commands, one after another, as printed.

    python -m release.quickstart --programs .venv/bin

The steps are read from the page, so the page cannot promise what does not work. Two kinds of lines
are left to a person: the installation, and the review, which waits for answers in a browser. They
stand in blocks without a language.
"""

import argparse
import re
import shlex
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from release.outside import REPOSITORY, run

PAGE = REPOSITORY / "docs" / "quickstart.md"
_BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """A block of Python, or a line for the shell."""

    language: str
    text: str


def steps(page: Path = PAGE) -> Iterator[Step]:
    """Yield what a page asks its reader to do, in the page's order."""
    for language, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            yield Step(language, text)
        else:
            yield from (Step(language, line) for line in text.splitlines())


def follow(programs: Path, inside: Path, page: Path = PAGE) -> None:
    """Take every step of a page with an environment's programs; the first that fails stops it."""
    for step in steps(page):
        if step.language == "python":
            run(str(programs / "python"), "-c", step.text, inside=inside)
        else:
            program, *words = shlex.split(step.text)
            run(str(programs / program), *words, inside=inside)


def main() -> None:
    """Follow the page in an empty folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=Path, required=True, help="bin of an environment")
    programs = parser.parse_args().programs.absolute()
    with tempfile.TemporaryDirectory(prefix="onesided-quickstart-") as place:
        follow(programs, Path(place))


if __name__ == "__main__":
    main()
