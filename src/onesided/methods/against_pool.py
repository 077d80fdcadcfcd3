"""P against U as two ordinary classes: what the direct methods of our own share.

A classifier that tells P from U ranks items as one that tells positives from negatives does, if
P is a random sample of the positives (Elkan and Noto, KDD 2008): P(labelled | x) rises with
P(positive | x). Two things make that work in practice: both classes have the same total weight,
and no item is scored by a model that was taught "unlabelled" about it.
"""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from jaxtyping import Bool, Float64, Shaped
from scipy.special import expit
from torch import Tensor

from onesided.core.errors import CheckpointError, DataError
from onesided.core.folds import assign_folds, same_content, sides
from onesided.priors.bbe import best_bin

Features = Shaped[np.ndarray, "n d"]
Mask = Bool[np.ndarray, "n"]
FitAndScore = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Fit to features and labels, and return the scores of other features."""

FOLDS = 5


def equal_weights(positive: Mask) -> Float64[np.ndarray, "n"]:
    """Return weights with mean 1 by which both classes count the same in total."""
    share = float(positive.mean())
    weights: np.ndarray = np.where(positive, 0.5 / share, 0.5 / (1 - share))
    return weights


def logistic(log_odds: Float64[np.ndarray, "n"]) -> Float64[np.ndarray, "n"]:
    """Return scores from 0 to 1, in double precision: the top of a ranking has no ties."""
    scores: np.ndarray = expit(log_odds)
    return scores


def out_of_fold(
    features: Features, labelled: Mask, score: FitAndScore, rng: np.random.Generator
) -> Float64[np.ndarray, "n"]:
    """Return scores of all rows, each by a model that saw neither the row nor a copy of it."""
    folds = min(FOLDS, int(labelled.sum()), int((~labelled).sum()))
    if folds < 2:
        return score(features, labelled, features)
    scores = np.empty(len(features))
    fold = assign_folds(labelled, same_content(features), folds, rng)
    for _, rest, part in sides(fold):
        if labelled[rest].all() or not labelled[rest].any():
            raise DataError(
                "All positives, or all unlabelled samples, are copies of one another, so none is "
                "left to choose settings by. Give samples that differ."
            )
        scores[part] = score(features[rest], labelled[rest], features[part])
    return scores


def likely_positive(
    features: Features, labelled: Mask, score: FitAndScore, rng: np.random.Generator
) -> Mask:
    """Return P and the likely positives of U: as many as the estimated prior says.

    For a second pass. The prior is BBE's on out-of-fold scores, the positives are those of U with
    the highest scores.
    """
    scores = out_of_fold(features, labelled, score, rng)
    pool = np.flatnonzero(~labelled)
    share = best_bin(scores[labelled], scores[pool]).ratio
    count = min(round(share * len(pool)), len(pool) - 1)
    positive = labelled.copy()
    positive[pool[np.argsort(-scores[pool], kind="stable")[:count]]] = True
    return positive


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
