"""One set of folders and one trained run for all tests of the command line."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from onesided.run.scored import Scored
from tests.cli.command import fit, unlisted
from tests.cli.pictures import draw_data


@pytest.fixture(scope="session")
def shared_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders P and U that no test changes."""
    return draw_data(tmp_path_factory.mktemp("shared"))


@pytest.fixture
def data(tmp_path: Path, shared_data: Path) -> Path:
    """Folders P and U of this test alone."""
    return Path(shutil.copytree(shared_data, tmp_path / "data"))


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Path:
    """A finished run on the shared folders that no test changes."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    outcome = fit(shared_data, folder)
    assert outcome.exit_code == 0, outcome.err
    return folder


@pytest.fixture
def run(tmp_path: Path, trained: Path) -> Path:
    """A finished run of this test alone; `fit(shared_data, run)` is the command that made it."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


@pytest.fixture
def cross_fitted(run: Path) -> Path:
    """Return a run whose training items have scores of models that did not see them."""
    scored = Scored.load(run / "scores.npz")
    replace(scored, fold=np.arange(len(scored.train)) % 5).save(run / "scores.npz")
    return unlisted(run)
