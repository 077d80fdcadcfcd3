"""Checkpoints: all that a run needs to resume exactly, in one file that is never half written.

The file holds tensors, numbers and strings and is read with `weights_only=True`: a file
that would execute code is refused. It holds no random generators, because randomness is a
function of the clock.
"""

import math
import pickle
import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from onesided.core.errors import CheckpointError, first_line
from onesided.storage.atomic import replacing

FORMAT = 1


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
        with replacing(self.path) as file:
            try:
                torch.save(content, file)
            except RuntimeError as error:  # so torch's zip writer reports a full disk
                raise OSError(str(error)) from error

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
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            lacks = isinstance(error, KeyError)
            reason = f"it lacks {error}" if lacks else "no run saves such a state"
            raise self.damaged(reason) from None

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            _check_sums(path)
            content = torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError:
            raise CheckpointError(
                f"{path} holds more than tensors, numbers and strings. It was not read, and "
                "nothing in it was executed. Restore it from a copy you trust, or use --overwrite."
            ) from None
        except (RuntimeError, EOFError, zipfile.BadZipFile, ValueError, KeyError, OSError) as error:
            raise self.damaged(first_line(error)) from None
        if not isinstance(content, dict):
            raise self.damaged("it is not a table")
        return content

    def damaged(self, reason: str) -> CheckpointError:
        """Return the error that refuses this file, with the reason and the remedy."""
        return CheckpointError(
            f"{self.path} is damaged ({reason}). Restore it from a copy, or use --overwrite to "
            "start again."
        )


def _check_sums(path: Path) -> None:
    """Check the checksum of every part: torch would take flipped bits for weights."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            wrong = archive.testzip()
        if wrong is not None:
            raise ValueError(f"the part {wrong} does not have its checksum")


def _as_state(content: dict[str, Any]) -> TrainingState:
    position = Position(*(content["position"][name] for name in ("stage", "epoch", "step")))
    counts = (position.stage, position.epoch, position.step)
    if not all(isinstance(count, int) and count >= 0 for count in counts):
        raise ValueError(f"the position {counts}")
    tables = (content["method"], content["tally"], content["optimizer"] or {"state": {}})
    if not all(isinstance(table, dict) for table in tables):
        raise TypeError("the tables of state")
    if not all(isinstance(value, torch.Tensor) for value in content["method"].values()):
        raise TypeError("the state of the method")
    seconds = content["seconds"]
    if not isinstance(seconds, float) or not 0 <= seconds < math.inf:
        raise ValueError(f"the duration {seconds}")
    return TrainingState(
        position=position,
        method=content["method"],
        optimizer=content["optimizer"],
        tally={str(name): [float(total), int(n)] for name, (total, n) in content["tally"].items()},
        seconds=seconds,
    )
