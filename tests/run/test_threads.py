"""Threads of a run: chosen once, recorded, and kept when it is resumed."""

import math
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from onesided.core.clock import Clock
from onesided.core.errors import Interrupted, OnesidedError
from onesided.engine.fit import Watcher
from onesided.nets.work import multiplications
from onesided.run.build import build_method
from onesided.run.config import RunConfig
from onesided.run.execute import run_in_memory
from onesided.run.folder import LAST, MANIFEST
from onesided.run.load import LoadedData, load_data
from onesided.run.problem import build_problem
from onesided.run.work import threads_for, work_of
from onesided.storage.atomic import read_json, write_json
from tests.run.running import run_in


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Check that every run gives torch its number of threads back."""
    torch.set_num_threads(3)
    yield
    assert torch.get_num_threads() == 3


@pytest.fixture(scope="module")
def loaded() -> LoadedData:
    return load_data(config().data)


def config(method: str = "ce", **train: object) -> RunConfig:
    settings: dict[str, Any] = {
        "data": {"name": "toy-images", "positives": 18, "unlabelled": 30},
        "method": {"name": method},
        "backbone": {"name": "small", "width": 0.125},
        "train": {"epochs": 2, "batch_size": 16, "device": "cpu", **train},
    }
    return RunConfig.from_settings(settings)


def steps_seen() -> tuple[list[int], Watcher]:
    """Return a list that fills with the threads of every step, and what fills it."""
    seen: list[int] = []
    return seen, Watcher(step=lambda clock: seen.append(torch.get_num_threads()))


def stopped_run(folder: Path, settings: RunConfig, loaded: LoadedData) -> None:
    """Begin a run and stop it after its second step."""
    steps = iter(range(10))

    def stop(clock: Clock) -> None:
        if next(steps) == 1:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted):
        run_in(folder, settings, loaded, watcher=Watcher(step=stop))
    assert (folder / LAST).exists()


def recorded(folder: Path) -> object:
    return read_json(folder / MANIFEST)["threads"]


def test_a_small_network_trains_on_one_thread_and_the_manifest_says_so(
    loaded: LoadedData, tmp_path: Path
) -> None:
    seen, watcher = steps_seen()
    run_in(tmp_path, config(), loaded, watcher=watcher)
    assert set(seen) == {1}
    assert recorded(tmp_path) == 1


def test_the_number_that_the_user_sets_wins(loaded: LoadedData, tmp_path: Path) -> None:
    seen, watcher = steps_seen()
    run_in(tmp_path, config(threads=2), loaded, watcher=watcher)
    assert set(seen) == {2}
    assert recorded(tmp_path) == 2


def test_a_run_without_a_folder_has_the_same_threads(loaded: LoadedData) -> None:
    for given, expected in (("auto", 1), (2, 2)):
        seen, watcher = steps_seen()
        run_in_memory(build_problem(config(threads=given), loaded), watcher)
        assert set(seen) == {expected}


def test_a_resumed_run_takes_the_recorded_number_and_gives_the_same_bits(
    loaded: LoadedData, tmp_path: Path
) -> None:
    run_in(tmp_path / "whole", config(threads=2), loaded)
    stopped_run(tmp_path / "broken", config(threads=2), loaded)
    seen, watcher = steps_seen()
    run_in(tmp_path / "broken", config(), loaded, watcher=watcher)  # by the rule it would be one
    assert set(seen) == {2}
    assert recorded(tmp_path / "broken") == 2
    files = [tmp_path / name / "model.safetensors" for name in ("whole", "broken")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_run_stopped_before_its_first_checkpoint_keeps_its_number_too(
    loaded: LoadedData, tmp_path: Path
) -> None:
    # Features of a frozen backbone may be there already, computed with that number.
    stopped_run(tmp_path, config(threads=2), loaded)
    (tmp_path / LAST).unlink()
    seen, watcher = steps_seen()
    run_in(tmp_path, config(), loaded, watcher=watcher)
    assert set(seen) == {2}


def test_a_user_may_resume_with_another_number_and_both_are_recorded(
    loaded: LoadedData, tmp_path: Path
) -> None:
    stopped_run(tmp_path, config(threads=2), loaded)
    seen, watcher = steps_seen()
    run_in(tmp_path, config(threads=1), loaded, watcher=watcher)
    assert set(seen) == {1}
    manifest = read_json(tmp_path / MANIFEST)
    assert (manifest["threads"], manifest["threads_before"]) == (1, [2])


def test_a_run_that_starts_again_chooses_again(loaded: LoadedData, tmp_path: Path) -> None:
    stopped_run(tmp_path, config(threads=2), loaded)
    run_in(tmp_path, config(), loaded, overwrite=True)
    assert recorded(tmp_path) == 1


@pytest.mark.parametrize("threads", ["many", 0, -2, True, 1.5, 10**9])
def test_a_manifest_with_an_impossible_number_is_refused(
    threads: object, loaded: LoadedData, tmp_path: Path
) -> None:
    stopped_run(tmp_path, config(), loaded)
    write_json(tmp_path / MANIFEST, read_json(tmp_path / MANIFEST) | {"threads": threads})
    with pytest.raises(OnesidedError, match=r"number of threads.*--overwrite"):
        run_in(tmp_path, config(), loaded)


def test_a_run_of_a_version_that_recorded_none_is_resumed(
    loaded: LoadedData, tmp_path: Path
) -> None:
    stopped_run(tmp_path, config(), loaded)
    manifest = read_json(tmp_path / MANIFEST)
    del manifest["threads"]
    write_json(tmp_path / MANIFEST, manifest)
    run_in(tmp_path, config(), loaded)
    assert recorded(tmp_path) == 1


def test_the_work_is_that_of_a_batch_in_the_backbone(loaded: LoadedData) -> None:
    problem = build_problem(config(batch_size=24), loaded)
    settings = problem.config
    method = build_method(
        settings.method, settings.backbone, loaded, problem.training, batch_size=24, seed=0
    )
    backbone = method.backbone  # type: ignore[union-attr]
    assert work_of(problem) == 24 * multiplications(backbone, loaded.split.sample_shape)


def test_trees_grow_on_as_many_threads_as_torch_has_and_cores_are_idle(
    loaded: LoadedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0), raising=False)
    forest = build_problem(config("puet"), loaded)
    assert work_of(forest) == math.inf
    assert threads_for(forest) == 3
    assert threads_for(build_problem(config(), loaded)) == 1
