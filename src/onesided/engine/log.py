"""The log of a run: one JSON line per epoch."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onesided.core.batch import Losses
from onesided.core.clock import Clock
from onesided.storage.atomic import write_text
from onesided.storage.optional import library

Row = dict[str, Any]


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

        So does it with a line that is incomplete because the run was killed.
        """
        if self.path is None or not self.path.exists():
            return
        kept = []
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                break
            if row["stage"] == clock.stage and row["epoch"] >= clock.epoch:
                break
            kept.append(line)
        write_text(self.path, "".join(line + "\n" for line in kept))

    def seconds(self) -> float | None:
        """Return the training time up to the last row, over all starts of the run."""
        if self.path is None or not self.path.exists():
            return None
        *_, last = self.path.read_text(encoding="utf-8").splitlines() or [""]
        return float(json.loads(last)["seconds"]) if last else None

    def write(self, row: Mapping[str, Any]) -> None:
        """Append one epoch."""
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        if self._board is not None:
            for group in ("loss", "watched"):
                for name, value in row[group].items():
                    self._board.add_scalar(f"{group}/{name}", value, row["epoch"])
            self._board.flush()


def _tensorboard_writer(folder: Path) -> Any:  # noqa: ANN401 - an optional package's class
    library("tensorboard", "train.tensorboard")
    from torch.utils.tensorboard.writer import SummaryWriter

    return SummaryWriter(str(folder / "tensorboard"))
