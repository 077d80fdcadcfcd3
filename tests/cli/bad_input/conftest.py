"""A finished run as an earlier version left it, so that the checks behind checksums are reached."""

from pathlib import Path

import pytest

from tests.cli.command import unlisted


@pytest.fixture
def run(run: Path) -> Path:
    """Return a run that may be damaged without the list of checksums being the first to say so."""
    return unlisted(run)
