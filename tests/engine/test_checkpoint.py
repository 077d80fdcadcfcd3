"""Checkpoints: complete or not there, ours or refused, data and never code."""

import os
import pickle
from pathlib import Path

import pytest
import torch

from onesided.core.errors import CheckpointError, OnesidedError
from onesided.engine.checkpoint import Checkpoints, Position, TrainingState

STATE = TrainingState(
    Position(1, 2, 3), {"weight": torch.arange(4.0)}, None, {"loss.risk": [1.5, 2]}, 7.0
)


def saved(folder: Path) -> Checkpoints:
    checkpoints = Checkpoints(folder / "last.pt", "mine")
    checkpoints.save(STATE)
    return checkpoints


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    loaded = saved(tmp_path).load()
    assert loaded is not None
    assert loaded.position == Position(1, 2, 3)
    assert torch.equal(loaded.method["weight"], torch.arange(4.0))
    assert (loaded.tally, loaded.seconds) == ({"loss.risk": [1.5, 2]}, 7.0)


def test_without_a_file_the_run_starts_at_the_beginning(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path / "last.pt", "mine").load() is None
    assert Checkpoints().load() is None


def test_no_temporary_file_is_left_behind(tmp_path: Path) -> None:
    saved(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["last.pt"]


def test_another_runs_checkpoint_is_refused(tmp_path: Path) -> None:
    saved(tmp_path)
    with pytest.raises(CheckpointError, match="other settings"):
        Checkpoints(tmp_path / "last.pt", "yours").load()


@pytest.mark.parametrize("kept", [0, 1, 100, -20])
def test_a_truncated_checkpoint_is_refused_with_the_reason(tmp_path: Path, kept: int) -> None:
    checkpoints = saved(tmp_path)
    path = tmp_path / "last.pt"
    content = path.read_bytes()[:kept]
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"damaged|holds more"):
        checkpoints.load()
    assert path.read_bytes() == content, "the file stays as it was"


class _Hostile:
    """Unpickled carelessly, this would run a command."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {self.marker}",)


@pytest.mark.parametrize("writer", ["pickle", "torch"])
def test_a_pickle_that_would_execute_code_is_refused_unexecuted(
    tmp_path: Path, writer: str
) -> None:
    path, marker = tmp_path / "last.pt", tmp_path / "executed"
    if writer == "pickle":
        path.write_bytes(pickle.dumps(_Hostile(marker)))
    else:
        torch.save({"format": 1, "identity": "mine", "method": _Hostile(marker)}, path)
    content = path.read_bytes()
    with pytest.raises(CheckpointError, match="nothing in it was executed"):
        Checkpoints(path, "mine").load()
    assert not marker.exists()
    assert path.read_bytes() == content


def test_a_future_format_is_named(tmp_path: Path) -> None:
    torch.save({"format": 99, "identity": "mine"}, tmp_path / "last.pt")
    with pytest.raises(CheckpointError, match="format 99"):
        Checkpoints(tmp_path / "last.pt", "mine").load()


def test_missing_parts_are_named(tmp_path: Path) -> None:
    torch.save({"format": 1, "identity": "mine"}, tmp_path / "last.pt")
    with pytest.raises(CheckpointError, match="position"):
        Checkpoints(tmp_path / "last.pt", "mine").load()


def test_torch_reports_a_full_disk_by_one_of_the_two_errors_that_are_handled() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full to write to")
    with pytest.raises((RuntimeError, OSError)), full.open("wb", buffering=0) as file:
        torch.save({"weight": torch.zeros(100_000)}, file)


def test_torchs_words_for_a_full_disk_are_reported_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise RuntimeError("PytorchStreamWriter failed writing file data/0")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(OnesidedError, match=r"PytorchStreamWriter .* intact"):
        saved(tmp_path)


def test_a_flipped_bit_inside_a_tensor_is_noticed(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path)
    path = tmp_path / "last.pt"
    content = bytearray(path.read_bytes())
    place = content.find(torch.arange(4.0).numpy().tobytes())
    assert place > 0
    content[place + 6] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(CheckpointError, match="checksum"):
        checkpoints.load()


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("position", {"stage": -1, "epoch": 0, "step": 0}),
        ("position", {"stage": 0, "epoch": "two", "step": 0}),
        ("method", [1, 2]),
        ("tally", {"loss": 3}),
        ("seconds", "long"),
    ],
)
def test_a_part_of_the_wrong_kind_is_refused(tmp_path: Path, part: str, value: object) -> None:
    checkpoints = saved(tmp_path)
    content = torch.load(tmp_path / "last.pt", weights_only=True)
    torch.save({**content, part: value}, tmp_path / "last.pt")
    with pytest.raises(CheckpointError, match="damaged"):
        checkpoints.load()
