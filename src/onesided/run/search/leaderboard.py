"""The candidates of a search in order, with what may be believed about the best."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int64

from onesided.core.folds import Groups
from onesided.metrics.intervals import auc_spread
from onesided.metrics.pu import proxy_auc
from onesided.metrics.selection import Difference, Optimism, difference, optimism
from onesided.run.search.candidates import AVERAGED, Candidate

CLEARLY = 2.0
"""Standard errors by which a candidate must be worse to be given up before its last fold."""
FEWEST_POSITIVES = 10
"""Positives that must be scored before a candidate is given up: the spread of two says little."""
TIED = 1.0
"""Standard errors within which two candidates count as equally good, and are averaged."""


@dataclass(frozen=True)
class Entry:
    """A candidate with its out-of-fold scores; NaN where it was given up before that fold.

    `negatives` are the scores of known negatives, which decide nothing here: they are seldom
    typical, and the choice is by P and U. `averages` names the entries that this one is the
    average of.
    """

    candidate: Candidate
    scores: Float64[np.ndarray, "n"]
    seconds: float
    negatives: Float64[np.ndarray, "k"] = field(default_factory=lambda: np.empty(0))
    averages: tuple[str, ...] = ()

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
        counted: Rows that figures count, one for each content; None counts all.
    """

    entries: tuple[Entry, ...]
    labelled: Bool[np.ndarray, "n"]
    fold: Int64[np.ndarray, "n"]
    groups: Groups
    counted: Bool[np.ndarray, "n"] | None = None

    def scored(self, entry: Entry) -> Bool[np.ndarray, "n"]:
        """Return which rows have a score and count."""
        known: np.ndarray = ~np.isnan(entry.scores)
        return known if self.counted is None else known & self.counted

    def auc(self, entry: Entry) -> float:
        """Return the proxy AUC over the rows that have a score."""
        known = self.scored(entry)
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
        """The highest; where models are averaged, their average stands for them.

        A model within chance of the best may as well be the better one, and their average is
        seldom worse than either: docs/benchmarks/selection.md compares rules. On equal figures
        the simpler one wins. A network above their average, but not above the best of them, is not
        the highest, and a part of an average does not beat it.
        """
        entries = self.complete
        if any(entry.averages for entry in entries):
            parts = [entry for entry in entries if entry.candidate.family in AVERAGED]
            highest = max(map(self.auc, parts), default=0.0)
            entries = [
                entry
                for entry in entries
                if entry.averages
                or (entry.candidate.family not in AVERAGED and self.auc(entry) > highest)
            ]
        return max(entries, key=lambda entry: (self.auc(entry), -entry.candidate.rank))

    def tied(self) -> list[Entry]:
        """Return the best of each family that can be averaged, if it is within chance of them."""
        best = [entry for name, entry in self._best_entries().items() if name in AVERAGED]
        if not best:
            return []
        highest = max(best, key=self.auc)
        return [entry for entry in best if self.within(entry, highest, TIED)]

    def within(self, entry: Entry, best: Entry, errors: float) -> bool:
        """Return whether an entry is at most so many standard errors below another."""
        if entry is best:
            return True
        gap = self._gap(entry, best)
        return gap.value >= -errors * gap.error

    def clearly_worse(self, entry: Entry, best: Entry) -> bool:
        """Return whether the rows scored so far show that an entry cannot win."""
        scored = int((self.labelled & self.scored(entry)).sum())
        return scored >= FEWEST_POSITIVES and not self.within(entry, best, CLEARLY)

    def _gap(self, entry: Entry, best: Entry) -> Difference:
        known = self.scored(entry) & self.scored(best)
        return difference(
            entry.scores[known], best.scores[known], self.labelled[known], self.groups[known]
        )

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

    def optimism(self) -> Optimism:
        """Return by how much the winner's figures are too high because it was chosen."""
        rows = slice(None) if self.counted is None else self.counted
        scores = np.stack([entry.scores[rows] for entry in self.complete])
        return optimism(scores, self.labelled[rows], self.groups[rows])

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
    known = board.scored(entry)
    scores, labelled = entry.scores[known], board.labelled[known]
    groups = board.groups[known]
    both = (groups[labelled], groups[~labelled])
    low, high = auc_spread(scores[labelled], scores[~labelled], both).interval(0.95)
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
