"""Phrases that several jobs say. Imports no torch: an exported model is ranked without it."""

from collections.abc import Sequence

MOST_SKIPPED = 5


def skipped_lines(skipped: Sequence[tuple[str, str]]) -> list[str]:
    """Return a line for each of the first files that could not be read, and one for the rest."""
    lines = [f"Skipped {name}: it {reason}." for name, reason in skipped[:MOST_SKIPPED]]
    more = len(skipped) - len(lines)
    return [*lines, f"And {count(more, 'more file')} that cannot be read."] if more else lines


def count(number: int, singular: str, plural: str | None = None) -> str:
    """Return `1 epoch` or `2 epochs`."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"
