"""All scores of a run, in full precision, and the figures that follow from them."""

import zipfile
import zlib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
from jaxtyping import Bool, Float64, Int64

from onesided.core.errors import DataNotFound, OnesidedError
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.data.problem.dataset import Scenario
from onesided.metrics.figure import NO_PRIOR, Figure, PUEvaluation
from onesided.metrics.intervals import clopper_pearson
from onesided.metrics.pu import evaluate_pu
from onesided.metrics.truth import truth_metrics
from onesided.run.folder import AGAIN
from onesided.run.prior import NoPrior, PriorUsed, own_prior, own_prior_twice
from onesided.storage.atomic import write_arrays

UNREADABLE = (
    *(OSError, ValueError, TypeError, EOFError, AttributeError),
    *(zipfile.BadZipFile, zlib.error),
)
"""What numpy raises for a file that is no archive of arrays."""


@dataclass(frozen=True)
class Scored:
    """Scores of each part of the data, in row order; None for a part that a run lacks.

    `train` and `held_out` are of P and U, `negatives` of known negatives that were not trained
    on. `test_truth` holds true classes, for reporting only. After a search `train` holds
    out-of-fold scores and `fold` says which model gave each: no item was scored by a model that
    was trained on it.
    """

    train: Float64[np.ndarray, "n"]
    train_labelled: Bool[np.ndarray, "n"]
    held_out: Float64[np.ndarray, "h"] | None = None
    held_out_labelled: Bool[np.ndarray, "h"] | None = None
    test: Float64[np.ndarray, "t"] | None = None
    test_truth: Int64[np.ndarray, "t"] | None = None
    negatives: Float64[np.ndarray, "k"] | None = None
    fold: Int64[np.ndarray, "n"] | None = None

    @property
    def unlabelled(self) -> Float64[np.ndarray, "u"]:
        """All of U: the items of `scores.csv`, though not in its order."""
        parts = [self.train[~self.train_labelled]]
        if self.held_out is not None and self.held_out_labelled is not None:
            parts.append(self.held_out[~self.held_out_labelled])
        return np.concatenate(parts)

    def held_out_pair(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the scores of P and of U by models not trained on them; None if there are none.

        Those of the held-out part, and after a search those of every training item.
        """
        parts = []
        if self.fold is not None:
            parts.append((self.train, self.train_labelled))
        if self.held_out is not None and self.held_out_labelled is not None:
            parts.append((self.held_out, self.held_out_labelled))
        if not parts:
            return None
        scores, labelled = (np.concatenate(part) for part in zip(*parts, strict=True))
        return scores[labelled], scores[~labelled]

    def save(self, path: Path) -> None:
        """Write the scores, without pickled objects."""
        write_arrays(path, {name: part for name, part in vars(self).items() if part is not None})

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote; raise where the file is missing or damaged."""
        if not path.exists():
            raise DataNotFound(
                f"There is no {path.name} in {path.parent}: the run is not finished, or older "
                "than this version. Give the same fit command, or train again with --overwrite."
            )
        arrays = read_arrays(path)
        try:
            scored = cls(**arrays)
        except TypeError as error:
            raise OnesidedError(f"{path} cannot be read ({error}). {AGAIN}") from None
        scored._check(path)
        return scored

    def _check(self, path: Path) -> None:
        pairs = (
            (self.train, self.train_labelled),
            (self.held_out, self.held_out_labelled),
            (self.test, self.test_truth),
            *(() if self.fold is None else ((self.train, self.fold),)),
        )
        for scores, labels in pairs:
            if getattr(scores, "shape", None) != getattr(labels, "shape", None):
                raise OnesidedError(f"{path} is damaged: its arrays do not fit. {AGAIN}")
        for field in fields(self):
            if not _is_sound(field.name, getattr(self, field.name)):
                raise OnesidedError(
                    f"{path} is damaged: '{field.name}' should hold scores from 0 to 1, labels or "
                    f"true classes. {AGAIN}"
                )
        for labelled in (self.train_labelled, self.held_out_labelled):
            if labelled is not None and (labelled.all() or not labelled.any()):
                raise OnesidedError(f"{path} is damaged: P or U has no scores. {AGAIN}")


def read_arrays(path: Path, remedy: str = AGAIN) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file; raise where it is damaged."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = dict(archive)
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray):  # numpy gives bytes for a member that is none
                raise ValueError(f"its member '{name}' is no array")
    except UNREADABLE as error:
        raise OnesidedError(f"{path} cannot be read ({error}). {remedy}") from None
    return arrays


def _is_sound(name: str, values: np.ndarray | None) -> bool:
    """Whether an array has one axis and holds what its name says."""
    if values is None:
        return True
    if values.ndim != 1:
        return False
    if name.endswith("_labelled"):
        return values.dtype == bool
    if name.endswith("_truth"):
        return values.dtype.kind in "iu" and bool(np.isin(values, (NEGATIVE, POSITIVE)).all())
    if name == "fold":
        return values.dtype.kind in "iu" and bool((values >= 0).all())
    return are_scores(values)


def are_scores(values: np.ndarray) -> bool:
    """Whether all are numbers from 0 to 1; NaN compares as false."""
    return values.dtype.kind == "f" and bool(((values >= 0) & (values <= 1)).all())


def prior_by_scores(scored: Scored) -> PriorUsed | NoPrior:
    """Return the prior that these scores give: by two estimators where all of them are usable.

    After a search there are enough scores for two; a held-out part has few.
    """
    pair = scored.held_out_pair()
    if pair is None:
        return NoPrior("nothing was held out")
    return own_prior(*pair) if scored.fold is None else own_prior_twice(*pair)


def prior_for_estimates(
    scored: Scored, used: PriorUsed | None, given: float | None
) -> PriorUsed | None:
    """Return the prior for estimates of precision, F1 and AUC, None where there is none.

    The method's own; else the number the user gave; else `own_prior`.
    """
    if used is not None or scored.held_out_pair() is None:
        return used
    if given is not None:
        return PriorUsed(given, None, None, "given")
    found = prior_by_scores(scored)
    return None if isinstance(found, NoPrior) else found


def entries_at(
    scored: Scored, threshold: float, evaluation: PUEvaluation | None, prior: PriorUsed | None
) -> dict[str, Any]:
    """Return the entries of `result.json` that depend on the threshold."""
    test = None
    if scored.test is not None and scored.test_truth is not None:
        test = truth_metrics(scored.test_truth, scored.test, threshold=threshold).to_json()
    notes = prior.notes if prior else ()
    return {
        "threshold": threshold,
        "test": test,
        "pu": evaluation.to_json() if evaluation else None,
        "known_negatives": _known_negatives(scored.negatives, threshold),
        "warnings": [*(evaluation.warnings if evaluation else ()), *notes],
    }


def figures_at(
    scored: Scored,
    threshold: float,
    *,
    scenario: Scenario,
    prior: PriorUsed | None,
    optimism: float = 0.0,
) -> PUEvaluation | None:
    """Return the evaluation of P and U that no model scored after training on them, or None.

    `optimism` is that of the proxy AUC where the model was chosen among several by it.
    """
    pair = scored.held_out_pair()
    if pair is None:
        return None
    # Each held-out part has its own upper limit, so the share is that of both parts together.
    labelled = scored.train_labelled
    if scored.held_out_labelled is not None:
        labelled = np.concatenate([labelled, scored.held_out_labelled])
    labelled_share = float(labelled.mean()) if scenario == "single-set" else None
    # A run does not store the reason for a missing prior: it follows from the scores.
    return evaluate_by(
        prior_by_scores(scored) if prior is None else prior,
        *pair,
        threshold=threshold,
        scenario=scenario,
        labelled_share=labelled_share,
        optimism=optimism,
    )


def evaluate_by(
    prior: PriorUsed | NoPrior,
    positive: Float64[np.ndarray, "p"],
    unlabelled: Float64[np.ndarray, "u"],
    *,
    threshold: float,
    scenario: Scenario,
    labelled_share: float | None,
    optimism: float = 0.0,
) -> PUEvaluation:
    """Return the evaluation of held-out scores, with the prior or the reason for its absence."""
    known = prior if isinstance(prior, PriorUsed) else None
    return evaluate_pu(
        positive,
        unlabelled,
        threshold=threshold,
        scenario=scenario,
        prior=known.value if known else None,
        prior_interval=known.interval if known else None,
        labelled_share=labelled_share,
        optimism=optimism,
        prior_origin=known.origin if known else None,
        no_prior=NO_PRIOR if known else str(prior),
    )


def _known_negatives(scores: np.ndarray | None, threshold: float) -> dict[str, Any] | None:
    """Return how many known negatives are wrongly called positive, with an exact interval."""
    if scores is None:
        return None
    wrong, count = int((scores > threshold).sum()), len(scores)
    interval = clopper_pearson(wrong, count)
    figure = Figure("false_alarms", wrong / count, *interval, assumes=("typical_negatives",))
    return {"count": count, **figure.to_json()}
