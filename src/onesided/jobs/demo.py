"""The default method beside an ordinary classifier, on real images: `onesided demo`."""

from dataclasses import dataclass
from pathlib import Path

from onesided.core.monitor import Monitor
from onesided.jobs.fit import FitResult, fit_settings, write_page
from onesided.jobs.settings import PathLike
from onesided.run.default_method import DEFAULT_METHOD
from onesided.run.folder import working_in
from onesided.run.presets import demo_settings

METHODS = (DEFAULT_METHOD, "ce")
SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Demonstration:
    """Runs of both methods, seed by seed, and the page about the first of them."""

    runs: tuple[FitResult, ...]
    report: Path


def demonstrate(output: PathLike, monitor: Monitor | None = None) -> Demonstration:
    """Train both methods with three seeds each, one run folder for each."""
    output, monitor = Path(output), monitor or Monitor()
    runs = tuple(
        fit_settings(
            demo_settings(method, seed), output / f"{method}-{seed}", preset=None, monitor=monitor
        )
        for seed in SEEDS
        for method in METHODS
    )
    with working_in(runs[0].folder):
        page = write_page(runs[0].folder, [run.result for run in runs])
    return Demonstration(runs, page)
