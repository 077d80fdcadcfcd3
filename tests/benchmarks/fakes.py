"""A small benchmark that runs in seconds, and a collected file for tables."""

from pathlib import Path
from typing import Any

from benchmarks.grid import TOY_DATA, Budget, Entry, Folders, Grid, entry

TOY = Budget(
    data=TOY_DATA,
    backbone={"name": "auto", "width": 0.125},
    train={"epochs": 1, "batch_size": 16, "learning_rate": 0.002},
)


def toy_entry(label: str, method: str, *, data: str = "toy-images", budget: Budget = TOY) -> Entry:
    return entry(label, data, budget, {"name": method})


def toy_grid(*entries: Entry) -> Grid:
    rows = entries or (toy_entry("CE", "ce"), toy_entry("uPU", "upu"))
    return Grid(name="toy", title="A toy", words="Which is better?", entries=rows)


def folders_in(folder: Path) -> Folders:
    return Folders(folder / "work", folder / "results", folder / "docs")


def fake_record(label: str, seed: int, test: dict[str, float | None] | None) -> dict[str, Any]:
    """Return the record of a finished run with these figures on the test set."""
    return {
        "label": label,
        "data": "digits",
        "method": "upu",
        "settings": {},
        "needs": ["prior"],
        "prior": "truth",
        "seed": seed,
        "fingerprint": "0" * 64,
        "status": "finished",
        "failure": None,
        "seconds": 10.0,
        "origins": [fake_origin()],
        "result": {
            "test": test,
            "device": "cpu",
            "precision": "fp32",
            "pu": {"degenerate": None, "figures": {}},
        },
    }


def fake_origin() -> dict[str, Any]:
    return {
        "date": "2026-01-02T03:04:05+00:00",
        "commit": "a" * 40,
        "dirty": False,
        "cpu": "A processor",
        "cores": 2,
        "threads": 2,
        "load": 0.5,
    }


def figures(value: float, *, auc: float | None = 0.5) -> dict[str, float | None]:
    return {"oa": value, "f1": value, "precision": value, "recall": value, "auc": auc}


def fake_content(*runs: dict[str, Any], pairs: list[list[str]] | None = None) -> dict[str, Any]:
    return {
        "name": "toy",
        "title": "A toy",
        "date": "2026-01-02T03:04:05+00:00",
        "commit": "a" * 40,
        "dirty": False,
        "machine": {"memory_gb": 8.0, "platform": "Linux"},
        "versions": {"python": "3.11"},
        "budget": {
            "words": "Which is better?",
            "exact": {
                "digits": {
                    "data": {"positives": 40, "unlabelled": 800, "prior": 0.4},
                    "backbone": {"name": "small", "width": 0.25},
                    "train": {
                        "epochs": 60,
                        "batch_size": 64,
                        "optimizer": "sgd",
                        "learning_rate": 0.002,
                    },
                }
            },
        },
        "pairs": pairs or [],
        "runs": list(runs),
    }
