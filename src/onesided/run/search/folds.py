"""The folds of a problem: copies and groups stay on one side."""

import hashlib
from dataclasses import replace

import numpy as np
from jaxtyping import Int64

from onesided.core.errors import DataError
from onesided.core.folds import Groups, assign_folds
from onesided.core.rng import numpy_generator
from onesided.data.problem.dataset import PUDataset, Selection, bytes_of
from onesided.data.problem.samples import chunk_length
from onesided.run.load import channel_statistics
from onesided.run.problem import Problem


def groups_of(data: PUDataset) -> Groups:
    """Return a number for each row; rows of one group, and rows of equal content, share it."""
    values, digests = data.values, []
    length = chunk_length(values.sample_shape)
    for start in range(0, len(values), length):
        chunk = values.take(slice(start, start + length))
        digests += [hashlib.blake2b(bytes_of(row), digest_size=16).digest() for row in chunk]
    _, copies = np.unique(np.array(digests), return_inverse=True)
    return copies if data.groups is None else _joined(copies, data.groups)


def _joined(first: Groups, second: Groups) -> Groups:
    """Return the finest groups in which both kinds of groups stay whole."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    _, one = np.unique(first, return_inverse=True)
    _, two = np.unique(second, return_inverse=True)
    size = int(one.max()) + int(two.max()) + 2
    links = coo_array((np.ones(len(one)), (one, two + one.max() + 1)), shape=(size, size))
    return connected_components(links, directed=False)[1][one].astype(np.int64)


def folds_of(data: PUDataset, groups: Groups, folds: int, seed: int) -> Int64[np.ndarray, "n"]:
    """Return the fold of each row; fewer folds where positives or groups are few."""
    distinct = min(len(np.unique(groups[mask])) for mask in (data.labelled, data.unlabelled))
    if distinct < 2:
        raise DataError(
            "All positives, or all unlabelled items, are one group or copies of one item, so none "
            "is left to test on. Give items that differ, or name the method with --method."
        )
    random = numpy_generator(seed, "folds")
    fold = assign_folds(data.labelled, groups, min(folds, distinct), random)
    # Large groups can leave a fold without P or without U; it then joins the first whole one.
    whole = [
        number
        for number in range(int(fold.max()) + 1)
        if len(np.unique(data.labelled[fold == number])) == 2
    ]
    if len(whole) < 2:
        raise DataError(
            f"The items fall into {len(np.unique(groups))} groups, too few to divide P and U into "
            "two parts by. Give more groups, or name the method with --method."
        )
    kept = np.isin(fold, whole)
    merged = np.where(kept, np.searchsorted(whole, fold), 0)
    return merged.astype(np.int64)


def rows_of(data: PUDataset, rows: np.ndarray) -> PUDataset:
    """Return some rows of a PU data set."""
    return PUDataset(
        values=Selection(data.values.pool, data.values.index[rows]),
        labelled=data.labelled[rows],
        truth=data.truth[rows],
        names=tuple(data.names[row] for row in rows),
        negative=None if data.negative is None else data.negative[rows],
        groups=None if data.groups is None else data.groups[rows],
    )


def trained_on(problem: Problem, rows: np.ndarray, held_out: PUDataset) -> Problem:
    """Return the problem with only these rows to train on, and others held out.

    Vectors are standardised by these rows alone: what is held out must not decide how it is seen.
    """
    train = rows_of(problem.split.train, rows)
    split = replace(problem.split, train=train, held_out=held_out, test=None)
    mean, std = problem.data.mean, problem.data.std
    if len(split.sample_shape) == 1 and mean:  # raw rows have none before they are encoded
        mean, std = channel_statistics(split.train.values)
    data = replace(problem.data, split=split, known_negatives=None, mean=mean, std=std)
    return replace(problem, data=data, training=split, unseen_negatives=None)
