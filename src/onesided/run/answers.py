"""Answers of people to the question whether an item is positive, as an audit counts them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.storage.answers import Answer, merge_answers, read_answers

WORDS = {"positive": POSITIVE, "negative": NEGATIVE, "unsure": UNKNOWN, "skip": UNKNOWN}
"""Answers; who skips an item has seen it, so it counts as unsure."""


@dataclass(frozen=True)
class Answers:
    """What reviewers say of items.

    Attributes:
        listed: Items of all lines, also those without an answer, in the order of the file.
        meant: Item to POSITIVE, NEGATIVE or UNKNOWN; the last answer of a reviewer counts, and a
            decided one counts more than an unsure one of somebody else.
        contradictory: Items that one reviewer calls positive and another negative: UNKNOWN.
    """

    listed: tuple[str, ...]
    meant: Mapping[str, int]
    contradictory: tuple[str, ...]


def answers_in(path: Path, *, column: str | None = "item", also: Sequence[Answer] = ()) -> Answers:
    """Return the answers of a file with the columns item, answer, and maybe reviewer, time.

    `column` is that of names; None finds it. `also` are answers that were given elsewhere.
    """
    lines = read_answers(path, column=column, may_lack=True)
    given = [line for line in lines if line.answer]
    merged = merge_answers({path.name: [*given, *also]})
    return Answers(
        tuple(dict.fromkeys(line.item for line in (*lines, *also))),
        {item: WORDS[settled.answer] for item, settled in merged.settled().items()},
        tuple(conflict.item for conflict in merged.conflicts),
    )
