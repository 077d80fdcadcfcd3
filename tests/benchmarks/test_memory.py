"""Memory of a run on CIFAR-10: its bound, and the error without the files."""

from pathlib import Path

import pytest

from benchmarks.command import REPOSITORY
from benchmarks.memory import BOUND_MB, measured
from onesided.storage.atomic import read_json


def test_the_recorded_figures_are_within_the_bound() -> None:
    rows = read_json(REPOSITORY / "benchmarks" / "results" / "memory.json")["rows"]
    assert max(row["peak_mb"] for row in rows) <= BOUND_MB


def test_without_cifar10_nothing_is_measured(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"onesided fit .*--preset quick .*failed"):
        measured(tmp_path, "quick")
