"""Build wheel and source archive, check them, and run the demo from the wheel somewhere else.

    python -m release.package --output dist
    python -m release.package --output dist --demo --quickstart

`--install` puts the wheel into an empty virtual environment outside the repository, as a stranger
would; `--demo` runs `onesided demo` there, `--quickstart` every command of `docs/quickstart.md`.
Each takes minutes.
"""

import argparse
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from release.outside import PROGRAMS, REPOSITORY, run
from release.quickstart import follow

PACKAGE = REPOSITORY / "src" / "onesided"
LARGEST_WHEEL = 5 * 2**20
"""Bytes; a wheel that is larger carries something that belongs elsewhere."""


def build(output: Path) -> tuple[Path, Path]:
    """Return wheel and source archive, built from the repository as it is."""
    for old in (*output.glob("onesided-*.whl"), *output.glob("onesided-*.tar.gz")):
        old.unlink()
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(output), str(REPOSITORY))
    (wheel,), (archive,) = output.glob("onesided-*.whl"), output.glob("onesided-*.tar.gz")
    run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(archive))
    return wheel, archive


def missing_from_wheel(wheel: Path) -> list[str]:
    """Return the package's files that a wheel lacks: code, templates, recipes, presets."""
    with zipfile.ZipFile(wheel) as opened:
        inside = set(opened.namelist())
    wanted = (path for path in PACKAGE.rglob("*") if path.is_file() and _is_source(path))
    return sorted(
        name
        for name in (f"onesided/{path.relative_to(PACKAGE).as_posix()}" for path in wanted)
        if name not in inside
    )


def strange_in_wheel(wheel: Path) -> list[str]:
    """Return what is in a wheel and should not be: tests, documents, anything compiled or large."""
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
    strange = [name for name in names if not name.startswith(("onesided/", "onesided-"))]
    strange += [name for name in names if name.endswith((".pyc", ".pt", ".npz"))]
    if wheel.stat().st_size > LARGEST_WHEEL:
        strange.append(f"{wheel.stat().st_size} bytes")
    return strange


def missing_from_archive(archive: Path) -> list[str]:
    """Return what a source archive lacks that somebody needs to build, read and test it."""
    with tarfile.open(archive) as opened:
        inside = {name.partition("/")[2] for name in opened.getnames()}
    wanted = (
        *("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "Makefile"),
        *("constraints.txt", "src/onesided/py.typed", "docs/quickstart.md", "tests/conftest.py"),
    )
    return [name for name in wanted if name not in inside]


def check(wheel: Path, archive: Path) -> None:
    """Stop with a sentence where an archive lacks a file or has one too many."""
    faults = {
        f"{wheel.name} lacks": missing_from_wheel(wheel),
        f"{wheel.name} should not hold": strange_in_wheel(wheel),
        f"{archive.name} lacks": missing_from_archive(archive),
    }
    for what, names in faults.items():
        if names:
            sys.exit(f"{what} {', '.join(names[:5])}{' and more' if len(names) > 5 else ''}.")


def try_out(wheel: Path, *, demo: bool, quickstart: bool) -> None:
    """Install a wheel into an empty environment outside the repository, and use it there."""
    with tempfile.TemporaryDirectory(prefix="onesided-package-") as folder:
        place = Path(folder)
        run(sys.executable, "-m", "venv", str(place / "venv"))
        programs = place / "venv" / PROGRAMS
        constraints = REPOSITORY / "constraints.txt"
        install = ("-m", "pip", "install", "--quiet", "-c", str(constraints), str(wheel))
        run(str(programs / "python"), *install)
        command = str(programs / "onesided")
        for words in (["--version"], ["doctor"], ["methods", "--quiet"]):
            run(command, *words, inside=place)
        run(str(programs / "python"), "-m", "onesided", "--version", inside=place)
        if demo:
            run(command, "demo", "-o", "runs/demo", inside=place)
            if not (place / "runs/demo/auto-0/report.html").exists():
                sys.exit("The demo of the installed wheel wrote no report.")
        if quickstart:
            follow(programs, place)


def _is_source(path: Path) -> bool:
    return "__pycache__" not in path.parts


def main() -> None:
    """Build, check, and try out as far as it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=REPOSITORY / "dist")
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("--quickstart", action="store_true")
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    wheel, archive = build(asked.output)
    check(wheel, archive)
    if asked.install or asked.demo or asked.quickstart:
        try_out(wheel, demo=asked.demo, quickstart=asked.quickstart)
    print(f"{wheel} and {archive} are sound.")


if __name__ == "__main__":
    main()
