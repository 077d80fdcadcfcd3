"""How far reviewers agree, and how long they worked. Pure functions of answers.

Symbols: p_o the share of items on which two reviewers agree, p_e the share that would be expected
if each answered at random with the frequencies of the own answers, kappa = (p_o - p_e) / (1 - p_e)
(Cohen 1960).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from onesided.storage.answers import Answer, is_sure, moment

BREAK = 300.0
"""Seconds between two answers of one person from which the time between them is no work."""
FIRST = 10.0
"""Seconds that the first answer of a sitting is taken to have taken: nobody saw it begin."""


@dataclass(frozen=True)
class PairAgreement:
    """What two reviewers decided on the items that both decided.

    Attributes:
        reviewers: Their names.
        items: On how many items both are sure.
        agreed: On how many of them they say the same.
        kappa: Cohen's kappa; None where it is not defined, because both gave one answer only.
    """

    reviewers: tuple[str, str]
    items: int
    agreed: int
    kappa: float | None

    @property
    def share(self) -> float:
        """Share of the items on which they agree."""
        return self.agreed / self.items

    def __str__(self) -> str:
        first, second = self.reviewers
        kappa = (
            "kappa is not defined, since both gave only one kind of answer"
            if self.kappa is None
            else f"Cohen's kappa {self.kappa:.2f}"
        )
        return (
            f"{first} and {second} agree on {self.agreed} of {self.items} items "
            f"({self.share:.0%}); {kappa}"
        )


def agreement(answers: Iterable[Answer]) -> list[PairAgreement]:
    """Return how far each two reviewers agree, from the answers that hold."""
    sure: dict[str, dict[str, bool]] = {}
    for each in answers:
        if is_sure(each):
            sure.setdefault(each.reviewer, {})[each.item] = each.answer == "positive"
    found = []
    for first, second in combinations(sorted(sure), 2):
        both = sorted(sure[first].keys() & sure[second].keys())
        if both:
            pairs = [(sure[first][item], sure[second][item]) for item in both]
            agreed = sum(one == other for one, other in pairs)
            found.append(PairAgreement((first, second), len(both), agreed, cohens_kappa(pairs)))
    return found


def cohens_kappa(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Return Cohen's kappa of pairs of answers; None where chance alone would agree on all."""
    count = len(pairs)
    observed = sum(one == other for one, other in pairs) / count
    first = sum(one for one, _ in pairs) / count
    second = sum(other for _, other in pairs) / count
    expected = first * second + (1 - first) * (1 - second)
    return None if expected == 1 else (observed - expected) / (1 - expected)


def working_seconds(entries: Iterable[Answer]) -> float:
    """Return how long people worked, from all their entries; long gaps are no work."""
    times: dict[str, list[float]] = {}
    for each in entries:
        if (given := moment(each.time)) is not None:
            times.setdefault(each.reviewer, []).append(given.timestamp())
    total = 0.0
    for own in times.values():
        gaps = [after - before for before, after in pairwise(sorted(own))]
        total += FIRST + sum(gap if gap <= BREAK else FIRST for gap in gaps)
    return total
