"""Numbers that single precision merges: methods work with seven digits, files may need more."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float32, Float64

NARROW = 1e-3
"""Only columns whose numbers differ by less than this part of their size can lose much: single
precision still tells thousands of values apart beyond it."""
MERGED = 0.5
MOST_NAMED = 3


def merged_columns(
    exact: Float64[np.ndarray, "n d"], single: Float32[np.ndarray, "n d"], names: Sequence[str]
) -> tuple[str, ...]:
    """Return a sentence where half of a column's different numbers, or more, became equal."""
    if not exact.size:
        return ()
    low, high = exact.min(axis=0), exact.max(axis=0)
    largest = np.maximum(np.abs(low), np.abs(high))
    with np.errstate(over="ignore"):
        narrow = np.flatnonzero(
            (high > low) & ((high - low < NARROW * largest) | (largest < 1e-37))
        )
    found = [
        names[column] if column < len(names) else f"number {column}"
        for column in narrow.tolist()
        if len(np.unique(single[:, column])) < MERGED * len(np.unique(exact[:, column]))
    ]
    if not found:
        return ()
    shown = ", ".join(f"'{name}'" for name in found[:MOST_NAMED])
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return (
        f"Numbers of {shown}{more} differ by less than seven digits tell, so most of what they "
        "say is lost. Subtract the smallest value of the column first, or scale it.",
    )
