"""Compare a finished run with a table of true labels, for reporting only."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onesided.core.errors import DataError, OnesidedError
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.engine.model_file import DESCRIPTION, ModelDescription
from onesided.metrics.figure import Figure
from onesided.metrics.registry import FIGURES
from onesided.metrics.reliability import FEWEST, Reliability, reliability
from onesided.metrics.stored import read_figures
from onesided.metrics.truth import truth_metrics
from onesided.run.folder import SCORED, SCORES, SPLIT, read_result
from onesided.run.load import FEWEST_TESTED
from onesided.run.scored import Scored
from onesided.storage.atomic import read_json
from onesided.storage.labels import NotALabel, label_in
from onesided.storage.names import name_in_cell
from onesided.storage.own_file import AGAIN, check, digest_of
from onesided.storage.table import read_rows


def compare_with_labels(run: Path, labels: Path) -> dict[str, Any]:
    """Return metrics of the run's decisions on the unlabelled items whose label is listed.

    Only items that were scored by a model not trained on them count, and copies once.
    `figures` holds each true figure beside the estimate that the run made without labels.
    """
    result = read_result(run)
    scores = read_pool(run, threshold=result["threshold"])
    truth = _in_full(read_labels(labels), scores)
    matched = [item for item in truth if item in scores]
    if not matched:
        raise DataError(
            f"No item of {labels} is in {run / SCORES}. That file has for example "
            f"'{next(iter(scores))}', and {labels.name} has '{next(iter(truth))}'; "
            "write the names as in the run."
        )
    fresh = unseen_items(run)
    tested = matched if fresh is None else [item for item in matched if item in fresh]
    classes = np.array([truth[item] for item in tested])
    if len(tested) < len(matched):
        _check_enough(classes, len(matched))
    found = np.array([scores[item] for item in tested])
    metrics = truth_metrics(classes, found, threshold=result["threshold"]).to_json()
    shares = {
        "share_positive": float((found > result["threshold"]).mean()),
        "prior": float((classes == POSITIVE).mean()),
    }
    found_error = _calibration_error(run, found, classes == POSITIVE)
    return {
        "listed": len(truth),
        "matched": len(matched),
        "tested": len(tested),
        "test": metrics,
        "figures": _beside(read_figures(result), {**metrics, **shares}),
        "reliability": found_error.to_json() if found_error else None,
    }


def _calibration_error(run: Path, scores: np.ndarray, positive: np.ndarray) -> Reliability | None:
    """Return how far the run's probabilities are off; None where it has none, or few labels."""
    if not (run / DESCRIPTION).exists() or len(scores) < FEWEST:
        return None
    curve = ModelDescription.from_settings(read_json(run / DESCRIPTION), DESCRIPTION).calibration
    return None if curve is None else reliability(curve.of(scores), positive)


def unseen_items(run: Path) -> set[str] | None:
    """Return the unlabelled items that figures count; None where the run does not tell.

    Held-out ones, and after a search all, since each has the score of a model that did not see
    it; of copies the first.
    """
    if not ((run / SPLIT).exists() and (run / SCORED).exists()):
        return None
    check(run / SPLIT, digest_of(run / SPLIT))
    scored, roles = Scored.load(run / SCORED), list(read_rows(run / SPLIT, ("item", "role")))
    fresh: set[str] = set()
    for role, labelled, counted in (
        ("train-unlabelled", scored.train_labelled, scored.train_counted),
        ("held-out-unlabelled", scored.held_out_labelled, scored.held_out_counted),
    ):
        if labelled is None or (role == "train-unlabelled" and scored.fold is None):
            continue
        names = [name_in_cell(row.cells["item"]) for row in roles if row.cells["role"] == role]
        kept = np.ones(len(names), bool) if counted is None else counted[~labelled]
        if len(kept) != len(names) or len(names) != int((~labelled).sum()):
            raise OnesidedError(f"{run / SPLIT} and {SCORED} are not of one run. {AGAIN}")
        fresh.update(name for name, keep in zip(names, kept, strict=True) if keep)
    return fresh


def _check_enough(classes: np.ndarray, matched: int) -> None:
    """Raise where too few listed items are left that were not trained on."""
    left = [int((classes == label).sum()) for label in (POSITIVE, NEGATIVE)]
    if min(left) < FEWEST_TESTED:
        raise DataError(
            f"{matched - sum(left)} of {matched} listed items were trained on, or are copies of "
            f"others. {left[0]} positive and {left[1]} negative ones are left, too few for a "
            f"figure: it takes {FEWEST_TESTED} of each. List items whose role in {SPLIT} is "
            "held-out-unlabelled, or train without --method: auto scores every item by a model "
            "that did not see it."
        )


def _in_full(truth: Mapping[str, int], scores: Mapping[str, float]) -> dict[str, int]:
    """Return the labels under the run's names, also where the table has mere file names.

    A file name that two items of the run have, or that the table gives two labels, stays as it is.
    """
    named = defaultdict[str, list[str]](list)
    for item in scores:
        named[item.rpartition("/")[2]].append(item)
    full: dict[str, int] = {}
    for item, label in truth.items():
        meant = named.get(item, [])
        known = meant[0] if item not in scores and len(meant) == 1 else item
        full.setdefault(item if known in truth else known, label)
    return full


def _beside(
    estimates: Mapping[str, Figure], true: Mapping[str, float | None]
) -> list[dict[str, Any]]:
    """Return each estimate with its true value; None where one of the two is missing."""
    return [
        {**estimates.get(name, Figure(name, None)).to_json(), "true": true[each.truth]}
        for name, each in FIGURES.items()
        if each.truth in true
    ]


def read_pool(run: Path, *, threshold: float | None = None) -> dict[str, float]:
    """Return item to score of the pool of a run, in the order of its ranking; see `read_scores`."""
    if (run / SCORES).is_file():
        check(run / SCORES, digest_of(run / SCORES))
    return read_scores(run / SCORES, threshold=threshold)


def read_scores(path: Path, *, threshold: float | None = None) -> dict[str, float]:
    """Return item to score from the `scores.csv` of a run.

    Scores are written with nine digits. Rounding may move a score to the other side of the
    threshold; with the threshold given, it stays on the side of its decision.
    """
    scores: dict[str, float] = {}
    for row in read_rows(path, ("item", "score")):
        cells = row.cells
        try:
            score = float(cells["score"])
            if not 0 <= score <= 1:
                raise ValueError("also where it is NaN")
            if threshold is not None and cells.get("decision") == "positive":
                score = max(score, float(np.nextafter(threshold, np.inf)))
            if threshold is not None and cells.get("decision") == "negative":
                score = min(score, threshold)
            scores[name_in_cell(cells["item"])] = score
        except ValueError:
            raise DataError(
                f"{path}, line {row.line}: the score is {cells['score']!r}, which is no number "
                "from 0 to 1. Restore the file from a copy, or train again with --overwrite."
            ) from None
    if not scores:
        raise DataError(f"{path} lists no item. Restore it, or train again with --overwrite.")
    return scores


def read_labels(path: Path) -> dict[str, int]:
    """Return item to class from a CSV with columns item (or path) and label."""
    labels: dict[str, int] = {}
    for row in read_rows(path, ("label",)):
        item = name_in_cell(row.cells.get("item") or row.cells.get("path") or "")
        where = f"{path}, line {row.line}"
        if not item:
            raise DataError(f"{where}: expected a name in the column item or path.")
        try:
            known = label_in(row.cells["label"], among=(POSITIVE, NEGATIVE))
        except NotALabel as error:
            raise DataError(f"{where}: {error}") from None
        if labels.setdefault(item, known) != known:
            raise DataError(
                f"{where}: '{item}' is listed as positive and as negative. Remove the wrong line."
            )
    if not labels:
        raise DataError(f"{path} lists no item. Expected lines such as: buildings/17.png,positive")
    return labels
