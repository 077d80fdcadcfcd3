"""What was trained before a change of the house is trained after it, to the bit."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.regression.runs import RECORDED, RUNS, machine

recorded = json.loads(RECORDED.read_text())
PROGRAM = """
import json, sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import torch

from tests.regression.runs import RUNS

torch.set_num_threads(1)
with redirect_stdout(StringIO()):
    found = RUNS[sys.argv[1]](Path(sys.argv[2]))
print(json.dumps(found))
"""


def in_a_process_of_its_own(name: str, folder: Path) -> dict[str, Any]:
    """Return the run as it was recorded: libraries that other tests load may round otherwise."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, name, str(folder)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.slow
def test_a_run_gives_the_model_and_the_scores_it_always_gave(name: str, tmp_path: Path) -> None:
    before, now = recorded["runs"][name], in_a_process_of_its_own(name, tmp_path / "run")
    if machine() == recorded["machine"]:
        assert now == before
    else:
        # Another machine sums in another order: two epochs later the scores differ a little.
        assert np.abs(np.subtract(now["first"], before["first"])).max() < 0.05


def test_every_run_is_recorded_and_none_is_forgotten() -> None:
    assert recorded["runs"].keys() == RUNS.keys()
