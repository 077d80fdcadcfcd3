"""Figures that are bounds: the words that say so, wherever a person meets them.

In core, because a page is written without the mathematics of figures.
"""

OWN_SCORES = "BBE on this model's held-out scores, too high where negatives are among the best"
"""Origin of a prior that nobody named: no second opinion, as it rests on what it is to judge."""
AT_MOST, AT_LEAST = "at most", "at least"
"""What precedes a figure that is a bound, because its prior may be too high."""


def as_bound(label: str, bound: str) -> str:
    """Return the label of a figure that is a bound: `Precision, at most: share of ...`."""
    title, colon, explained = label.partition(": ")
    return f"{title}, {bound}{colon}{explained}"


def bound_of(label: str) -> str:
    """Return AT_MOST or AT_LEAST where `as_bound` made the label, and nothing otherwise."""
    title = label.partition(": ")[0]
    return next((bound for bound in (AT_MOST, AT_LEAST) if title.endswith(f", {bound}")), "")
