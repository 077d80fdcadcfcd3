"""Two hosts train as one process does; needs Linux, root and iproute2."""

from pathlib import Path

import pytest

from tests.campaigns.two_hosts import measured, why_not


@pytest.mark.slow
@pytest.mark.ddp
def test_two_hosts_equal_one_process_and_resume_after_a_killed_worker(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    found = measured(tmp_path)
    for name, largest in found["two_hosts_against_one_process"].items():
        assert largest <= 1e-4, (name, "sums of single precision in another order")
    assert set(found["killed_against_never_killed"].values()) == {0.0}
    assert 0 not in found["exit_codes_after_the_kill"]
    assert not found["finished_before_the_resume"]
