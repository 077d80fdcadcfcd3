"""Memory on large folders: how it is measured, and its bound."""

import json
import subprocess
import sys

import pytest

from benchmarks.command import REPOSITORY
from benchmarks.folders import BOUND_MB, STAGES, highest_peak
from onesided.storage.atomic import read_json


def test_the_highest_peak_is_that_of_any_command_at_any_size() -> None:
    peaks = [(500, 400, 300), (510, 600, 310)]
    rows = [dict(zip(STAGES, [{"peak_mb": one} for one in row], strict=True)) for row in peaks]
    assert highest_peak(rows) == 600


def test_the_recorded_figures_are_within_the_bound() -> None:
    rows = read_json(REPOSITORY / "benchmarks" / "results" / "folders.json")["rows"]
    assert highest_peak(rows) <= BOUND_MB


@pytest.mark.slow
def test_a_command_is_measured_in_a_process_of_its_own() -> None:
    # From a small process: a child's peak begins with what its parent holds when it forks.
    program = "import json; from benchmarks.folders import stage; " + (
        "print(json.dumps(stage(10, 'data', 'list', '--quiet')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    took = json.loads(done.stdout.splitlines()[-1])
    assert 10 < took["peak_mb"] < BOUND_MB
    assert took["files_per_second"] == pytest.approx(10 / took["seconds"], rel=0.1)
