"""The words of label columns: one vocabulary for every file that we read."""

from collections.abc import Collection

from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN

NAMES = {POSITIVE: "positive", UNKNOWN: "unlabelled", NEGATIVE: "negative"}
"""Words that we write."""
WORDS = {
    **dict.fromkeys(("positive", "pos"), POSITIVE),
    **dict.fromkeys(("unlabelled", "unlabeled"), UNKNOWN),
    **dict.fromkeys(("negative", "neg"), NEGATIVE),
}
"""Words with one meaning in every file."""
ANSWERS = {
    **dict.fromkeys(("1", "yes", "true", "damaged", "damage"), POSITIVE),
    **dict.fromkeys(("unsure", "unknown", "skip"), UNKNOWN),
    **dict.fromkeys(("0", "no", "false", "undamaged", "no_damage", "no-damage"), NEGATIVE),
}
"""Answers to the question whether an item is positive, as files of buildings have them. In
other tables 0 is negative to some people and unlabelled to others."""


class NotALabel(ValueError):
    """A cell that holds no label; the message continues a sentence about its row."""


def label_in(text: str, *, among: Collection[int], answers: bool = False) -> int:
    """Return the class that a cell of a label column means, or raise `NotALabel`.

    A word means the same class in every file, but not every file may hold every class.
    -1 is refused everywhere: it is negative to some people and unlabelled to others.

    Args:
        text: The cell.
        among: Classes that this file may hold: POSITIVE, UNKNOWN, NEGATIVE.
        answers: Whether `ANSWERS` are labels in this file.
    """
    word = text.strip().lower()
    meant = (WORDS | ANSWERS if answers else WORDS).get(word)
    if meant is not None and meant in among:
        return meant
    *others, last = (name for label, name in NAMES.items() if label in among)
    hint = ""
    if word.lstrip("-+").replace(".", "").isdigit():
        hint = (
            " Of numbers, 1 is positive and 0 is negative."
            if answers
            else " Numbers are refused because 0 means negative to some and unlabelled to others."
        )
    raise NotALabel(f"the label '{text}' is none of {', '.join(others)} or {last}.{hint}")
