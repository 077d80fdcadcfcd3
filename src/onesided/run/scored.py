"""All scores of a run, in full precision, and the figures that follow from them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
from jaxtyping import Bool, Float64, Int64, Shaped

from onesided.core.errors import DataNotFound, OnesidedError
from onesided.core.folds import Groups, GroupsOfBoth
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.data.problem.dataset import Scenario
from onesided.metrics.figure import NO_PRIOR, Figure, PUEvaluation
from onesided.metrics.intervals import clopper_pearson, share_interval
from onesided.metrics.pu import after_review, evaluate_pu
from onesided.metrics.selection import Optimism
from onesided.metrics.truth import truth_metrics
from onesided.run.prior import NoPrior, PriorUsed, own_prior, own_prior_of_three
from onesided.storage.atomic import write_arrays
from onesided.storage.own_file import AGAIN, read_arrays

NO_FIGURES = (
    "No figure says how good this model is: no positives, or no unlabelled items, are left that it "
    "was not trained on and that differ from those. Hold some out, or answer a random sample: "
    "onesided audit RUN draw."
)


@dataclass(frozen=True)
class Scored:
    """Scores of each part of the data, in row order; None for a part that a run lacks.

    `train` and `held_out` are of P and U, `negatives` of known negatives that were not trained
    on. `test_truth` holds true classes, for reporting only. After a search `train` holds
    out-of-fold scores and `fold` says which model gave each: no item was scored by a model that
    was trained on it. The rows that are counted are one for each content, and none whose content
    was trained on; None counts all. `train_found` marks P that a review found. Groups have one
    numbering for all rows; None where every item stands for itself.
    """

    train: Float64[np.ndarray, "n"]
    train_labelled: Bool[np.ndarray, "n"]
    held_out: Float64[np.ndarray, "h"] | None = None
    held_out_labelled: Bool[np.ndarray, "h"] | None = None
    test: Float64[np.ndarray, "t"] | None = None
    test_truth: Int64[np.ndarray, "t"] | None = None
    negatives: Float64[np.ndarray, "k"] | None = None
    fold: Int64[np.ndarray, "n"] | None = None
    train_counted: Bool[np.ndarray, "n"] | None = None
    held_out_counted: Bool[np.ndarray, "h"] | None = None
    train_found: Bool[np.ndarray, "n"] | None = None
    train_group: Int64[np.ndarray, "n"] | None = None
    held_out_group: Int64[np.ndarray, "h"] | None = None

    @property
    def unlabelled(self) -> Float64[np.ndarray, "u"]:
        """All of U: the items of `scores.csv`, though not in its order."""
        parts = [self.train[~self.train_labelled]]
        if self.held_out is not None and self.held_out_labelled is not None:
            parts.append(self.held_out[~self.held_out_labelled])
        return np.concatenate(parts)

    def held_out_pair(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the scores of P and of U by models not trained on them; None if there are none.

        Those of the held-out part, and after a search those of every training item; copies count
        once.
        """
        parts = [(scores, labelled) for scores, labelled, _ in self._not_trained_on()]
        if not parts:
            return None
        scores, labelled = (np.concatenate(part) for part in zip(*parts, strict=True))
        if labelled.all() or not labelled.any():
            return None  # every held-out item of P, or of U, is a copy of a training item
        return scores[labelled], scores[~labelled]

    def held_out_groups(self) -> GroupsOfBoth | None:
        """Return the groups of the items of `held_out_pair`; None where each stands for itself."""
        if self.train_group is None:
            return None
        parts = [(group, labelled) for _, labelled, group in self._not_trained_on()]
        group, labelled = (np.concatenate(part) for part in zip(*parts, strict=True))
        return group[labelled], group[~labelled]

    def _not_trained_on(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield score, label and group of the items that figures count, part by part."""
        if self.fold is not None:
            counted = _all_or(self.train_counted, self.train)
            group = _all_or(self.train_group, self.train)
            yield self.train[counted], self.train_labelled[counted], group[counted]
        if self.held_out is not None and self.held_out_labelled is not None:
            counted = _all_or(self.held_out_counted, self.held_out)
            group = _all_or(self.held_out_group, self.held_out)
            yield self.held_out[counted], self.held_out_labelled[counted], group[counted]

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
            *(() if self.train_counted is None else ((self.train, self.train_counted),)),
            *(() if self.train_found is None else ((self.train, self.train_found),)),
            *(() if self.held_out_counted is None else ((self.held_out, self.held_out_counted),)),
            *(() if self.train_group is None else ((self.train, self.train_group),)),
            *(() if self.held_out_group is None else ((self.held_out, self.held_out_group),)),
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


def _is_sound(name: str, values: np.ndarray | None) -> bool:
    """Whether an array has one axis and holds what its name says."""
    if values is None:
        return True
    if values.ndim != 1:
        return False
    if name.endswith(("_labelled", "_counted", "_found")):
        return values.dtype == bool
    if name.endswith("_truth"):
        return values.dtype.kind in "iu" and bool(np.isin(values, (NEGATIVE, POSITIVE)).all())
    if name == "fold" or name.endswith("_group"):
        return values.dtype.kind in "iu" and bool((values >= 0).all())
    return are_scores(values)


def _all_or(counted: np.ndarray | None, scores: np.ndarray) -> np.ndarray:
    return np.ones(len(scores), bool) if counted is None else counted


def group_numbers(
    train: Shaped[np.ndarray, "n"] | None, held_out: Shaped[np.ndarray, "h"] | None
) -> tuple[Groups | None, Groups | None]:
    """Return groups as numbers that the training and the held-out part share."""
    if train is None:
        return None, None
    every = train if held_out is None else np.concatenate([train, held_out])
    _, number = np.unique(every, return_inverse=True)
    return number[: len(train)], None if held_out is None else number[len(train) :]


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
    return own_prior(*pair) if scored.fold is None else own_prior_of_three(*pair)


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
    scored: Scored,
    threshold: float,
    evaluation: PUEvaluation | None,
    prior: PriorUsed | None,
    *,
    training_warnings: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the entries of `result.json` that depend on the threshold.

    `training_warnings` are warnings that every threshold leaves as they are.
    """
    test = None
    if scored.test is not None and scored.test_truth is not None:
        test = truth_metrics(scored.test_truth, scored.test, threshold=threshold).to_json()
    notes = prior.notes if prior else ()
    return {
        "threshold": threshold,
        "test": test,
        "pu": evaluation.to_json() if evaluation else None,
        "known_negatives": _known_negatives(scored.negatives, threshold),
        "warnings": [
            *(evaluation.warnings if evaluation else ()),
            *((NO_FIGURES,) if test is None and scored.held_out_pair() is None else ()),
            *_list_differs(scored, threshold),
            *training_warnings,
            *notes,
        ],
    }


def figures_at(
    scored: Scored,
    threshold: float,
    *,
    scenario: Scenario,
    prior: PriorUsed | NoPrior | None,
    optimism: Optimism | None = None,
) -> PUEvaluation | None:
    """Return the evaluation of P and U that no model scored after training on them, or None.

    None as a prior finds one by the scores. `optimism` is that of a model that was chosen among
    several.
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
    evaluation = evaluate_by(
        prior_by_scores(scored) if prior is None else prior,
        *pair,
        threshold=threshold,
        scenario=scenario,
        labelled_share=labelled_share,
        optimism=optimism,
        groups=scored.held_out_groups(),
        of_pool=scored.fold is not None,
    )
    reviewed = scored.train_found is not None and scored.train_found.any()
    return after_review(evaluation) if reviewed else evaluation


def evaluate_by(
    prior: PriorUsed | NoPrior,
    positive: Float64[np.ndarray, "p"],
    unlabelled: Float64[np.ndarray, "u"],
    *,
    threshold: float,
    scenario: Scenario,
    labelled_share: float | None,
    optimism: Optimism | None = None,
    groups: GroupsOfBoth | None = None,
    of_pool: bool = False,
) -> PUEvaluation:
    """Return the evaluation of held-out scores, with the prior or the reason for its absence."""
    known = prior if isinstance(prior, PriorUsed) else None
    luck, called = optimism or Optimism(), float((unlabelled > threshold).mean())
    return evaluate_pu(
        positive,
        unlabelled,
        threshold=threshold,
        scenario=scenario,
        prior=known.value if known else None,
        prior_interval=known.interval if known else None,
        labelled_share=labelled_share,
        optimism=luck.auc,
        recall_optimism=luck.of_recall(called),
        groups=groups,
        of_pool=of_pool,
        prior_origin=known.origin if known else None,
        no_prior=NO_PRIOR if known else str(prior),
    )


def _list_differs(scored: Scored, threshold: float) -> tuple[str, ...]:
    """Return a sentence where the figures speak of other items than the list mostly holds.

    A method by name is taught that most of the pool is unlabelled and may remember it. Then it
    calls fewer of those positive than of items it never saw, of which alone the figures speak.
    """
    if scored.fold is not None or scored.held_out is None or scored.held_out_labelled is None:
        return ()
    trained = scored.train[~scored.train_labelled] > threshold
    held_out = scored.held_out[~scored.held_out_labelled] > threshold
    groups = (
        None if scored.train_group is None else scored.train_group[~scored.train_labelled],
        None if scored.held_out_group is None else scored.held_out_group[~scored.held_out_labelled],
    )
    ends = [
        share_interval(each, group) for each, group in zip((trained, held_out), groups, strict=True)
    ]
    if ends[0][0] <= ends[1][1] and ends[1][0] <= ends[0][1]:
        return ()
    share = len(trained) / (len(trained) + len(held_out))
    less = "fewer" if trained.mean() < held_out.mean() else "more"
    return (
        f"The figures are about items that were not trained on. {share:.0%} of the pool were "
        f"trained on as unlabelled, and {trained.mean():.1%} of those are called positive, of the "
        f"others {held_out.mean():.1%}: in the list as a whole the model finds {less} positives "
        "than recall says. The method auto scores every item by a model not trained on it.",
    )


def _known_negatives(scores: np.ndarray | None, threshold: float) -> dict[str, Any] | None:
    """Return how many known negatives are wrongly called positive, with an exact interval."""
    if scores is None:
        return None
    wrong, count = int((scores > threshold).sum()), len(scores)
    interval = clopper_pearson(wrong, count)
    figure = Figure("false_alarms", wrong / count, *interval, assumes=("typical_negatives",))
    return {"count": count, **figure.to_json()}
