"""Score, rank, decision and role of every building: one row each, also for skipped ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float64, Int64

from onesided.data.problem.dataset import Selection
from onesided.engine.model_file import load_model
from onesided.geo.input.footprints import Buildings, id_text
from onesided.geo.scene.chips import Chips
from onesided.metrics.calibration import Calibration

OURS = ("score", "probability", "rank", "decision", "role", "reason")
"""Columns that the map adds."""


def decisions_of(
    scores: Float64[np.ndarray, "n"], threshold: float, rejected: Bool[np.ndarray, "n"] | None
) -> list[str | None]:
    """Return positive or negative, None for a skipped building; what people reject is negative."""
    words = np.where(scores > threshold, "positive", "negative").astype(object)
    if rejected is not None:
        words[rejected] = "negative"
    words[np.isnan(scores)] = None
    decisions: list[str | None] = words.tolist()
    return decisions


def roles_of(
    marked: Bool[np.ndarray, "n"],
    held_out: Bool[np.ndarray, "n"],
    rejected: Bool[np.ndarray, "n"] | None,
) -> list[str]:
    """Return positive, negative or unlabelled, "held-out" in front if not trained on."""
    words = np.where(marked, "positive", "unlabelled").astype(object)
    if rejected is not None:
        words[rejected] = "negative"
    roles: list[str] = np.where(held_out, "held-out " + words, words).tolist()
    return roles


def ranks_of(
    scores: Float64[np.ndarray, "n"], is_open: Bool[np.ndarray, "n"]
) -> Int64[np.ndarray, "n"]:
    """Return the order in which to check open buildings; equal scores in the file's order."""
    rows = np.flatnonzero(~np.isnan(scores) & is_open)
    ranks = np.zeros(len(scores), np.int64)
    ranks[rows[np.argsort(-scores[rows], kind="stable")]] = np.arange(1, len(rows) + 1)
    return ranks


@dataclass(frozen=True)
class MapTable:
    """Scores and what follows from them.

    Attributes:
        scores: From 0 to 1, NaN where a building was skipped.
        marked: Which buildings were marked as damaged.
        held_out: Which buildings were not trained on.
        copies: Buildings that look the same as another held-out or trained one: no figure
            counts them.
        reasons: Why a building was skipped, by its row.
        threshold: A building with a higher score is called damaged.
        curve: From scores to probabilities; None where the map has no such column.
        rejected: Which buildings reviewers call undamaged; None where nobody did.
    """

    buildings: Buildings
    scores: Float64[np.ndarray, "n"]
    marked: Bool[np.ndarray, "n"]
    held_out: Bool[np.ndarray, "n"]
    reasons: Mapping[int, str]
    threshold: float
    copies: Bool[np.ndarray, "n"] | None = None
    curve: Calibration | None = None
    rejected: Bool[np.ndarray, "n"] | None = None

    def __len__(self) -> int:
        return len(self.buildings)

    @property
    def scored(self) -> Bool[np.ndarray, "n"]:
        """Which buildings have a score."""
        scored: Bool[np.ndarray, n] = ~np.isnan(self.scores)
        return scored

    @property
    def counted(self) -> Bool[np.ndarray, "n"]:
        """Which buildings count in figures: held out, and no copies."""
        return self.held_out if self.copies is None else self.held_out & ~self.copies

    @property
    def open(self) -> Bool[np.ndarray, "n"]:
        """Which buildings nobody has marked or rejected."""
        return ~self.marked if self.rejected is None else ~(self.marked | self.rejected)

    @property
    def ranks(self) -> Int64[np.ndarray, "n"]:
        """The order in which to check open buildings, from 1; 0 for all others."""
        return ranks_of(self.scores, self.open)

    @property
    def decisions(self) -> list[str | None]:
        """Positive or negative, None for a skipped building."""
        return decisions_of(self.scores, self.threshold, self.rejected)

    @property
    def roles(self) -> list[str]:
        """Positive, negative or unlabelled, "held-out" in front if not trained on."""
        return roles_of(self.marked, self.held_out, self.rejected)

    def columns(self) -> dict[str, np.ndarray]:
        """Return the footprints' attributes and ours; on a clash theirs are renamed."""
        names, attributes = self.buildings.names, self.buildings.columns
        # `fid` is the key of a GeoPackage; databases ignore case.
        taken = {*OURS, "fid", "geom"}
        theirs: dict[str, np.ndarray] = {}
        has_id = any(
            column.lower() == "id" and names == tuple(map(id_text, values))
            for column, values in attributes.items()
        )
        if not has_id:
            taken.add("id")
            theirs["id"] = np.array(names, object)
        for column, values in attributes.items():
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
            **({"probability": self.curve.of(self.scores)} if self.curve else {}),
            "rank": ranks,
            "decision": np.array(self.decisions, object),
            "role": np.array(self.roles, object),
            "reason": np.array(reasons, object),
        }


def score_chips(
    run: Path,
    buildings: Buildings,
    chips: Chips,
    *,
    marked: Bool[np.ndarray, "n"],
    held_out: Bool[np.ndarray, "n"],
    known: Float64[np.ndarray, "n"] | None = None,
    copies: Bool[np.ndarray, "n"] | None = None,
    rejected: Bool[np.ndarray, "n"] | None = None,
    elsewhere: bool = False,
) -> MapTable:
    """Return the map by the model of a run folder: a score for every building with a chip.

    `known` holds scores by models that were not trained on the building, NaN where there is none.
    A model that was trained elsewhere gives no probabilities: they rest on the share of damaged
    buildings there.
    """
    predictor, _ = load_model(run)
    scores = np.full(len(chips.values), np.nan) if known is None else known
    rows = np.flatnonzero(chips.kept & np.isnan(scores))
    if len(rows):
        scores[rows] = predictor.scores(Selection(chips.values, rows))
    return MapTable(
        buildings,
        scores,
        marked,
        held_out,
        chips.reasons,
        predictor.threshold,
        copies,
        None if elsewhere else predictor.calibration,
        rejected,
    )
