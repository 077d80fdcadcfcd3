"""Whether positives lie in clumps: the same thing measured, photographed or written many times.

Ten frames of one scene, ten visits of one patient are no copies, but a model that has seen nine of
them finds the tenth. Held out row by row they make noise look learned. They are told, not joined:
kinds of positives may lie apart too, and only people know which it is.

    h_1 <= ... <= h_(n-1)   heights at which the positives join by single linkage, the edges of
                            their shortest tree
    k                       clumps: one more than there are heights above the widest gap

In a cloud of any shape each height is a little larger than the one before. Clumps leave a gap: the
heights inside of them, and those between them.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float64, Shaped

from onesided.data.problem.rows import measured_numbers, plain_words

GAP = 2.5
"""Least ratio of the heights on both sides of the gap."""
FEWEST = 4
"""Fewest clumps of several: two or three may be kinds of positives."""
IN_CLUMPS = 0.6
"""Least share of the positives that lie in a clump with others."""
LARGEST = 0.5
"""Largest share of one clump: a cloud with outliers far away is one clump with many others."""
LONG = 8
"""Words of a text, for texts with common words to be evidence."""
SEEN = 1000
"""Positives that are looked at: the number of distances is its square."""


def clumps(distances: Float64[np.ndarray, "pairs"]) -> int | None:
    """Return in how many clumps of several the positives lie, None where they lie in none.

    `distances` are those of all pairs, in the order of scipy's `pdist`.
    """
    from scipy.cluster.hierarchy import fcluster, linkage

    if len(distances) < FEWEST * (2 * FEWEST - 1):
        return None
    tree = linkage(distances, "single")
    heights, count = tree[tree[:, 2] > 0, 2], len(tree) + 1
    for below in np.flatnonzero(heights[1:] >= GAP * heights[:-1]):
        sizes = np.bincount(fcluster(tree, heights[below], "distance"))
        several = sizes[sizes > 1]
        are_clumps = (
            len(several) >= FEWEST
            and several.sum() >= IN_CLUMPS * count
            and several.max() <= LARGEST * count
        )
        if are_clumps:
            return len(several)
    return None


def clumps_told(positives: Shaped[np.ndarray, "n columns"]) -> tuple[str, ...]:
    """Return a sentence where these rows or vectors lie in clumps, none where they do not."""
    rows = positives[np.unique(np.linspace(0, len(positives) - 1, SEEN).astype(np.int64))]
    found = [clumps(distances) for distances in _distances(rows)]
    most = max((count for count in found if count), default=None)
    if most is None:
        return ()
    return (
        f"The positives lie in {most} clumps, far apart and each of items that are nearly alike. "
        "If a clump is one thing seen many times (frames of a film, visits of a patient, a text "
        "with a few changes), the figures mean little: say what belongs together with --group, "
        "and it is held out together.",
    )


def _distances(rows: Shaped[np.ndarray, "n columns"]) -> Iterator[Float64[np.ndarray, "pairs"]]:
    """Yield the distances of the rows by their numbers, and by the words of each text."""
    from scipy.spatial.distance import pdist

    numbers = measured_numbers(rows)
    if numbers.shape[1]:
        yield pdist(np.unique(numbers, axis=0))
    if rows.dtype != object:
        return
    for column in rows.T:
        texts = {plain_words(cell) for cell in column if isinstance(cell, str)}
        words = [set(text.split()) for text in sorted(texts)]
        if len(words) > 1 and np.median([len(each) for each in words]) >= LONG:
            yield _by_words(words)


def _by_words(texts: Sequence[set[str]]) -> Float64[np.ndarray, "pairs"]:
    """Return Jaccard's distance of all pairs: the share of their words that only one has."""
    from scipy.sparse import coo_array

    number = {word: row for row, word in enumerate(sorted(set().union(*texts)))}
    pairs = np.array([(row, number[word]) for row, text in enumerate(texts) for word in text])
    shape = (len(texts), len(number))
    holds = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=shape).tocsr()
    both, sizes = (holds @ holds.T).toarray(), holds.sum(axis=1)
    one, other = np.triu_indices(len(texts), 1)
    shared = both[one, other]
    distances: np.ndarray = 1 - shared / (sizes[one] + sizes[other] - shared)
    return distances
