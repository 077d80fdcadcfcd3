"""Estimates of the class prior, with intervals and warnings: the job of `onesided prior`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onesided.core.config import Settings, merge, nearest
from onesided.core.errors import ConfigError
from onesided.core.monitor import Monitor
from onesided.engine.fit import Watcher
from onesided.jobs.fit import watcher
from onesided.jobs.settings import PathLike, data_name, names_in, nested
from onesided.methods import AUTO
from onesided.metrics.registry import assumption
from onesided.priors import PriorEstimate, agreement
from onesided.run.config import data_config
from onesided.run.embed import embed
from onesided.run.encode import encode_data
from onesided.run.load import load_data
from onesided.run.presets import plan_run
from onesided.run.prior import ESTIMATORS, NoPrior, bbe_prior, kernel_prior, own_prior_of_three
from onesided.run.problem import Problem, build_problem
from onesided.run.search.race import search

DEFAULT = (AUTO, "km2")
"""What `fit` says, and an estimator that rests on something else, to doubt it."""


@dataclass(frozen=True)
class PriorEstimates:
    """Estimates of the class prior by several estimators, and warnings about them."""

    estimates: tuple[PriorEstimate, ...]
    warnings: tuple[str, ...]


def estimate_prior(
    positives: PathLike | None = None,
    unlabelled: PathLike | None = None,
    *,
    table: PathLike | None = None,
    data: str | None = None,
    root: PathLike | None = None,
    estimators: str | Sequence[str] = DEFAULT,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    monitor: Monitor | None = None,
) -> PriorEstimates:
    """Estimate how many of the unlabelled are positive.

    Examples:
        >>> import onesided
        >>> found = onesided.estimate_prior(data="toy-vectors", estimators=["km2"])
        >>> 0.2 < found.estimates[0].value < 0.6
        True

    Args:
        positives: Folder of positives.
        unlabelled: Folder of the unlabelled pool.
        table: Instead of folders, a CSV file: label, and path or numbers.
        data: Instead of both, a data set by name.
        root: Folder of that data set.
        estimators: Some of auto, km2, km1, bbe. auto is what `fit` estimates: from out-of-fold
            scores of the best model that it finds in the same time. The others take the same
            features of images.
        settings: Further settings by table, such as {"data": {"held_out": 0.3}}.
        seed: Seed of draws and of the short training that BBE reads.
        monitor: Receives notices and progress.
    """
    names, known = names_in(estimators, "--estimator"), (AUTO, *ESTIMATORS)
    for name in names:
        if name not in known:
            raise ConfigError(f"There is no estimator '{name}'.{nearest(name, known)}")
    folders = {"-p": positives, "-u": unlabelled}
    flags = nested(
        {
            "data.name": data_name(data, table, folders, {"--root": root}),
            "data.root": root,
            "data.positive_folder": positives,
            "data.unlabelled_folder": unlabelled,
            "data.table": table,
        }
    )
    given = merge(flags, settings or {})
    for table in given.keys() - {"data"}:
        raise ConfigError(
            f"A prior is estimated without training settings, and a setting of {table} was given. "
            "Leave it out; settings of data can be given, such as data.held_out=0.3."
        )
    monitor, given = monitor or Monitor(), {**given, "seed": seed}
    images, seen = _problems(given, monitor)
    # BBE needs a held-out part, which a search does without.
    apart = _problems(_holding_out(given), monitor)[1] if "bbe" in names else seen
    estimates, missing = [], []
    for name in names:
        with monitor.phase(f"estimating by {name}") as phase:
            found: PriorEstimate | NoPrior
            if name == AUTO:
                found = _by_search(seen, images, watcher(phase, monitor))
            elif name == "bbe":
                vectors = encode_data(apart.data, seed)
                found = bbe_prior(vectors, seed, Watcher(step=phase.step))
            else:
                found = kernel_prior(name, encode_data(seen.data, seed).split, seed)
        if isinstance(found, NoPrior):
            missing.append(f"No estimate by {name}: {found}.")
        else:
            estimates.append(found)
    return PriorEstimates(tuple(estimates), (*missing, *agreement(estimates)))


def _problems(given: Settings, monitor: Monitor) -> tuple[Problem, Problem]:
    """Return the problem as `fit` reads it, and the same with features for images."""
    plan = plan_run(given, "quick")
    with monitor.phase("reading") as phase:
        loaded = load_data(plan.checked.data, phase)
    images = build_problem(plan.for_data(loaded.split), loaded)
    with monitor.phase("embedding") as phase:
        return images, embed(images, progress=phase)


def _holding_out(given: Settings) -> Settings:
    """Return the settings with the held-out part that a run of one method has."""
    share = getattr(data_config(given["data"], "configuration"), "held_out", None)
    return given if share is None else merge({"data": {"held_out": share}}, given)


def _by_search(seen: Problem, images: Problem, watcher: Watcher) -> PriorEstimate | NoPrior:
    """Return the estimate from the out-of-fold scores of the model that `fit` would choose."""
    found = search(seen, images, folder=None, watcher=watcher)
    labelled, scores = found.board.labelled, found.scores
    prior = own_prior_of_three(scores[labelled], scores[~labelled])
    if isinstance(prior, NoPrior):
        return prior
    assert prior.low is not None
    assert prior.high is not None
    notes = (f"auto: {assumption(prior.origin).text}", *prior.notes)
    counts = int(labelled.sum()), int((~labelled).sum())
    return PriorEstimate(prior.value, prior.low, prior.high, AUTO, *counts, notes)
