"""Estimates of the class prior, with intervals and warnings: the job of `onesided prior`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onesided.core.config import merge, nearest
from onesided.core.errors import ConfigError
from onesided.core.monitor import Monitor
from onesided.engine.fit import Watcher
from onesided.jobs.settings import PathLike, data_name, names_in, nested
from onesided.priors import PriorEstimate, agreement
from onesided.run.config import data_config
from onesided.run.encode import encode_data
from onesided.run.load import load_data
from onesided.run.prior import ESTIMATORS, bbe_prior, kernel_prior


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
    estimators: str | Sequence[str] = ("km2", "bbe"),
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    monitor: Monitor | None = None,
) -> PriorEstimates:
    """Estimate how many of the unlabelled are positive.

    Example:
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
        estimators: Some of km2, km1, bbe.
        settings: Further settings by table, such as {"data": {"held_out": 0.3}}.
        seed: Seed of draws and of the short training that BBE reads.
        monitor: Receives notices and progress.
    """
    names = names_in(estimators, "--estimator")
    for name in names:
        if name not in ESTIMATORS:
            raise ConfigError(f"There is no estimator '{name}'.{nearest(name, ESTIMATORS)}")
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
    monitor = monitor or Monitor()
    with monitor.phase("reading") as phase:
        loaded = load_data(data_config(given.get("data", {}), "configuration"), phase)
        loaded = encode_data(loaded, seed)
    estimates = []
    for name in names:
        with monitor.phase(f"estimating by {name}") as phase:
            estimates.append(
                bbe_prior(loaded, seed, Watcher(step=phase.step))
                if name == "bbe"
                else kernel_prior(name, loaded.split, seed)
            )
    return PriorEstimates(tuple(estimates), tuple(agreement(estimates)))
