"""What was trained before a change of the house is trained after it, to the bit."""

import json
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.processes import processes
from tests.regression.runs import RECORDED, RUNS, machine, record

recorded = json.loads(RECORDED.read_text())


@pytest.fixture(scope="module")
def own_processes() -> Iterator[Executor]:
    """A new process for every run, as was recorded: what other tests load may round otherwise."""
    with ProcessPoolExecutor(1, processes(), max_tasks_per_child=1) as pool:
        yield pool


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.slow
def test_a_run_gives_the_model_and_the_scores_it_always_gave(
    name: str, own_processes: Executor, tmp_path: Path
) -> None:
    before = recorded["runs"][name]
    now = own_processes.submit(record, name, tmp_path / "run").result()
    if machine() == recorded["machine"]:
        assert now == before
    else:
        # Another machine sums in another order: two epochs later the scores differ a little.
        assert np.abs(np.subtract(now["first"], before["first"])).max() < 0.05


def test_every_run_is_recorded_and_none_is_forgotten() -> None:
    assert recorded["runs"].keys() == RUNS.keys()
