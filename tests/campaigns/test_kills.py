"""Short parts of the campaigns of kills, which `make campaigns` runs as a whole."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="commands are forked, which needs Unix"),
    pytest.mark.slow,
]


def run_campaign(name: str, output: Path, *words: str) -> Any:  # noqa: ANN401 - JSON
    """Run a campaign; return its result file."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.campaigns.{name}", *words, "--output", str(output)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(output.read_text())


def test_killed_commands_end_with_the_same_files(tmp_path: Path) -> None:
    words = ("--kills", "9", "--only", "evaluate,report,draw", "--seed", "3")
    found = run_campaign("kills", tmp_path / "kills.json", *words)
    assert found["kills"] == found["exact"] >= 9
    assert all(row["kills"] and not row["differ"] for row in found["commands"])


def test_a_region_that_is_killed_while_it_is_scored_and_written_has_the_same_rows(
    tmp_path: Path,
) -> None:
    phases = ("scoring", "merging", "layers", "page")
    words = ("--kills", "1", "--only", "region", "--phases", ",".join(phases))
    found = run_campaign("map_kills", tmp_path / "map_kills.json", *words)
    assert [row["phase"] for row in found["rows"]] == list(phases)
    assert found["kills"] == found["exact"] == len(phases)
