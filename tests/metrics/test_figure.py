import numpy as np
import pytest
from jaxtyping import TypeCheckError

from onesided.core.errors import ConfigError
from onesided.metrics.figure import Figure, Raw, Scenario, Setting, present
from onesided.metrics.stored import read_figure
from onesided.metrics.words import CANNOT_BE_TOLD, missing_texts, value_text


def setting(
    *,
    scenario: Scenario = "single-set",
    prior: float | None = 0.3,
    prior_interval: tuple[float, float] | None = None,
    labelled_share: float | None = None,
    coverage: float = 0.95,
) -> Setting:
    return Setting(scenario, prior, prior_interval, labelled_share, coverage)


@pytest.mark.parametrize("prior", [0.0, 1.0, -0.1, 1.2, np.nan])
def test_a_prior_that_cannot_be_is_refused(prior: float) -> None:
    with pytest.raises(ConfigError, match="prior must lie between 0 and 1"):
        setting(prior=prior)


def test_coverage_and_labelled_share_are_shares() -> None:
    with pytest.raises(ConfigError, match="coverage must lie between 0 and 1"):
        setting(coverage=95.0)
    with pytest.raises(ConfigError, match="labelled_share must lie between 0 and 1"):
        setting(labelled_share=0.0)


@pytest.mark.parametrize(
    ("prior", "interval"), [(0.5, (0.6, 0.8)), (0.5, (0.4, 1.2)), (None, (0.2, 0.4))]
)
def test_an_interval_without_its_prior_inside_is_refused(
    prior: float | None, interval: tuple[float, float]
) -> None:
    with pytest.raises(ConfigError, match="prior_interval must lie in"):
        setting(prior=prior, prior_interval=interval)


def test_a_labelled_share_is_refused_where_it_has_no_meaning() -> None:
    with pytest.raises(ConfigError, match="no meaning"):
        setting(scenario="case-control", labelled_share=0.1)


def test_an_unknown_scenario_is_refused_with_the_known_ones() -> None:
    # With run-time type checks switched on, they refuse first.
    with pytest.raises((ConfigError, TypeCheckError), match=r"case-control.*single-set"):
        setting(scenario="both")  # type: ignore[arg-type]


def test_a_share_is_cut_and_a_criterion_is_not() -> None:
    raw = Raw(1.3, (0.8, 1.6))
    share = present("f1", raw, is_share=True)
    criterion = present("lee_liu", raw, is_share=False)
    assert (share.value, share.low, share.high) == (1.0, 0.8, 1.0)
    assert (criterion.value, criterion.low, criterion.high) == (1.3, 0.8, 1.6)


@pytest.mark.parametrize("interval", [(1.1, 1.6), (-0.6, -0.1)])
def test_an_interval_wholly_outside_says_nothing_instead_of_looking_certain(
    interval: tuple[float, float],
) -> None:
    figure = present("auc", Raw(sum(interval) / 2, interval), is_share=True)
    assert (figure.low, figure.high) == (0.0, 1.0)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_undefined_figure_is_none(value: float) -> None:
    raw = Raw(value, (0.1, value))
    figure = present("precision", raw, is_share=True, bias="high", missing="because")
    assert (figure.value, figure.low, figure.high) == (None, None, None)
    assert (figure.missing, figure.bias) == ("because", None)


def test_a_file_does_not_hold_a_value_that_people_read_cannot_be_told() -> None:
    figure = Figure("precision", 0.4, 0.1, 0.8, ("scar",), "high")
    stored = figure.to_json()
    assert (stored["value"], stored["low"], stored["high"]) == (None, 0.1, 0.8)
    assert stored["missing"].startswith("cannot be told")
    read = read_figure("precision", stored)
    assert value_text(read) == value_text(figure) == CANNOT_BE_TOLD
    assert read.is_known
    assert missing_texts([read]) == []
    assert read.to_json() == stored
    narrow = Figure("precision", 0.4, 0.3, 0.5).to_json()
    assert (narrow["value"], narrow["missing"]) == (0.4, None)
