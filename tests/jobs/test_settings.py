"""A budget in words, and what it means."""

import pytest

from onesided.core.errors import ConfigError
from onesided.jobs.settings import minutes_of


@pytest.mark.parametrize(
    ("budget", "minutes"),
    [
        *[("90s", 1.5), ("30 sec", 0.5), ("2min", 2), ("20 m", 20), ("2h", 120), ("0.5H", 30)],
        *[("7", 7), (7, 7), (1.5, 1.5), (" 3min ", 3)],
    ],
)
def test_a_budget_is_minutes(budget: str | float, minutes: float) -> None:
    assert minutes_of(budget) == pytest.approx(minutes)


def test_no_budget_leaves_it_to_the_preset() -> None:
    assert minutes_of(None) is None


@pytest.mark.parametrize("budget", ["", "soon", "2 days", "-2min", "0", "0s", "1.2.3h", "nan", -1])
def test_a_budget_that_is_no_time_is_refused(budget: str | float) -> None:
    with pytest.raises(ConfigError, match="expected a time such as 90s, 2min, 20min or 2h"):
        minutes_of(budget)
