"""A finished run against a table of true labels; for reporting only, nothing is chosen by it."""

import csv
from pathlib import Path
from typing import Any

import numpy as np

from onesided.core.errors import DataError, DataNotFound
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.metrics.truth import truth_metrics
from onesided.run.folder import RESULT, SCORES, read_json

WORDS = {"positive": POSITIVE, "negative": NEGATIVE}


def compare_with_labels(run: Path, labels: Path) -> dict[str, Any]:
    """Return metrics of the run's decisions on the unlabelled items whose label is listed."""
    result = read_json(run / RESULT)
    scores = {
        row["item"]: float(row["score"]) for row in read_rows(run / SCORES, ("item", "score"))
    }
    truth = read_labels(labels)
    matched = [item for item in truth if item in scores]
    if not matched:
        example = next(iter(scores), "nothing")
        raise DataError(
            f"No item of {labels} is in {run / SCORES}. Items are written there as for example "
            f"{example!r}; use the same names."
        )
    metrics = truth_metrics(
        np.array([truth[item] for item in matched]),
        np.array([scores[item] for item in matched]),
        threshold=result["threshold"],
    )
    return {"listed": len(truth), "matched": len(matched), "test": metrics.to_json()}


def read_labels(path: Path) -> dict[str, int]:
    """Return item to class from a CSV with columns item (or path) and label."""
    labels: dict[str, int] = {}
    for line, row in enumerate(read_rows(path, ("label",)), start=2):
        item = row.get("item") or row.get("path")
        if not item:
            raise DataError(f"{path}, line {line}: expected a name in the column item or path.")
        word = row["label"].strip().lower()
        if word not in WORDS:
            raise DataError(
                f"{path}, line {line}: expected the label positive or negative; "
                f"got {row['label']!r}."
            )
        labels[item] = WORDS[word]
    if not labels:
        raise DataError(f"{path} lists no item.")
    return labels


def read_rows(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """Return the rows of a CSV file that must have these columns."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            seen = reader.fieldnames or ()
            missing = [name for name in columns if name not in seen]
            if missing:
                raise DataError(
                    f"{path} needs the column {missing[0]}; it has {', '.join(seen) or 'none'}."
                )
            return [{key: value or "" for key, value in row.items() if key} for row in reader]
    except FileNotFoundError:
        raise DataNotFound(f"There is no file {path}.") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is not a CSV file in UTF-8: {error}.") from None
