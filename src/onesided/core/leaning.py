"""Figures that lean to one side: the words that say so, wherever a person meets them.

In core, because a page is written without the mathematics of figures.
"""

OWN_SCORES = "BBE on this model's held-out scores, too high where negatives are among the best"
"""Origin of a prior that nobody named: no second opinion, as it rests on what it is to judge."""
OPTIMISTIC, PESSIMISTIC = "optimistically", "pessimistically"
"""What precedes a figure whose prior may be too high: chance is in its interval, this is not."""


def as_leaning(label: str, leaning: str) -> str:
    """Return the label of a figure that leans: `Precision, optimistically: share of ...`."""
    title, colon, explained = label.partition(": ")
    return f"{title}, {leaning}{colon}{explained}"


def leaning_of(label: str) -> str:
    """Return OPTIMISTIC or PESSIMISTIC where `as_leaning` made the label, and nothing otherwise."""
    title = label.partition(": ")[0]
    return next(
        (leaning for leaning in (OPTIMISTIC, PESSIMISTIC) if title.endswith(f", {leaning}")), ""
    )
