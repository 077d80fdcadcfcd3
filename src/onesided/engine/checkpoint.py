"""Checkpoints: all that a run needs to resume exactly, in one file that is never half written.

The file holds tensors, numbers and strings and is read with `weights_only=True`: a file
that would execute code is refused. It holds no random generators, because randomness is a
function of the clock.
"""

import math
import os
import pickle
import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import torch
from torch import nn
from torch.optim import Optimizer

from onesided.core.errors import CheckpointError
from onesided.storage.atomic import replacing_sealed
from onesided.storage.own_file import check_seal, damaged, open_own, why

FORMAT = 1
REMEDY = "Restore it from a copy, or use --overwrite to start again."


@dataclass(frozen=True)
class Position:
    """The next step to do: stage by number, epoch within it, step within that."""

    stage: int = 0
    epoch: int = 0
    step: int = 0


@dataclass(frozen=True)
class TrainingState:
    """All state of a run that is not a function of configuration and data.

    Attributes:
        position: The next step to do.
        method: The method's `state_dict`: parameters and buffers.
        optimizer: The optimizer's `state_dict`, or None between stages.
        tally: Sums of this epoch's losses so far, so that the log continues exactly.
        seconds: Training time so far.
    """

    position: Position
    method: dict[str, Any]
    optimizer: dict[str, Any] | None
    tally: dict[str, list[float]] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoint file of one run; `path=None` keeps nothing.

    Attributes:
        identity: Fingerprint of configuration and split: another run's file is refused.
    """

    path: Path | None = None
    identity: str = ""

    def save(self, state: TrainingState) -> None:
        """Write the state under a temporary name, then rename: a kill leaves the old or the new."""
        if self.path is None:
            return
        # vars, not asdict, which would copy the tensors
        content = {"format": FORMAT, "identity": self.identity, **vars(state)}
        content["position"] = asdict(state.position)
        with replacing_sealed(self.path) as file:
            try:
                torch.save(content, cast(IO[bytes], file))  # it only writes
            except RuntimeError as error:  # so torch's zip writer reports a refusal of the system
                raise file.refusal or OSError(str(error)) from error

    def load(self) -> TrainingState | None:
        """Return the saved state, or None if there is none; refuse a file that does not fit."""
        if self.path is None or not self.path.exists():
            return None
        content = self._read(self.path)
        if content.get("format") != FORMAT:
            raise CheckpointError(
                f"{self.path} has checkpoint format {content.get('format')!r}, this version reads "
                f"{FORMAT}. Continue with the version that wrote it, or start with --overwrite."
            )
        if content.get("identity") != self.identity:
            raise CheckpointError(
                f"{self.path} belongs to a run with other settings or another split. "
                "Repeat the settings of that run, choose another folder, or use --overwrite."
            )
        try:
            return _as_state(content)
        except Exception as error:  # whatever the parts of a stranger's file raise
            lacks = isinstance(error, KeyError)
            reason = f"it lacks {error}" if lacks else "no run saves such a state"
            raise self.damaged(reason) from None

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            with open_own(path) as file:
                length = check_seal(path, file, REMEDY)
                _check_archive(file, length)
            content = torch.load(path, map_location="cpu", weights_only=True)
        except CheckpointError:
            raise
        except pickle.UnpicklingError:
            raise CheckpointError(
                f"{path} holds more than tensors, numbers and strings. It was not read, and "
                "nothing in it was executed. Restore it from a copy you trust, or use --overwrite."
            ) from None
        except Exception as error:  # torch's readers raise a dozen kinds for garbage
            raise self.damaged(why(error)) from None
        if not isinstance(content, dict):
            raise self.damaged("it is not a table")
        return content

    def damaged(self, reason: str) -> CheckpointError:
        """Return the error that refuses this file, with the reason and the remedy."""
        assert self.path is not None
        return damaged(self.path, reason, REMEDY)


def _check_archive(file: BinaryIO, length: int) -> None:
    """Check kind and checksums of every part: torch would take flipped bits for weights.

    Torch packs nothing, so what would grow when it is unpacked is not by torch.
    """
    if not zipfile.is_zipfile(file):
        raise pickle.UnpicklingError("torch's older formats are pickles throughout")
    with zipfile.ZipFile(file) as archive:
        parts = archive.infolist()
        if any(part.compress_type != zipfile.ZIP_STORED for part in parts):
            raise ValueError("its parts are packed, and torch packs none")
        if sum(part.file_size for part in parts) > length:
            raise ValueError("its parts are larger than the file")
        if length == os.fstat(file.fileno()).st_size:  # no seal: of an earlier version
            wrong = archive.testzip()
            if wrong is not None:
                raise ValueError(f"the part {wrong} does not have its checksum")


def check_fits(optimizer: Optimizer, saved: object) -> None:
    """Raise ValueError where a saved state is not of this optimizer.

    Torch takes over whatever a file holds: buffers of another shape fail many steps later or are
    broadcast, and other rates train another model.
    """
    ours = optimizer.state_dict()
    if not isinstance(saved, dict) or saved.keys() != ours.keys():
        raise ValueError("the optimizer's state has other parts")
    groups, states = saved["param_groups"], saved["state"]
    if not isinstance(groups, list) or not isinstance(states, dict):
        raise ValueError("the optimizer's state has parts of another kind")
    fixed = [{key: one[key] for key in one if key != "lr"} for one in ours["param_groups"]]
    if [{key: one[key] for key in one if key != "lr"} for one in groups] != fixed:
        raise ValueError("the optimizer's settings are others than those of the run")
    if not all(isinstance(one["lr"], float) and 0 <= one["lr"] < math.inf for one in groups):
        raise ValueError("a learning rate is no rate")
    parameters = [parameter for one in optimizer.param_groups for parameter in one["params"]]
    for number, buffers in states.items():
        if type(number) is not int or not 0 <= number < len(parameters):
            raise ValueError("the optimizer remembers a parameter that the run does not have")
        _check_buffers(buffers, parameters[number])


def check_kinds(method: nn.Module, saved: dict[str, Any]) -> None:
    """Raise ValueError where a tensor holds numbers of another kind, which torch would convert."""
    ours = method.state_dict()
    for name, value in saved.items():
        if name in ours and value.dtype != ours[name].dtype:
            raise ValueError(f"'{name}' holds numbers of another kind")


def _check_buffers(buffers: dict[str, Any], parameter: torch.Tensor) -> None:
    for name, value in buffers.items():
        if value is None:
            continue
        if not isinstance(value, torch.Tensor):
            raise ValueError(f"'{name}' of the optimizer is no tensor")
        step = name == "step" and value.ndim == 0
        if not step and (value.shape, value.dtype) != (parameter.shape, parameter.dtype):
            raise ValueError(
                f"'{name}' of the optimizer has the shape {tuple(value.shape)}, where its "
                f"parameter has {tuple(parameter.shape)}"
            )
        if not torch.isfinite(value).all():
            raise ValueError(f"'{name}' of the optimizer is not finite")


def _as_state(content: dict[str, Any]) -> TrainingState:
    position = Position(*(content["position"][name] for name in ("stage", "epoch", "step")))
    counts = (position.stage, position.epoch, position.step)
    if not all(type(count) is int and count >= 0 for count in counts):
        raise ValueError(f"the position {counts}")
    tables = (content["method"], content["tally"], content["optimizer"] or {"state": {}})
    if not all(isinstance(table, dict) for table in tables):
        raise TypeError("the tables of state")
    if not all(isinstance(value, torch.Tensor) for value in content["method"].values()):
        raise TypeError("the state of the method")
    seconds = content["seconds"]
    if not isinstance(seconds, float) or not 0 <= seconds < math.inf:
        raise ValueError(f"the duration {seconds}")
    tally = {str(name): [float(sum_), n] for name, (sum_, n) in content["tally"].items()}
    for total, count in tally.values():
        if type(count) is not int or count < 1 or not math.isfinite(total):
            raise ValueError(f"a mean over {count} steps")
    return TrainingState(
        position=position,
        method=content["method"],
        optimizer=content["optimizer"],
        tally=tally,
        seconds=seconds,
    )
