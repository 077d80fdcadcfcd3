"""A run in a folder, as the jobs do it, for tests that start below them."""

from pathlib import Path

from onesided.engine.fit import Watcher
from onesided.run.config import RunConfig
from onesided.run.execute import RunResult, run
from onesided.run.folder import check_place, working_in
from onesided.run.load import LoadedData
from onesided.run.problem import build_problem


def run_in(
    path: Path,
    config: RunConfig,
    loaded: LoadedData,
    *,
    overwrite: bool = False,
    watcher: Watcher | None = None,
) -> RunResult:
    """Do the run in this folder, or go on with it."""
    place = check_place(path, overwrite=overwrite)
    with working_in(path):
        return run(build_problem(config, loaded), place, watcher)
