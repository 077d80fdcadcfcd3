"""Runs of other methods beside the main one, on the same split."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onesided.core.config import Settings
from onesided.core.errors import ConfigError
from onesided.methods import method_named
from onesided.metrics.threshold_rules import ThresholdRule
from onesided.run.decisions import NewThreshold
from onesided.run.folder import COMPARISON, RESULT
from onesided.storage.atomic import write_json

COMPARED = "compare"
"""Folder inside a run's folder that holds one run for each method beside it."""
KEPT = ("method", "chosen_by", "variant", "seed", "test", "pu", "seconds")


def check_compared(names: Sequence[str], main: str) -> None:
    """Refuse an unknown method to train beside the main one, and the main one itself."""
    for name in names:
        method_named(name)
        if name == main:
            raise ConfigError(
                f"--compare names {name}, which is the method of the run itself. Leave it out."
            )


def baseline_settings(given: Mapping[str, Any], name: str) -> Settings:
    """Return the same settings for another method, without those of the first one's own."""
    return {**given, "method": {"name": name}}


def comparison_rows(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of a table of runs, one per `result.json`."""
    # The results of early versions name no variant.
    return [{key: result[key] for key in KEPT if key in result} for result in results]


def write_comparison(folder: Path, results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Write `compare.json` into the folder of the main run, unless it is up to date."""
    rows = comparison_rows(results)
    if read_comparison(folder) != rows:
        write_json(folder / COMPARISON, rows)
    return rows


def move_thresholds(folder: Path, rule: ThresholdRule) -> dict[str, Any]:
    """Give a run and the runs beside it thresholds by one rule; return the run's new result."""
    beside = sorted(path.parent for path in (folder / COMPARED).glob(f"*/{RESULT}"))
    # All are read before one is changed: an error changes none.
    new = [NewThreshold.of(path, rule) for path in (folder, *beside)]
    result, *others = [one.write() for one in new]
    if others:
        by_name = {path.name: other for path, other in zip(beside, others, strict=True)}
        before = [row["method"] for row in read_comparison(folder) if row["method"] in by_name]
        write_comparison(folder, [result, *(by_name[name] for name in before)])
    return result


def read_comparison(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of `compare.json`; none where it is missing or damaged."""
    try:
        rows = json.loads((folder / COMPARISON).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []  # the next comparison writes it again
    return rows if isinstance(rows, list) else []
