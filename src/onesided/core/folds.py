"""Folds: every item belongs to one, and is scored by a model that did not see that fold."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Int64, Shaped

Groups = Int64[np.ndarray, "n"]
"""Items with the same number belong together and stay on one side of every division."""
GroupsOfBoth = tuple[Int64[np.ndarray, "..."], Int64[np.ndarray, "..."]]
"""The groups of positives and of unlabelled items, in one numbering."""


def assign_folds(
    labelled: Bool[np.ndarray, "n"], groups: Groups, folds: int, rng: np.random.Generator
) -> Int64[np.ndarray, "n"]:
    """Return the fold of each item: groups stay whole, and P and U are spread evenly.

    Groups are taken in random order, the largest first, and each goes to the fold that has the
    smallest share of P so far (of U, for a group without positives). With groups of one item
    that deals P and U like cards.
    """
    _, group_of = np.unique(groups, return_inverse=True)
    count = int(group_of.max()) + 1
    positives = np.bincount(group_of, weights=labelled, minlength=count)
    others = np.bincount(group_of, weights=~labelled, minlength=count)
    mixed = rng.permutation(count)
    # P first: positives are few, so their balance matters more than that of U.
    order = mixed[np.lexsort((-others[mixed], -positives[mixed]))]
    filled = np.zeros((folds, 2))
    fold_of_group = np.empty(count, np.int64)
    for group in order:
        by_positives = positives[group] > 0
        first, second = (0, 1) if by_positives else (1, 0)
        fold = int(np.lexsort((filled[:, second], filled[:, first]))[0])
        fold_of_group[group] = fold
        filled[fold] += positives[group], others[group]
    return fold_of_group[group_of]


def sides(
    fold: Int64[np.ndarray, "n"],
) -> Iterator[tuple[int, Int64[np.ndarray, "rest"], Int64[np.ndarray, "part"]]]:
    """Yield each fold with the rows outside and inside it."""
    for number in range(int(fold.max()) + 1):
        yield number, np.flatnonzero(fold != number), np.flatnonzero(fold == number)


def same_content(rows: Shaped[np.ndarray, "n ..."]) -> Groups:
    """Return one number for equal rows: a copy must not test the model that saw its original."""
    flat = np.ascontiguousarray(rows.reshape(len(rows), -1))
    whole = flat.view(np.dtype((np.void, flat.dtype.itemsize * flat.shape[1]))).ravel()
    _, number = np.unique(whole, return_inverse=True)
    return number.astype(np.int64)


def joined_groups(first: Shaped[np.ndarray, "n"], second: Shaped[np.ndarray, "n"]) -> Groups:
    """Return the finest groups in which both kinds of groups stay whole."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    _, one = np.unique(first, return_inverse=True)
    _, two = np.unique(second, return_inverse=True)
    size = int(one.max()) + int(two.max()) + 2
    links = coo_array((np.ones(len(one)), (one, two + one.max() + 1)), shape=(size, size))
    return connected_components(links, directed=False)[1][one].astype(np.int64)
