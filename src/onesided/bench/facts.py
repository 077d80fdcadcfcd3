"""What the data sets of a suite hold: counts for a table, examples for a figure."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onesided.core.errors import DataNotFound
from onesided.core.labels import POSITIVE
from onesided.data.sources import source_named
from onesided.report.figures import thumbnail
from onesided.run.config import SetConfig, data_config
from onesided.run.gallery import thumbnails
from onesided.run.load import load_data
from onesided.storage.atomic import read_json, write_json
from onesided.storage.lock import alone

EXAMPLES = 8
"""Pictures of each class."""


def describe_data(name: str, root: Path | None, output: Path) -> dict[str, Any]:
    """Return counts of a data set as the paper splits it; write examples beside.

    Examples stay out of result files: these are published, and pictures have owners.
    """
    head = {"data": name, "title": source_named(name).title}
    try:
        config = data_config({"name": name, "root": str(root) if root else None}, "benchmark")
        assert isinstance(config, SetConfig)
        split = load_data(config).split
    except DataNotFound as error:
        return {**head, "status": "not run", "failure": str(error)}
    train, test = split.train, split.test
    shown = _examples(train.truth)
    pictures = thumbnails(train.values, shown)
    encoded = [thumbnail(picture).address for picture in pictures]
    write_json(examples_file(output, name), {"data": name, "addresses": encoded})
    return {
        **head,
        "status": "finished",
        "positives": int(train.labelled.sum()),
        "unlabelled": int(train.unlabelled.sum()),
        "test": 0 if test is None else len(test.truth),
        "prior": split.true_prior,
        "classes": list(config.positive_classes),
        "shape": list(split.sample_shape),
    }


def facts_file(output: Path) -> Path:
    """Return the file of what is known about data sets."""
    return output / "data.json"


def describe_all(names: Sequence[str], root: Path | None, output: Path) -> list[dict[str, Any]]:
    """Describe data sets that are not described yet; return what is known of them."""
    path = facts_file(output)
    with alone(path.with_suffix(".lock")):
        known = {one["data"]: one for one in read_facts(output)}
        for name in names:
            if known.get(name, {}).get("status") != "finished":
                known[name] = describe_data(name, root, output)
        write_json(path, {"sets": list(known.values())})
    return [known[name] for name in names]


def read_facts(output: Path) -> list[dict[str, Any]]:
    """Return what is known about data sets."""
    path = facts_file(output)
    return list(read_json(path)["sets"]) if path.exists() else []


def examples_file(output: Path, name: str) -> Path:
    """Return the file of a data set's examples."""
    folder = output / "examples"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{name}.json"


def read_examples(output: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the pictures of each data set that has some, as `data:` addresses of PNG."""
    found = {}
    for name in names:
        path = output / "examples" / f"{name}.json"
        if path.exists():
            found[name] = [one for one in read_json(path)["addresses"] if _is_picture(one)]
    return found


def _is_picture(address: object) -> bool:
    prefix = "data:image/png;base64,"
    if not isinstance(address, str) or not address.startswith(prefix):
        return False
    try:
        base64.b64decode(address.removeprefix(prefix), validate=True)
    except ValueError:
        return False
    return True


def _examples(truth: np.ndarray) -> np.ndarray:
    """Return the first rows of each class; where classes are unknown, positives and others."""
    positive = np.flatnonzero(truth == POSITIVE)[:EXAMPLES]
    other = np.flatnonzero(truth != POSITIVE)[:EXAMPLES]
    return np.concatenate([positive, other])
