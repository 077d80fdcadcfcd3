"""Run the steps of the Dockerfile without docker, in a folder that stands for the image.

    python -m release.container

`COPY` copies, `RUN` runs in a shell whose Python is a fresh virtual environment; `useradd`, `USER`
and the base image need docker and are named as left out. What this cannot show: the base image's
system libraries.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from release.outside import REPOSITORY

LEFT_OUT = ("FROM", "USER", "ENTRYPOINT", "CMD", "ARG")


def instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile as (name, rest), without comments."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in joined.splitlines())]


def run(text: str, image: Path) -> None:
    """Do what can be done without docker; raise where a step fails."""
    subprocess.run([sys.executable, "-m", "venv", str(image / "venv")], check=True)
    here = image / "start"
    here.mkdir()
    for name, rest in instructions(text):
        print(f"{name} {rest}", flush=True)
        if name == "WORKDIR":
            here = image / rest.strip("/")
            here.mkdir(parents=True, exist_ok=True)
        elif name == "COPY":
            _copy(rest.split(), here, image)
        elif name == "RUN" and not rest.startswith("useradd"):
            _shell(_inside(rest, image), here, image)
        elif name not in (*LEFT_OUT, "RUN"):
            raise ValueError(f"Dockerfile has {name}, which release/container.py does not know.")


def _copy(words: list[str], here: Path, image: Path) -> None:
    if words[0].startswith("--from="):
        return  # both stages are one folder here: it is there already
    *sources, target = words
    place = here / target
    for source in (REPOSITORY / name for name in sources):
        if source.is_dir():
            shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, place)


def _inside(command: str, image: Path) -> str:
    return re.sub(r"(?<![\w.])/wheels", str(image / "wheels"), command)


def _shell(command: str, here: Path, image: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    path = f"{image / 'venv' / 'bin'}{os.pathsep}{clean['PATH']}"
    subprocess.run(["sh", "-ec", command], cwd=here, env={**clean, "PATH": path}, check=True)


def main() -> None:
    """Run the steps in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="onesided-container-") as place:
        run((REPOSITORY / "Dockerfile").read_text(encoding="utf-8"), Path(place))
    print("All steps that need no docker worked.")


if __name__ == "__main__":
    main()
