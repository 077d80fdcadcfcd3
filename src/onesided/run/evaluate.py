"""Compare a finished run with a table of true labels, for reporting only."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onesided.core.errors import DataError
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.metrics.figure import Figure
from onesided.metrics.registry import FIGURES
from onesided.metrics.stored import read_figures
from onesided.metrics.truth import truth_metrics
from onesided.run.folder import SCORES, read_result
from onesided.storage.labels import NotALabel, label_in
from onesided.storage.names import name_in_cell
from onesided.storage.table import read_rows


def compare_with_labels(run: Path, labels: Path) -> dict[str, Any]:
    """Return metrics of the run's decisions on the unlabelled items whose label is listed.

    `figures` holds each true figure beside the estimate that the run made without labels.
    """
    result = read_result(run)
    scores = read_scores(run / SCORES, threshold=result["threshold"])
    truth = read_labels(labels)
    matched = [item for item in truth if item in scores]
    if not matched:
        raise DataError(
            f"No item of {labels} is in {run / SCORES}. That file has for example "
            f"'{next(iter(scores))}', and {labels.name} has '{next(iter(truth))}'; "
            "write the names as in the run."
        )
    classes = np.array([truth[item] for item in matched])
    found = np.array([scores[item] for item in matched])
    metrics = truth_metrics(classes, found, threshold=result["threshold"]).to_json()
    shares = {
        "share_positive": float((found > result["threshold"]).mean()),
        "prior": float((classes == POSITIVE).mean()),
    }
    return {
        "listed": len(truth),
        "matched": len(matched),
        "test": metrics,
        "figures": _beside(read_figures(result), {**metrics, **shares}),
    }


def _beside(
    estimates: Mapping[str, Figure], true: Mapping[str, float | None]
) -> list[dict[str, Any]]:
    """Return each estimate with its true value; None where one of the two is missing."""
    return [
        {**estimates.get(name, Figure(name, None)).to_json(), "true": true[each.truth]}
        for name, each in FIGURES.items()
        if each.truth in true
    ]


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
