"""What people answered about items: one row for each answer, in files that can be merged.

A file is CSV with the columns `id` or `item`, `answer` (positive, negative, unsure, skip),
`reviewer` and `time` (ISO 8601). The map page writes it; a file with `label` instead of `answer` is
read too. An audit's file starts without answers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from onesided.core.errors import DataError
from onesided.storage.names import name_in_cell, spreadsheet_safe
from onesided.storage.table import column_called, csv_text, read_rows

SURE = ("positive", "negative")
ANSWERS = (*SURE, "unsure", "skip")
COLUMNS = ("id", "answer", "reviewer", "time")
NAMING = ("item", "id", "path", "name")
"""Columns that may hold the names of items, the likeliest first."""
_MEANINGS = {
    **{answer: answer for answer in ANSWERS},
    "damaged": "positive",
    "not damaged": "negative",
    "unlabelled": "unsure",
    "skipped": "skip",
}


@dataclass(frozen=True)
class Answer:
    """What somebody saw, when, why the item was shown, and in which round of review."""

    item: str
    answer: str
    reviewer: str = ""
    time: str = ""
    strategy: str = ""
    round: int = 0


@dataclass(frozen=True)
class Conflict:
    """An item that some call positive and others negative."""

    item: str
    answers: tuple[Answer, ...]

    def __str__(self) -> str:
        said = ", ".join(f"{each.reviewer}: {each.answer}" for each in self.answers)
        return f"{self.item} ({said})"


@dataclass(frozen=True)
class MergedAnswers:
    """The last answer of each reviewer on each item, the oldest first, and who disagrees."""

    answers: tuple[Answer, ...]
    conflicts: tuple[Conflict, ...]

    def settled(self) -> dict[str, Answer]:
        """Return one answer for each item: the last one, or unsure where people disagree.

        Somebody who is sure wins over somebody who is not.
        """
        found: dict[str, Answer] = {}
        for each in self.answers:
            before = found.get(each.item)
            if before is None or is_sure(each) or not is_sure(before):
                found[each.item] = each
        for conflict in self.conflicts:
            names = "; ".join(dict.fromkeys(each.reviewer for each in conflict.answers))
            last = max(conflict.answers, key=_order).time
            found[conflict.item] = Answer(conflict.item, "unsure", names, last)
        return found


def read_answers(path: Path, *, column: str | None = "id", may_lack: bool = False) -> list[Answer]:
    """Return the answers of a file, in its order.

    Args:
        path: The file.
        column: The column of names; None takes the first of item, id, path and name.
        may_lack: Whether lines without an answer are returned, with "" for it, or refused.
    """
    known = {**_MEANINGS, "": ""} if may_lack else _MEANINGS
    rows = read_rows(path, () if column is None else (column,))
    if column is None:
        first = rows[0].cells if rows else {}
        column = next((name for name in NAMING if name in first), "item")
    answers = []
    for row in rows:
        where = f"{path}, line {row.line}"
        cells = {column_called(name): cell.strip() for name, cell in row.cells.items()}
        item = name_in_cell(row.cells.get(column, ""))
        word = cells.get("answer", cells.get("label"))
        if not item:
            raise DataError(f"{where}: expected the name of an item in the column {column}.")
        if word is None:
            raise DataError(
                f"{path} needs the column 'answer'; the pages of a map and of a review write it."
            )
        answer = known.get(word.lower())
        if answer is None:
            raise DataError(f"{where}: the answer '{word}' is none of {', '.join(ANSWERS)}.")
        time = cells.get("time", "")
        if time and moment(time) is None:
            raise DataError(
                f"{where}: the time '{time}' is not as in 2026-05-31T14:00:00 (ISO 8601)."
            )
        answers.append(Answer(item, answer, name_in_cell(cells.get("reviewer", "")), time))
    return answers


def meaning_of(word: str) -> str | None:
    """Return the answer that a word means, also with capitals; None if it means none."""
    return _MEANINGS.get(word.strip().lower())


def moment(time: str) -> datetime | None:
    """Return when an answer was given, in UTC where nothing else is said; None if nobody knows."""
    try:
        found = datetime.fromisoformat(time)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _order(answer: Answer) -> datetime:
    """Return by what answers are ordered; those without a time come first, in their order."""
    return moment(answer.time) or datetime.min.replace(tzinfo=UTC)


def merge_answers(files: Mapping[str, Sequence[Answer]]) -> MergedAnswers:
    """Return the answers of several files as one, and where reviewers disagree.

    Of one reviewer the latest answer on an item counts. An answer without a reviewer counts as
    given by its file's name: two files are two people.
    """
    latest: dict[tuple[str, str], Answer] = {}
    for name, answers in files.items():
        for each in answers:
            given = each if each.reviewer else replace(each, reviewer=name)
            before = latest.get((given.item, given.reviewer))
            if before is None or _order(given) >= _order(before):
                latest[given.item, given.reviewer] = given
    ordered = tuple(
        sorted(latest.values(), key=lambda each: (_order(each), each.item, each.reviewer))
    )
    return MergedAnswers(ordered, tuple(_conflicts(ordered)))


def _conflicts(answers: Iterable[Answer]) -> list[Conflict]:
    by_item: dict[str, list[Answer]] = {}
    for each in answers:
        if is_sure(each):
            by_item.setdefault(each.item, []).append(each)
    return [
        Conflict(item, tuple(given))
        for item, given in by_item.items()
        if len({each.answer for each in given}) > 1
    ]


def is_sure(answer: Answer) -> bool:
    """Return whether somebody decided."""
    return answer.answer in SURE


def answers_text(answers: Iterable[Answer]) -> str:
    """Return answers as CSV."""
    return csv_text(
        COLUMNS,
        ((each.item, each.answer, spreadsheet_safe(each.reviewer), each.time) for each in answers),
    )
