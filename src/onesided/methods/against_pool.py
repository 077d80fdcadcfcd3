"""P against U as two ordinary classes: what the direct methods of our own share.

A classifier that tells P from U ranks items as one that tells positives from negatives does, if
P is a random sample of the positives (Elkan and Noto, KDD 2008): P(labelled | x) rises with
P(positive | x). Two things make that work in practice: both classes have the same total weight,
and no item is scored by a model that was taught "unlabelled" about it. Known negatives join the
class of U, in which they are the only ones whose label is sure.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64, Shaped
from scipy.special import expit
from torch import Tensor

from onesided.core.errors import CheckpointError, DataError
from onesided.core.folds import assign_folds, same_content, sides
from onesided.priors.bbe import best_bin

Features = Shaped[np.ndarray, "n d"]
Mask = Bool[np.ndarray, "n"]
Weights = Float64[np.ndarray, "n"]
FOLDS = 5


@dataclass(frozen=True)
class TrainingRows:
    """What a direct method is fitted to.

    Attributes:
        features: One row for each sample.
        labelled: Which rows are of P.
        negative: Which rows are known to be negative; None where none is.
        weights: How much each row counts; None where all count the same.
    """

    features: Features
    labelled: Mask
    negative: Mask | None = None
    weights: Weights | None = None

    def __len__(self) -> int:
        return len(self.features)

    @property
    def unlabelled(self) -> Mask:
        """Rows without any label."""
        return ~self.labelled if self.negative is None else ~(self.labelled | self.negative)

    def some(self, rows: Int64[np.ndarray, "m"]) -> "TrainingRows":
        """Return these rows alone."""
        return TrainingRows(
            self.features[rows],
            self.labelled[rows],
            None if self.negative is None else self.negative[rows],
            None if self.weights is None else self.weights[rows],
        )

    def balanced(self) -> Weights:
        """Return weights by which P and U count the same in total; over both their mean is 1.

        A known negative counts as much as an unlabelled row, and all of them together at most as
        much as U: they are seldom typical of all negatives, so U stays what it is.
        """
        if self.negative is None and self.weights is None:
            return equal_weights(self.labelled)
        given = np.ones(len(self)) if self.weights is None else self.weights
        kinds = {"positive": self.labelled, "unlabelled": self.unlabelled}
        half = 0.5 * sum(int(mask.sum()) for mask in kinds.values())
        balanced = np.zeros(len(self))
        for kind, mask in kinds.items():
            if not given[mask].sum():
                raise DataError(
                    f"The weights of all {kind} samples are zero in a part of the data that is "
                    "trained on. Give more of them a weight above zero."
                )
            balanced[mask] = given[mask] * (half / given[mask].sum())
        if self.negative is not None and given[self.negative].any():
            total, of_pool = given[self.negative].sum(), given[self.unlabelled].sum()
            balanced[self.negative] = given[self.negative] * (half / max(total, of_pool))
        return balanced


FitAndScore = Callable[[TrainingRows, Features], np.ndarray]
"""Fit to rows, and return the scores of other features."""


def equal_weights(positive: Mask) -> Weights:
    """Return weights with mean 1 by which both classes count the same in total."""
    share = float(positive.mean())
    weights: np.ndarray = np.where(positive, 0.5 / share, 0.5 / (1 - share))
    return weights


def logistic(log_odds: Float64[np.ndarray, "n"]) -> Float64[np.ndarray, "n"]:
    """Return scores from 0 to 1, in double precision: the top of a ranking has no ties."""
    scores: np.ndarray = expit(log_odds)
    return scores


def out_of_fold(
    data: TrainingRows, score: FitAndScore, rng: np.random.Generator
) -> Float64[np.ndarray, "n"]:
    """Return scores of all rows, each by a model that saw neither the row nor a copy of it."""
    labelled, unlabelled = data.labelled, data.unlabelled
    folds = min(FOLDS, int(labelled.sum()), int(unlabelled.sum()))
    if folds < 2:
        return score(data, data.features)
    scores = np.empty(len(data))
    fold = assign_folds(labelled, same_content(data.features), folds, rng)
    for _, rest, part in sides(fold):
        if not (unlabelled[rest].any() and labelled[rest].any()):
            raise DataError(
                "All positives, or all unlabelled samples, are copies of one another, so none is "
                "left to choose settings by. Give samples that differ."
            )
        scores[part] = score(data.some(rest), data.features[part])
    return scores


def with_likely_positive(
    data: TrainingRows, score: FitAndScore, rng: np.random.Generator
) -> TrainingRows:
    """Return the rows with the likely positives of U in P: as many as the estimated prior says.

    For a second pass. The prior is BBE's on out-of-fold scores, the positives are those of U with
    the highest scores. A known negative stays one.
    """
    scores = out_of_fold(data, score, rng)
    pool = np.flatnonzero(data.unlabelled)
    share = best_bin(scores[data.labelled], scores[pool]).ratio
    count = min(round(share * len(pool)), len(pool) - 1)
    positive = data.labelled.copy()
    positive[pool[np.argsort(-scores[pool], kind="stable")[:count]]] = True
    return replace(data, labelled=positive)


def checked_features(features: Features, width: int, title: str) -> np.ndarray:
    """Return finite float32 features of the known width, or refuse them."""
    if features.ndim != 2 or features.shape[1] != width:
        raise DataError(
            f"{title} was built for samples of {width} numbers each; got an array of shape "
            f"{features.shape}."
        )
    with np.errstate(over="ignore"):  # what overflows is refused below
        numbers = features.astype(np.float32)
    if not np.isfinite(numbers).all():
        raise DataError(
            f"{title} takes numbers, and the features hold NaN or infinity (beyond 3.4e38). "
            "Fill, drop or scale them."
        )
    return numbers


def checked_state(
    state: Mapping[str, Tensor], types: Mapping[str, torch.dtype], title: str
) -> dict[str, np.ndarray]:
    """Return the arrays of a saved model, or refuse those that are missing or of another kind."""
    if different := sorted(types.keys() ^ state.keys()):
        raise CheckpointError(f"These are not the numbers of {title}: see '{different[0]}'.")
    for name, value in state.items():
        if value.dtype != types[name] or value.ndim != 1:
            raise CheckpointError(
                f"The model is damaged: '{name}' of {title} should be a list of {types[name]}, "
                f"and is {value.dtype} of shape {tuple(value.shape)}."
            )
    return {name: value.cpu().numpy() for name, value in state.items()}
