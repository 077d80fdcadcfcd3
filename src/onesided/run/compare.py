"""Runs of other methods beside the main one, on the same split."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from onesided.core.config import Settings
from onesided.core.errors import CheckpointError, ConfigError
from onesided.methods import method_named
from onesided.metrics.result_schema import is_compared
from onesided.metrics.threshold_rules import ThresholdRule
from onesided.run.decisions import NewThreshold
from onesided.run.folder import COMPARISON, RESULT, SCORED, working_in
from onesided.run.prior import NoPrior, PriorUsed
from onesided.run.scored import Scored, figures_at, prior_by_scores
from onesided.storage.atomic import write_json
from onesided.storage.json_files import parsed
from onesided.storage.own_file import read_own
from onesided.storage.together import together, write_checksums

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


def comparison_rows(folder: Path, results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of `compare.json`, one per `result.json`, the main run's first.

    Every row has the prior of the first: with priors of their own, a weak model that finds many
    positives in the pool would look more precise than a good one. `folder` is that of the main
    run, whose scores and those of the runs beside it are read.
    """
    main, *others = results
    prior: PriorUsed | NoPrior | None = PriorUsed.of_result(main)
    if prior is None and (folder / SCORED).exists():
        prior = prior_by_scores(Scored.load(folder / SCORED))  # the reason why there is none
    if prior is not None:
        others = [_with_prior(folder, one, prior) for one in others]
    return [kept_of(result) for result in (main, *others)]


def kept_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a table of runs keeps of a result."""
    return {key: result[key] for key in KEPT if key in result}  # early ones name no variant


def _with_prior(
    folder: Path, result: Mapping[str, Any], prior: PriorUsed | NoPrior
) -> Mapping[str, Any]:
    """Return a result whose figures rest on another prior, where its scores are still there."""
    path = folder / COMPARED / str(result["method"]) / SCORED
    if result.get("pu") is None or not path.exists():
        return result
    evaluation = figures_at(
        Scored.load(path), result["threshold"], scenario=result["scenario"], prior=prior
    )
    return {**result, "pu": evaluation.to_json() if evaluation else None}


def move_thresholds(
    folder: Path, rule: ThresholdRule, add: Callable[[Path], object] = lambda new: None
) -> dict[str, Any]:
    """Give a run and the runs beside it thresholds by one rule; return the run's new result.

    All files of all runs change together. `add` may write further files into the folder of the
    change, such as the page that shows it. The caller holds the lock of the run's folder.
    """
    beside = sorted(path.parent for path in (folder / COMPARED).glob(f"*/{RESULT}"))
    # All are read before one is changed: an error changes none.
    thresholds = [NewThreshold.of(path, rule) for path in (folder, *beside)]
    with ExitStack() as locks:
        for path in beside:
            locks.enter_context(working_in(path))
        new = locks.enter_context(together(folder))
        result, *others = [_written(one, new / one.run.relative_to(folder)) for one in thresholds]
        if others:
            by_name = {path.name: other for path, other in zip(beside, others, strict=True)}
            before = [row["method"] for row in read_comparison(folder) if row["method"] in by_name]
            results = [result, *(by_name[name] for name in before)]
            write_json(new / COMPARISON, comparison_rows(folder, results))
        add(new)
        for path in (*beside, folder):
            write_checksums(new / path.relative_to(folder), path)
    return result


def _written(threshold: NewThreshold, new: Path) -> dict[str, Any]:
    new.mkdir(parents=True, exist_ok=True)
    return threshold.write(new)


def read_comparison(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of `compare.json`; none where it is missing or damaged."""
    try:
        rows = parsed(read_own(folder / COMPARISON))
    except (OSError, ValueError, CheckpointError):
        return []  # the next comparison writes it again
    return rows if isinstance(rows, list) and all(map(is_compared, rows)) else []
