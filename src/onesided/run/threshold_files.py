"""Files of a run that follow its threshold: all are read before the first is written."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from onesided.core.errors import DataError, OnesidedError
from onesided.engine.model_file import DESCRIPTION, ModelDescription, write_description
from onesided.run.folder import REPORT_DATA, SCORES, read_json
from onesided.run.gallery import map_roles
from onesided.run.scored import UNREADABLE, Scored, arrays_of
from onesided.storage.atomic import write_arrays, write_text
from onesided.storage.table import csv_lines


@dataclass(frozen=True)
class StoredFiles:
    """What the files of a finished run say, read and found whole.

    Attributes:
        run: The folder.
        model: `model.json`.
        columns: First line of `scores.csv`.
        rows: Its other lines, in the order of their full scores.
        arrays: `report.npz`, None where there is none.
    """

    run: Path
    model: ModelDescription
    columns: list[str]
    rows: list[list[str]]
    arrays: dict[str, np.ndarray] | None

    @classmethod
    def read(cls, run: Path, scored: Scored) -> Self:
        """Read them, or refuse: a damaged file must not leave the others half moved."""
        model = ModelDescription.from_settings(read_json(run / DESCRIPTION), DESCRIPTION)
        columns, rows = _read_decisions(run / SCORES, len(scored.unlabelled))
        return cls(run, model, columns, rows, _read_report_data(run / REPORT_DATA))

    def write(self, scored: Scored, threshold: float) -> None:
        """Write them for another threshold."""
        changed = self.model.model_copy(update={"threshold": threshold})
        write_description(self.run, changed)
        called = int((scored.unlabelled > threshold).sum())
        place = self.columns.index("decision")
        decided = [list(row) for row in self.rows]
        for number, row in enumerate(decided):
            row[place] = "positive" if number < called else "negative"
        write_text(self.run / SCORES, csv_lines([self.columns, *decided]))
        if self.arrays is not None:
            self._write_report_data(self.arrays, scored, threshold)

    def _write_report_data(
        self, arrays: dict[str, np.ndarray], scored: Scored, threshold: float
    ) -> None:
        """Bring the map of features up to date, and leave out the pictures nearest the threshold.

        Those were chosen for the old one, and the pictures of the others are not in the run.
        """
        kept = {name: array for name, array in arrays.items() if not name.startswith("threshold_")}
        if "embedding_role" in kept:
            kept["embedding_role"] = map_roles(scored.train_labelled, scored.train, threshold)
        write_arrays(self.run / REPORT_DATA, kept)


def _read_decisions(path: Path, items: int) -> tuple[list[str], list[list[str]]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            columns, *rows = csv.reader(file, strict=True)
        columns.index("decision")
        if len(rows) != items or any(len(row) != len(columns) for row in rows):
            raise ValueError(f"expected {items} rows of {len(columns)} cells, as the run wrote it")
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(
            f"{path} cannot be read ({error}). Restore it, or train again with --overwrite."
        ) from None
    return columns, rows


def _read_report_data(path: Path) -> dict[str, np.ndarray] | None:
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as archive:
            return arrays_of(archive)
    except UNREADABLE as error:
        raise OnesidedError(
            f"{path} cannot be read ({error}). Restore it, or train again with --overwrite."
        ) from None
