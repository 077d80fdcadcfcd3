"""The log of a run: one JSON line per epoch."""

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

from onesided.core.batch import Losses
from onesided.core.clock import Clock
from onesided.core.errors import OnesidedError
from onesided.storage.atomic import flush_folder, write_text
from onesided.storage.optional import library
from onesided.storage.own_file import MOST_BYTES, open_own

Row = dict[str, Any]
LARGEST = 1e300
"""A damaged log may hold integers that are no floats."""


@dataclass
class Tally:
    """Sums of this epoch's losses and watched numbers, as [sum, count] by name."""

    sums: dict[str, list[float]] = field(default_factory=dict)

    def add(self, losses: Losses) -> None:
        """Count one step; a number that is not finite is left out of the mean."""
        for group, values in (("loss", losses.terms), ("watched", losses.watched)):
            for name, value in values.items():
                number = float(value.detach())
                if math.isfinite(number):
                    entry = self.sums.setdefault(f"{group}.{name}", [0.0, 0])
                    entry[0] += number
                    entry[1] += 1

    def means(self) -> dict[str, dict[str, float]]:
        """Return {"loss": {...}, "watched": {...}}, each the mean over the epoch's steps."""
        out: dict[str, dict[str, float]] = {"loss": {}, "watched": {}}
        for name, (total, count) in self.sums.items():
            group, _, key = name.partition(".")
            out[group][key] = total / count
        return out


class EpochLog:
    """log.jsonl of a run, or nothing when `path` is None."""

    def __init__(self, path: Path | None = None, *, tensorboard: bool = False) -> None:
        self.path = path
        self._board = _tensorboard_writer(path.parent) if path and tensorboard else None

    def rewind(self, clock: Clock) -> None:
        """Delete rows from this epoch on: the resumed run writes them again.

        So does it with a line that is incomplete because the run was killed, and with a damaged
        one: the log tells of a run and is never a reason to stop it.
        """
        if self.path is None or not self.path.exists():
            return
        kept = []
        for row in self._rows():
            if row["stage"] == clock.stage and row["epoch"] >= clock.epoch:
                break
            kept.append(row)
        write_text(self.path, "".join(json.dumps(row) + "\n" for row in kept))

    def rows(self) -> list[Row]:
        """Return the whole rows of all epochs so far; none where nothing is kept."""
        return list(self._rows())

    def seconds(self) -> float | None:
        """Return the training time up to the last whole row, over all starts of the run."""
        times = [row.get("seconds") for row in self._rows()]
        known = [float(time) for time in times if _is_number(time) and time >= 0]
        return known[-1] if known else None

    def _rows(self) -> Iterator[Row]:
        """Yield the whole rows; what is damaged between them is left out."""
        if self.path is None:
            return
        try:
            with open_own(self.path) as file:
                lines = file.read(MOST_BYTES).splitlines()
        except OSError:
            return  # no log, or none that can be read: the next row begins a new one
        for line in lines:
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if _is_row(row):
                yield row

    def write(self, row: Mapping[str, Any]) -> None:
        """Append one epoch."""
        if self.path is not None:
            if self.path.is_dir() or self.path.is_fifo():
                raise OnesidedError(
                    f"{self.path} is no file, and the log of the run is written there. Move it "
                    "away, and give the same command again."
                )
            is_new = not self.path.exists()
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
                # The checkpoint that follows says that this epoch is in the log.
                file.flush()
                os.fsync(file.fileno())
            if is_new:
                flush_folder(self.path.parent)
        if self._board is not None:
            for group in ("loss", "watched"):
                for name, value in row[group].items():
                    self._board.add_scalar(f"{group}/{name}", value, row["epoch"])
            self._board.flush()


def _is_row(row: object) -> bool:
    """Whether a row has what a resumed run and a report rely on."""
    if not isinstance(row, dict) or not isinstance(row.get("stage"), str):
        return False
    epoch, groups = row.get("epoch"), (row.get("loss"), row.get("watched"))
    sound = all(
        isinstance(group, dict) and all(map(_is_number, group.values())) for group in groups
    )
    curve = row.get("proxy_auc")
    sound = sound and (curve is None or _is_number(curve))
    return type(epoch) is int and epoch >= 0 and sound


def _is_number(value: object) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < LARGEST


def _tensorboard_writer(folder: Path) -> Any:  # noqa: ANN401 - an optional package's class
    library("tensorboard", "train.tensorboard")
    from torch.utils.tensorboard.writer import SummaryWriter

    return SummaryWriter(str(folder / "tensorboard"))
