"""How many threads a run has: by its work, by the cores that are idle, within what users set."""

import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from onesided.core import threads
from onesided.core.threads import (
    CHOSEN_BY_USERS,
    WAITING,
    WORK_PER_THREAD,
    available_cores,
    choose_threads,
    cpu_quota,
    idle_cores,
    load_of_others,
    using_threads,
    wait_passively,
)

UNTOLD = {key: value for key, value in os.environ.items() if key not in CHOSEN_BY_USERS}


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Make this an idle machine of eight cores, all of which torch may use."""
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0), raising=False)
    monkeypatch.setattr(threads, "cpu_quota", lambda: math.inf)
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    torch.set_num_threads(8)
    return monkeypatch


def load(patches: pytest.MonkeyPatch, average: float) -> None:
    """Say that so many threads ran in the last minute, none of them ours."""
    patches.setattr(threads, "_BEGAN", (time.monotonic(), time.process_time()))
    patches.setattr(os, "getloadavg", lambda: (average, 0.0, 0.0), raising=False)


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (0, 1),
        (WORK_PER_THREAD - 1, 1),
        (2 * WORK_PER_THREAD - 1, 1),
        (2 * WORK_PER_THREAD, 2),
        (5 * WORK_PER_THREAD, 5),
        (100 * WORK_PER_THREAD, 8),
        (math.inf, 8),
    ],
)
def test_small_work_has_one_thread_and_large_work_all_idle_cores(
    work: float, expected: int
) -> None:
    assert choose_threads(work) == expected


@pytest.mark.parametrize(
    ("average", "expected"), [(0.4, 8), (0.6, 7), (3.0, 5), (7.2, 1), (8.0, 1), (50.0, 1)]
)
def test_cores_that_others_use_are_left_to_them(
    idle: pytest.MonkeyPatch, average: float, expected: int
) -> None:
    load(idle, average)
    assert choose_threads() == expected


def test_a_process_does_not_take_its_own_work_for_that_of_others(idle: pytest.MonkeyPatch) -> None:
    now, computed = time.monotonic(), time.process_time()
    # Two threads for ten minutes, which the average of the last minute shows in full.
    idle.setattr(threads, "_BEGAN", (now - 600, computed - 1200))
    idle.setattr(os, "getloadavg", lambda: (2.5, 2.0, 1.0), raising=False)
    assert load_of_others() == pytest.approx(0.5, abs=0.01)
    # For six seconds: the average has risen by a tenth of it so far.
    idle.setattr(threads, "_BEGAN", (now - 6, computed - 12))
    assert load_of_others() == pytest.approx(2.5 - 2 * (1 - math.exp(-0.1)), abs=0.01)


@pytest.mark.usefixtures("idle")
def test_what_torch_was_told_is_the_most() -> None:
    torch.set_num_threads(3)
    assert choose_threads(100 * WORK_PER_THREAD) == 3


def test_cores_that_the_process_may_not_use_do_not_count(idle: pytest.MonkeyPatch) -> None:
    idle.setattr(os, "sched_getaffinity", lambda _: {0, 5}, raising=False)
    assert (available_cores(), choose_threads()) == (2, 2)


def test_a_quota_of_time_bounds_the_threads(idle: pytest.MonkeyPatch) -> None:
    idle.setattr(threads, "cpu_quota", lambda: 1.5)
    assert (available_cores(), choose_threads()) == (2, 2)


def test_others_on_a_large_machine_do_not_use_the_cores_of_a_small_container(
    idle: pytest.MonkeyPatch,
) -> None:
    idle.setattr(threads, "cpu_quota", lambda: 2.0)
    load(idle, 5.0)  # of the eight cores of the machine
    assert idle_cores() == 2


def test_processes_of_one_training_share_the_cores(idle: pytest.MonkeyPatch) -> None:
    idle.setenv("LOCAL_WORLD_SIZE", "4")
    assert choose_threads() == 2
    idle.setenv("LOCAL_WORLD_SIZE", "100")
    assert choose_threads() == 1


def test_a_machine_without_load_average_counts_as_idle(idle: pytest.MonkeyPatch) -> None:
    idle.delattr(os, "getloadavg")
    assert choose_threads() == 8


def test_a_quota_is_the_smallest_of_a_group_and_those_above_it(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("12:cpuset:/elsewhere\n0::/user/work\n")
    assert cpu_quota(tmp_path, own) == math.inf
    (tmp_path / "user" / "work").mkdir(parents=True)
    (tmp_path / "user" / "work" / "cpu.max").write_text("max 100000\n")
    assert cpu_quota(tmp_path, own) == math.inf
    (tmp_path / "user" / "cpu.max").write_text("150000 100000\n")
    assert cpu_quota(tmp_path, own) == 1.5
    (tmp_path / "user" / "work" / "cpu.max").write_text("50000 100000\n")
    assert cpu_quota(tmp_path, own) == 0.5


def test_a_container_whose_group_is_the_root_has_its_quota(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("0::/\n")
    (tmp_path / "cpu.max").write_text("300000 100000\n")
    assert cpu_quota(tmp_path, tmp_path / "own") == 3


def test_without_control_groups_there_is_no_quota(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path, tmp_path / "missing") == math.inf


def test_threads_are_as_asked_inside_and_as_before_outside() -> None:
    from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

    def of_blas() -> set[int]:
        return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

    before = of_blas()
    with using_threads(2):
        assert torch.get_num_threads() == 2
        assert of_blas() <= {1, 2}  # a library that was built for fewer keeps its number
        with using_threads(None):
            assert torch.get_num_threads() == 2
        with using_threads(1):
            assert torch.get_num_threads() == 1
            assert of_blas() == {1}
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == 1
    assert of_blas() == before


def test_threads_are_restored_after_an_error() -> None:
    with pytest.raises(KeyError), using_threads(2):
        raise KeyError
    assert torch.get_num_threads() == 1


def after_a_command(**environment: str) -> dict[str, str]:
    """Return the variables about waiting after a command began in a new process."""
    names = [*CHOSEN_BY_USERS]
    code = f"""
import json, os, sys
from onesided.cli import main
sys.argv = ["onesided", "--help"]
try:
    main()
finally:
    told = {{name: os.environ.get(name) for name in {names}}}
    print("torch" in sys.modules, json.dumps(told), file=sys.stderr)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=UNTOLD | environment)
    loaded, _, found = done.stderr.strip().partition(" ")
    assert loaded == "False"  # later, OpenMP would not read the variables
    told: dict[str, str | None] = json.loads(found)
    return {name: value for name, value in told.items() if value is not None}


def test_threads_of_a_command_wait_passively() -> None:
    assert after_a_command() == dict(WAITING)


@pytest.mark.parametrize("name", CHOSEN_BY_USERS)
def test_how_threads_wait_is_left_to_users_who_chose_it(name: str) -> None:
    assert after_a_command(**{name: "20"}) == {name: "20"}


def test_the_library_in_another_program_leaves_waiting_alone() -> None:
    code = "import os, onesided, onesided.jobs.fit; print('OMP_WAIT_POLICY' in os.environ)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=UNTOLD)
    assert done.stdout.strip() == "False"


def test_it_is_too_late_when_torch_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CHOSEN_BY_USERS:
        monkeypatch.delenv(name, raising=False)
    assert not wait_passively()
    assert not set(WAITING) & set(os.environ)
