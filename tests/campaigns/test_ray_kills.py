"""One kill of each kind of the campaign `ray_kills`."""

from pathlib import Path

import pytest

from tests.campaigns.ray_kills import SCENARIOS, Scenario, campaign, is_same


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_a_kill_costs_no_row_and_changes_no_score(scenario: Scenario, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="pip install 'onesided[ray]'")
    (kill,) = campaign(scenario, 1, tmp_path / "work")["kills"]
    assert kill["done_before_the_kill"], "the command ended before it could be killed"
    assert is_same(kill), kill
