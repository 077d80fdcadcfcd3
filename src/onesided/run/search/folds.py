"""The folds of a problem: copies and groups stay on one side."""

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Int64

from onesided.core.errors import DataError
from onesided.core.folds import Groups, assign_folds, joined_groups
from onesided.core.rng import numpy_generator
from onesided.data.problem.content import digests_of
from onesided.data.problem.dataset import PUDataset
from onesided.run.load import channel_statistics
from onesided.run.problem import Problem


def groups_of(data: PUDataset) -> Groups:
    """Return a number for each row; rows of one group, and rows of one content, share it.

    Where nobody looked for contents, or all differ, equal rows share one.
    """
    alike = list(digests_of(data.values)) if data.content is None else data.content
    _, groups = np.unique(np.asarray(alike), return_inverse=True)
    return groups if data.groups is None else joined_groups(groups, data.groups)


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
    whole = _whole(data, fold)
    if len(whole) < 2:
        # Groups of P alone took a fold each, and those with U share the others. At least two
        # groups then hold both: with fewer, P and U are dealt to every fold.
        both = _hold_both(data, groups)
        count = len(np.unique(groups[both]))
        fold = assign_folds(both, groups, min(folds, count), random)
        whole = _whole(data, fold)
    # Large groups can leave a fold without P or without U; it then joins the first whole one.
    kept = np.isin(fold, whole)
    merged = np.where(kept, np.searchsorted(whole, fold), 0)
    return merged.astype(np.int64)


def _whole(data: PUDataset, fold: Int64[np.ndarray, "n"]) -> list[int]:
    """Return the folds that hold both P and U."""
    return [
        number
        for number in range(int(fold.max()) + 1)
        if data.labelled[fold == number].any() and data.unlabelled[fold == number].any()
    ]


def _hold_both(data: PUDataset, groups: Groups) -> Bool[np.ndarray, "n"]:
    """Return which rows are of a group that holds both P and U."""
    found = np.intersect1d(groups[data.labelled], groups[data.unlabelled])
    return np.isin(groups, found)


def trained_on(
    problem: Problem, rows: Int64[np.ndarray, "rest"], others: Int64[np.ndarray, "part"]
) -> Problem:
    """Return the problem with only these training rows, and the others held out.

    Rows count P and U first, then the known negatives that are trained on. Vectors are
    standardised by these rows of P and U alone: what is held out must not decide how it is seen.
    """
    whole, of_split = problem.training.train, rows[rows < len(problem.split.train)]
    split = replace(
        problem.split,
        train=problem.split.train.some(of_split),
        held_out=whole.some(others),
        test=None,
    )
    training = replace(split, train=whole.some(rows)) if len(of_split) < len(rows) else split
    mean, std = problem.data.mean, problem.data.std
    if len(split.sample_shape) == 1 and mean:  # raw rows have none before they are encoded
        mean, std = channel_statistics(split.train.values)
    data = replace(problem.data, split=split, known_negatives=None, mean=mean, std=std)
    return replace(problem, data=data, training=training, unseen_negatives=None)
