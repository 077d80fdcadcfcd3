"""Marks that tell P from U although they are not what anybody looks for: a format, a column.

P is often collected in another way than U: it comes as .jpg from a telephone, from one laboratory,
with numbers of rows that follow each other. A model learns such a mark at once. Its figures are
then perfect, and nothing of it is left on other data. U holds positives too, so a mark that many
of P have and hardly any of U has cannot be a property of positives, unless they are rare.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64, Shaped

from onesided.data.problem.rows import plain_words
from onesided.metrics.alarm import TOLD_APART
from onesided.metrics.intervals import clopper_pearson, placements

MOST = 0.5
"""Least difference of the shares of P and of U that have a mark of files."""
MANY = 1 / 3
"""Least share of P that has a mark of rows."""
HARDLY = 0.03
"""Largest share of U that has it, for a column: what a proxy AUC of 0.985 means."""
SEEN = 2000
"""Rows of each side by which columns are judged."""
FILES_SEEN = 400
"""Files of each side whose format and size are looked at."""
NAMED = 3
"""Columns that a sentence names."""


@dataclass(frozen=True)
class Shares:
    """How many of P and of U have a mark."""

    positives: int
    of_positives: int
    unlabelled: int
    of_unlabelled: int

    @property
    def is_mark_of_files(self) -> bool:
        """Whether far more of P have it than of U, beyond chance.

        A format says nothing about what an image shows, so a difference is enough.
        """
        return self._least - clopper_pearson(self.unlabelled, self.of_unlabelled)[1] > MOST

    @property
    def is_mark_of_rows(self) -> bool:
        """Whether many of P have it, beyond chance, and hardly any of U."""
        hardly = self.unlabelled <= HARDLY * self.of_unlabelled
        return hardly and self._least > MANY

    @property
    def _least(self) -> float:
        return clopper_pearson(self.positives, self.of_positives)[0]

    def told(self, what: str) -> str:
        """Return the counts in words."""
        return (
            f"{self.positives} of {self.of_positives} positives {what}, and "
            f"{self.unlabelled} of {self.of_unlabelled} unlabelled items"
        )


def some(rows: Int64[np.ndarray, "n"], most: int) -> Int64[np.ndarray, "m"]:
    """Return some of these rows, evenly spread, the same ones every time."""
    return rows[np.unique(np.linspace(0, len(rows) - 1, most).astype(np.int64))]


def marks_of_files(
    positives: Sequence[Mapping[str, str]], unlabelled: Sequence[Mapping[str, str]]
) -> tuple[str, ...]:
    """Return a sentence where files of P and of U differ in facts such as format or size.

    Each file is its facts by name; a fact is what `Shares.told` says of the file.
    """
    found = []
    for name in positives[0] if positives and unlabelled else ():
        counts = [Counter(file[name] for file in side) for side in (positives, unlabelled)]
        value, count = max(counts[0].items(), key=lambda item: (item[1], item[0]))
        shares = Shares(count, len(positives), counts[1][value], len(unlabelled))
        if shares.is_mark_of_files:
            found.append(shares.told(value))
    if not found:
        return ()
    return (
        f"P and U differ in their files: {'; '.join(found)}. A model may learn that instead of "
        "what they show, and its figures mean nothing then. Take both from one source, and bring "
        "them to one format and size before.",
    )


def marks_of_rows(
    values: Shaped[np.ndarray, "n columns"], labelled: Bool[np.ndarray, "n"], names: Sequence[str]
) -> tuple[str, ...]:
    """Return a sentence where single columns of a table tell P from U."""
    positives, unlabelled = (some(np.flatnonzero(side), SEEN) for side in (labelled, ~labelled))
    found = []
    for column in range(values.shape[1]):
        one, other = values[positives, column], values[unlabelled, column]
        if told := next(_marks_of_column(one, other), None):
            name = names[column] if column < len(names) else f"number {column}"
            found.append(f"'{name}' ({told})")
    if not found:
        return ()
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return (
        f"Single columns tell positives from unlabelled items: {', '.join(found[:NAMED])}{more}. "
        "Where such a column says how or when a row was collected, leave it out: a model learns "
        "that instead, and its figures mean nothing. Otherwise hardly any positives are left to "
        "find.",
    )


def _marks_of_column(one: np.ndarray, other: np.ndarray) -> Iterator[str]:
    """Yield what tells these cells of P from those of U."""
    gaps = [np.array([_is_gap(cell) for cell in side], bool) for side in (one, other)]
    shares = Shares(int(gaps[0].sum()), len(one), int(gaps[1].sum()), len(other))
    if shares.is_mark_of_rows:
        yield shares.told("have a gap")
    one, other = one[~gaps[0]], other[~gaps[1]]
    if not len(one) or not len(other):
        return
    if isinstance(one[0], str) or isinstance(other[0], str):
        sides = [[{str(cell), *plain_words(str(cell)).split()} for cell in x] for x in (one, other)]
        counts = [Counter(word for words in side for word in words) for side in sides]
        # Sorted, since the order of a set changes from process to process.
        for word, count in sorted(counts[0].items(), key=lambda item: (-item[1], item[0])):
            shares = Shares(count, len(one), counts[1][word], len(other))
            if shares.is_mark_of_rows:
                yield shares.told(f"hold '{word[:40]}'")
        return
    auc = float(placements(one.astype(np.float64), other.astype(np.float64)).mean())
    if max(auc, 1 - auc) > TOLD_APART:
        yield f"positives are {'higher' if auc > 0.5 else 'lower'} in {max(auc, 1 - auc):.1%}"


def _is_gap(cell: object) -> bool:
    return cell is None or cell != cell
