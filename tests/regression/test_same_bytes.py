"""What was trained before a change of the house is trained after it, to the bit."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.regression.runs import RECORDED, RUNS, machine

recorded = json.loads(RECORDED.read_text())


@pytest.mark.parametrize("name", RUNS)
def test_a_run_gives_the_model_and_the_scores_it_always_gave(name: str, tmp_path: Path) -> None:
    before, now = recorded["runs"][name], RUNS[name](tmp_path / "run")
    if machine() == recorded["machine"]:
        assert now == before
    else:
        # Another machine sums in another order: two epochs later the scores differ a little.
        assert np.abs(np.subtract(now["first"], before["first"])).max() < 0.05


def test_every_run_is_recorded_and_none_is_forgotten() -> None:
    assert recorded["runs"].keys() == RUNS.keys()
