"""What the map says of every building: one row each, whoever was skipped included."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

from onesided.geo.input.footprints import Buildings, id_text

OURS = ("score", "rank", "decision", "role", "reason")
"""Columns that the map adds."""


@dataclass(frozen=True)
class MapTable:
    """Scores and what follows from them.

    Attributes:
        buildings: Names, places and attributes.
        scores: From 0 to 1, NaN where a building was skipped.
        marked: Which buildings were marked as damaged.
        held_out: Which buildings were kept out of training.
        reasons: Why a building was skipped, by its row.
        threshold: A score above it means damaged.
    """

    buildings: Buildings
    scores: Float64[np.ndarray, "n"]
    marked: Bool[np.ndarray, "n"]
    held_out: Bool[np.ndarray, "n"]
    reasons: Mapping[int, str]
    threshold: float

    def __len__(self) -> int:
        return len(self.buildings)

    @property
    def scored(self) -> Bool[np.ndarray, "n"]:
        """Which buildings have a score."""
        scored: Bool[np.ndarray, n] = ~np.isnan(self.scores)
        return scored

    @property
    def ranks(self) -> Int64[np.ndarray, "n"]:
        """The order in which to look at unmarked buildings, from 1; 0 for all others."""
        rows = np.flatnonzero(self.scored & ~self.marked)
        order = sorted(rows, key=lambda row: (-self.scores[row], self.buildings.names[row]))
        ranks = np.zeros(len(self), np.int64)
        ranks[order] = np.arange(1, len(order) + 1)
        return ranks

    @property
    def decisions(self) -> list[str | None]:
        """What the model says: positive or negative, None of a skipped building."""
        words = np.where(self.scores > self.threshold, "positive", "negative")
        return [
            str(word) if scored else None for word, scored in zip(words, self.scored, strict=True)
        ]

    @property
    def roles(self) -> list[str]:
        """Positive or unlabelled, after the word held-out for those not trained on."""
        words = np.where(self.marked, "positive", "unlabelled")
        return [
            f"held-out {word}" if out else str(word)
            for word, out in zip(words, self.held_out, strict=True)
        ]

    def _names_buildings(self, column: str) -> bool:
        """Return whether this is the column `id`, and holds what buildings are called here."""
        values = self.buildings.columns[column]
        return column.lower() == "id" and self.buildings.names == tuple(map(id_text, values))

    def columns(self) -> dict[str, np.ndarray]:
        """Return the attributes that came, and ours; theirs change their names, never ours."""
        names = self.buildings.names
        # `fid` is the key of a GeoPackage; databases do not tell capitals apart.
        taken = {*OURS, "fid", "geom"}
        if not any(self._names_buildings(column) for column in self.buildings.columns):
            taken.add("id")
        theirs = {"id": np.array(names, object)} if "id" in taken else {}
        for column, values in self.buildings.columns.items():
            name = column
            while name.lower() in taken:
                name = f"original_{name}"
            taken.add(name.lower())
            theirs[name] = values
        ranks = self.ranks.astype(np.float64)
        ranks[ranks == 0] = np.nan
        reasons = [self.reasons.get(row) for row in range(len(self))]
        return {
            **theirs,
            "score": self.scores,
            "rank": ranks,
            "decision": np.array(self.decisions, object),
            "role": np.array(self.roles, object),
            "reason": np.array(reasons, object),
        }
