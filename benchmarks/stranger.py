"""How long a stranger takes from a clone to a first report and to a method of their own.

    python -m benchmarks.stranger                 # the committed state, in an empty environment
    python -m benchmarks.stranger --demo          # and the demonstration of README.md

Every step is read from the page that a stranger reads: the installation, the practice folders and
the first training from docs/quickstart.md, the method from CONTRIBUTING.md. Seconds are those of a
clock; processor seconds say what an idle machine would take, downloads apart.
"""

import argparse
import os
import re
import resource
import shlex
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.origin import origin
from onesided.storage.atomic import write_json
from release.outside import PROGRAMS, REPOSITORY, run
from release.quickstart import PAGE, steps

OUTPUT = REPOSITORY / "benchmarks" / "results" / "stranger.json"


@dataclass(frozen=True)
class Stretch:
    """A part of the way: its name, and its commands with the folder in which they are given."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    inside: str


def way(place: Path, *, demo: bool) -> Iterator[Stretch]:
    """Yield the stretches in the order in which a stranger walks them."""
    programs = place / "venv" / PROGRAMS
    python = str(programs / "python")
    clone = ("git", "clone", "--quiet", str(REPOSITORY), str(place / "clone"))
    yield Stretch("clone", (clone,), ".")
    (install,) = re.findall(r"^pip install .+$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    new = ("python3", "-m", "venv", str(place / "venv"))
    yield Stretch("install", (new, (python, "-m", *shlex.split(install), "--quiet")), "clone")
    if demo:
        yield Stretch("demonstration", ((str(programs / "onesided"), "demo"),), ".")
    yield Stretch("first report on own folders", tuple(_to_the_first_report(programs)), ".")
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    method = "".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    yield Stretch("first own method", ((python, "-c", method),), ".")


def _to_the_first_report(programs: Path) -> Iterator[tuple[str, ...]]:
    for step in steps():
        if step.language == "python":
            yield (str(programs / "python"), "-c", step.text)
        else:
            program, *words = shlex.split(step.text)
            yield (str(programs / program), *words)
            return


def walked(stretch: Stretch, place: Path) -> dict[str, object]:
    """Walk a stretch and return a row of the result file."""
    started, used = time.monotonic(), _processor_seconds()
    for command in stretch.commands:
        run(*command, inside=place / stretch.inside)
    return {
        "stretch": stretch.name,
        "seconds": round(time.monotonic() - started, 1),
        "processor_seconds": round(_processor_seconds() - used, 1),
    }


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Walk the way and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    given = parser.parse_args()
    head = {"origin": origin(), "load_at_the_start": round(os.getloadavg()[0], 1)}
    with tempfile.TemporaryDirectory(prefix="onesided-stranger-") as folder:
        place = Path(folder)
        rows = [walked(stretch, place) for stretch in way(place, demo=given.demo)]
        for report in ("runs/first/report.html", "runs/smoothed/report.html"):
            assert (place / report).exists(), report
    end = {"load_at_the_end": round(os.getloadavg()[0], 1), "rows": rows}
    write_json(given.output, {**head, **end})


if __name__ == "__main__":
    main()
