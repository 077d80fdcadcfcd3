"""A short part of the campaign of kills, which `make campaigns` runs as a whole."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not hasattr(os, "fork"), reason="commands are forked, which needs Unix")
@pytest.mark.slow
def test_killed_commands_end_with_the_same_files(tmp_path: Path) -> None:
    output = tmp_path / "kills.json"
    words = ("--kills", "6", "--only", "evaluate,report", "--seed", "3", "--output", str(output))
    done = subprocess.run(
        [sys.executable, "-m", "tests.campaigns.kills", *words],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(output.read_text())
    assert found["kills"] == found["exact"] >= 6
    assert all(row["kills"] and not row["differ"] for row in found["commands"])
