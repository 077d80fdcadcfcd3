"""Commands as a stranger gives them: what is installed counts, not the source beside it."""

import os
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
PROGRAMS = "Scripts" if os.name == "nt" else "bin"
"""Where a virtual environment has its programs."""


def run(*words: str, inside: Path | None = None) -> None:
    """Show a command and run it in a folder, without PYTHONPATH; a failure is an exception."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    print("$", *words, flush=True)
    subprocess.run(words, cwd=inside, env=clean, check=True)
