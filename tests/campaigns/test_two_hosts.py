"""Two hosts train as one process does; needs Linux, root and iproute2."""

from pathlib import Path

import pytest

from tests.campaigns.two_hosts import difference_in_double, measured, why_not
from tests.contract.test_two_processes import CLOSE


@pytest.fixture(autouse=True)
def _needs_hosts() -> None:
    if reason := why_not():
        pytest.skip(reason)


@pytest.mark.slow
@pytest.mark.ddp
def test_two_hosts_equal_one_process(tmp_path: Path) -> None:
    assert difference_in_double(tmp_path) <= CLOSE


@pytest.mark.slow
@pytest.mark.ddp
def test_two_hosts_resume_after_a_killed_worker_as_if_it_had_not_been(tmp_path: Path) -> None:
    found = measured(tmp_path)
    assert set(found["killed_against_never_killed"].values()) == {0.0}
    assert 0 not in found["exit_codes_after_the_kill"]
    assert not found["finished_before_the_resume"]
