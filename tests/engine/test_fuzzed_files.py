"""Garbage as a checkpoint or a log: one sentence, or the run goes on; never a traceback."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from onesided.core.clock import Clock
from onesided.core.errors import CheckpointError, OnesidedError
from onesided.engine.checkpoint import Checkpoints, Position, TrainingState, check_fits
from onesided.engine.log import EpochLog
from onesided.storage.own_file import SEAL_BYTES, seal_of
from tests.engine.fuzz import MANY, mutated


def weights() -> torch.nn.Linear:
    torch.manual_seed(0)
    return torch.nn.Linear(3, 2)


def saved(path: Path) -> Checkpoints:
    layer = weights()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
    layer(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    state = TrainingState(
        Position(0, 1, 2), layer.state_dict(), optimizer.state_dict(), {"loss.risk": [1.5, 2]}, 7.0
    )
    checkpoints = Checkpoints(path, "mine")
    checkpoints.save(state)
    return checkpoints


def outcome(checkpoints: Checkpoints) -> str:
    """Load a checkpoint as training does; return the sentence that refuses it, or nothing."""
    layer = weights()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
    try:
        state = checkpoints.load()
        if state is None:
            return "none"
        check_fits(optimizer, state.optimizer)
    except (CheckpointError, ValueError) as error:
        return str(error)
    return ""


@pytest.mark.slow
def test_a_thousand_damaged_checkpoints_are_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "last.pt"
    checkpoints, random = saved(path), np.random.default_rng(0)
    whole = path.read_bytes()
    assert outcome(checkpoints) == ""
    for number in range(MANY):
        content = mutated(whole, random)
        path.write_bytes(content)
        said = outcome(checkpoints)
        assert said or content == whole, number
        assert "\n" not in said, said


@pytest.mark.slow
def test_damage_behind_a_right_seal_is_no_traceback(tmp_path: Path) -> None:
    # An attacker can seal a file as well: what is behind must stand alone.
    path = tmp_path / "last.pt"
    checkpoints, random = saved(path), np.random.default_rng(1)
    whole = path.read_bytes()[:-SEAL_BYTES]
    refused = 0
    for number in range(MANY // 2):
        content = mutated(whole, random)
        sealed = number % 2 == 0  # the others are as earlier versions wrote them
        digest = hashlib.sha256(content).hexdigest()
        path.write_bytes(content + seal_of(digest) if sealed else content)
        refused += bool(outcome(checkpoints))
    assert refused > MANY // 4


State = dict[str, Any]


def buffers(content: State) -> dict[int, Any]:
    state: dict[int, Any] = content["optimizer"]["state"]
    return state


WRONG: dict[str, Callable[[State], object]] = {
    "a buffer of another shape": lambda c: buffers(c)[0].update(momentum_buffer=torch.zeros(7)),
    "a buffer that would broadcast": lambda c: buffers(c)[0].update(momentum_buffer=torch.ones(1)),
    "a buffer of integers": lambda c: buffers(c)[1].update(
        momentum_buffer=torch.zeros(2, dtype=torch.int64)
    ),
    "a buffer that is not finite": lambda c: buffers(c)[1].update(
        momentum_buffer=torch.full((2,), torch.nan)
    ),
    "a parameter too many": lambda c: buffers(c).update({9: {}}),
    "another momentum": lambda c: c["optimizer"]["param_groups"][0].update(momentum=0.5),
    "a rate that is none": lambda c: c["optimizer"]["param_groups"][0].update(lr="fast"),
    "no groups": lambda c: c["optimizer"].update(param_groups=None),
    "a mean over no step": lambda c: c.update(tally={"loss.risk": [1.5, 0]}),
    "a mean over half a step": lambda c: c.update(tally={"loss.risk": [1.5, 0.5]}),
    "a tally of three": lambda c: c.update(tally={"loss.risk": [1.5, 1, 1]}),
    "a position that is true": lambda c: c["position"].update(epoch=True),
    "an endless time": lambda c: c.update(seconds=float("inf")),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_state_that_no_run_saves_is_refused(tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "last.pt"
    checkpoints = saved(path)
    content = torch.load(path, weights_only=True)
    WRONG[wrong](content)
    torch.save(content, path)
    assert outcome(checkpoints)


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_a_pipe_or_folder_as_a_checkpoint_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "last.pt"
    os.mkfifo(path) if kind == "pipe" else path.mkdir()
    with pytest.raises(CheckpointError, match=f"it is a {kind}"):
        Checkpoints(path, "mine").load()


def test_a_checkpoint_that_would_unpack_to_more_is_refused(tmp_path: Path) -> None:
    import zipfile

    path = tmp_path / "last.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(10_000_000))
    with pytest.raises(CheckpointError, match="packed"):
        Checkpoints(path, "mine").load()


def written(path: Path) -> EpochLog:
    log = EpochLog(path)
    for epoch in range(6):
        row = {"stage": "train", "epoch": epoch, "seconds": epoch + 0.5}
        log.write({**row, "loss": {"risk": 0.25}, "watched": {}})
    return log


def test_a_damaged_log_never_stops_a_run_and_keeps_its_whole_rows(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log, random = written(path), np.random.default_rng(2)
    whole = path.read_bytes()
    for _ in range(MANY // 4):
        content = mutated(whole, random)
        path.write_bytes(content)
        sound = {line for line in content.splitlines() if line in whole.splitlines()}
        log.seconds()
        log.rewind(Clock(0, "train", 6, 9))
        rows = path.read_bytes().splitlines()
        assert sound <= set(rows)
        assert all(isinstance(json.loads(row)["loss"], dict) for row in rows)


@pytest.mark.parametrize(
    "line",
    [
        b"[1]",
        b"null",
        b"7",
        b'{"stage": "train"}',
        b'{"stage": 1, "epoch": 0, "loss": {}, "watched": {}}',
        b'{"stage": "train", "epoch": "x", "loss": {}, "watched": {}}',
        b'{"stage": "train", "epoch": 0, "loss": [], "watched": {}}',
        b'{"stage": "train", "epoch": 0, "loss": {}, "watched": {}, "seconds": "long"}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_a_line_of_the_wrong_kind_is_left_out_of_the_log(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "log.jsonl"
    log = written(path)
    path.write_bytes(path.read_bytes() + line + b"\n")
    assert log.seconds() == 5.5
    log.rewind(Clock(0, "other", 0, 9))


def test_a_row_is_on_the_disk_before_a_checkpoint_relies_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    monkeypatch.setattr(
        os, "fsync", lambda number: flushed.append(os.readlink(f"/proc/self/fd/{number}"))
    )
    written(tmp_path / "log.jsonl")
    assert flushed[:2] == [str(tmp_path / "log.jsonl"), str(tmp_path)]


def test_a_log_that_is_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").mkdir()
    with pytest.raises(OnesidedError, match="is no file"):
        written(tmp_path / "log.jsonl")


class Full:
    """A disk that is full after some bytes."""

    def __init__(self) -> None:
        self.room = 3000

    def __call__(self, content: Any) -> int:  # noqa: ANN401 - whatever has bytes
        self.room -= len(content)
        if self.room < 0:
            raise OSError(28, "No space left on device")
        return len(content)


def test_a_disk_that_is_full_in_the_middle_of_a_checkpoint_is_told_as_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onesided.storage import atomic

    path, full = tmp_path / "last.pt", Full()
    checkpoints = saved(path)
    before = path.read_bytes()
    plain = atomic.Sealing.__init__

    def sealing(self: atomic.Sealing, file: Any) -> None:  # noqa: ANN401 - a file
        class Small:
            write = staticmethod(full)

        plain(self, Small())  # type: ignore[arg-type]

    monkeypatch.setattr(atomic.Sealing, "__init__", sealing)
    big = TrainingState(Position(), {"weight": torch.zeros(10_000)}, None)
    with pytest.raises(OnesidedError, match=r"Cannot write .*last\.pt: No space left .* intact"):
        checkpoints.save(big)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["last.pt"]
