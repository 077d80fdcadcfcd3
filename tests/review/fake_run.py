"""A finished run without a model: a ranking, and images, texts or rows to look at."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from onesided.core.config import dump_toml
from onesided.storage.names import printable, spreadsheet_safe
from onesided.storage.table import csv_lines
from tests.cli.pictures import draw

RESULT = {
    **{"method": "ce", "seed": 0, "scenario": "single-set", "threshold": 0.5},
    **{"test": None, "pu": None, "warnings": []},
}


def write_run(folder: Path, items: list[str], data: Mapping[str, object]) -> Path:
    """Write a run whose first item has the highest score."""
    folder.mkdir(parents=True, exist_ok=True)
    scores = np.linspace(0.99, 0.01, len(items))
    rows = [
        (spreadsheet_safe(printable(item)), f"{score:.9g}", place, "positive" if score > 0.5 else
         "negative")
        for place, (item, score) in enumerate(zip(items, scores, strict=True), 1)
    ]  # fmt: skip
    text = csv_lines([("item", "score", "rank", "decision"), *rows])
    (folder / "scores.csv").write_text(text, encoding="utf-8")
    (folder / "result.json").write_text(json.dumps(RESULT))
    settings = {"data": data, "method": {"name": "ce"}}
    (folder / "config.toml").write_text(dump_toml(settings))
    return folder


def image_run(folder: Path, names: list[str]) -> Path:
    """Write a run on a folder of images with these names."""
    for number, name in enumerate(names):
        draw(folder / "U" / name, number, side=40)
    draw(folder / "P" / "one.png", 1000)
    data = {
        "name": "folders",
        "positive_folder": str(folder / "P"),
        "unlabelled_folder": str(folder / "U"),
    }
    return write_run(folder / "run", [f"U/{name}" for name in names], data)


def text_run(folder: Path, texts: dict[str, str]) -> Path:
    """Write a run on a folder of texts."""
    for where in ("P", "U"):
        (folder / where).mkdir(parents=True)
    for name, text in texts.items():
        (folder / "U" / name).write_text(text)
    (folder / "P" / "one.txt").write_text("a positive")
    data = {
        "name": "folders",
        "positive_folder": str(folder / "P"),
        "unlabelled_folder": str(folder / "U"),
    }
    return write_run(folder / "run", [f"U/{name}" for name in texts], data)
