"""The candidates of a search in order, with what may be believed about the best."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int64

from onesided.core.folds import Groups
from onesided.metrics.intervals import auc_spread
from onesided.metrics.pu import proxy_auc
from onesided.metrics.selection import Difference, difference, optimism
from onesided.run.search.candidates import Candidate

CLEARLY = 2.0
"""Standard errors by which a candidate must be worse to be given up before its last fold."""
FEWEST_POSITIVES = 10
"""Positives that must be scored before a candidate is given up: the spread of two says little."""
TIED = 1.0
"""Standard errors within which two candidates count as equal, and the simpler one wins."""


@dataclass(frozen=True)
class Entry:
    """A candidate with its out-of-fold scores; NaN where it was given up before that fold."""

    candidate: Candidate
    scores: Float64[np.ndarray, "n"]
    seconds: float

    @property
    def complete(self) -> bool:
        """Whether every row has a score."""
        return not np.isnan(self.scores).any()


@dataclass(frozen=True)
class Leaderboard:
    """All candidates on the same folds.

    Attributes:
        entries: In the order in which they were tried.
        labelled: Which rows are of P.
        fold: The fold of each row.
        groups: Rows that belong together.
    """

    entries: tuple[Entry, ...]
    labelled: Bool[np.ndarray, "n"]
    fold: Int64[np.ndarray, "n"]
    groups: Groups

    def auc(self, entry: Entry) -> float:
        """Return the proxy AUC over the rows that have a score."""
        known = ~np.isnan(entry.scores)
        scores, labelled = entry.scores[known], self.labelled[known]
        return proxy_auc(scores[labelled], scores[~labelled])

    @cached_property
    def complete(self) -> list[Entry]:
        """The candidates that were tried on every fold."""
        return [entry for entry in self.entries if entry.complete]

    @cached_property
    def highest(self) -> Entry:
        """The candidate with the highest proxy AUC."""
        return max(self.complete, key=self.auc)

    @cached_property
    def winner(self) -> Entry:
        """The best of the simplest family that is not worse than the highest beyond chance.

        Within a family nothing is simpler than the rest, so there the highest one counts: with
        few positives almost every penalty is within chance of the best.
        """
        highest = self.highest
        best = self._best_entries().values()
        tied = [entry for entry in best if self.within(entry, highest, TIED)]
        return min(tied, key=lambda entry: (entry.candidate.rank, -self.auc(entry)))

    def within(self, entry: Entry, best: Entry, errors: float) -> bool:
        """Return whether an entry is at most so many standard errors below another."""
        if entry is best:
            return True
        gap = self._gap(entry, best)
        return gap.value >= -errors * gap.error

    def clearly_worse(self, entry: Entry, best: Entry) -> bool:
        """Return whether the rows scored so far show that an entry cannot win."""
        scored = int((self.labelled & ~np.isnan(entry.scores)).sum())
        return scored >= FEWEST_POSITIVES and not self.within(entry, best, CLEARLY)

    def _gap(self, entry: Entry, best: Entry) -> Difference:
        known = ~np.isnan(entry.scores) & ~np.isnan(best.scores)
        return difference(entry.scores[known], best.scores[known], self.labelled[known])

    def best_of_families(self) -> dict[str, Candidate]:
        """Return the best candidate of each family that was tried on every fold."""
        return {family: entry.candidate for family, entry in self._best_entries().items()}

    def _best_entries(self) -> dict[str, Entry]:
        best: dict[str, Entry] = {}
        for entry in self.complete:
            family = entry.candidate.family
            if family not in best or self.auc(entry) > self.auc(best[family]):
                best[family] = entry
        return best

    def near(self) -> list[str]:
        """Return the families whose best is not clearly worse than the highest."""
        highest = self.highest
        return [
            entry.candidate.family
            for entry in self.complete
            if self.within(entry, highest, CLEARLY)
        ]

    def optimism(self) -> float:
        """Return by how much the winner's proxy AUC is too high because it was chosen."""
        scores = np.stack([entry.scores for entry in self.complete])
        return optimism(scores, self.labelled, self.groups)

    def to_json(self) -> list[dict[str, Any]]:
        """Return a row for the best candidate of each family, best first, given-up ones last.

        Intervals are those of a single candidate, before the correction for the choice. The
        figures of one that was given up are of fewer items, so they do not compare with others.
        """
        winner = self.winner
        rows = [_row(self, entry, winner) for entry in self._shown()]
        return sorted(rows, key=lambda row: (-row["folds"], -row["proxy_auc"]))

    def _shown(self) -> Sequence[Entry]:
        winner, best = self.winner, dict[str, Entry]()
        for entry in self.entries:
            family = entry.candidate.family
            kept = best.get(family)
            better = kept is None or (entry.complete, self.auc(entry)) > (
                kept.complete,
                self.auc(kept),
            )
            if kept is not winner and (entry is winner or better):
                best[family] = entry
        return list(best.values())


def _row(board: Leaderboard, entry: Entry, winner: Entry) -> dict[str, Any]:
    known = ~np.isnan(entry.scores)
    scores, labelled = entry.scores[known], board.labelled[known]
    low, high = auc_spread(scores[labelled], scores[~labelled]).interval(0.95)
    family = entry.candidate.family
    return {
        "name": entry.candidate.name,
        "method": entry.candidate.config.method_name,
        "words": entry.candidate.words,
        "proxy_auc": board.auc(entry),
        "low": low,
        "high": high,
        "folds": len(np.unique(board.fold[known])),
        "seconds": round(
            sum(each.seconds for each in board.entries if each.candidate.family == family), 3
        ),
        "tried": sum(each.candidate.family == family for each in board.entries),
        "won": entry is winner,
    }
