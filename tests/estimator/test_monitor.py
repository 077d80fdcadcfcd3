"""Notices and warnings as scikit-learn users get them."""

import warnings

import pytest

from onesided.estimator.monitor import DegenerateModelWarning, EstimatorMonitor


@pytest.mark.parametrize(("verbose", "printed"), [(0, ""), (1, "Seen.\n")])
def test_notices_are_printed_only_if_verbose(
    verbose: int, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    EstimatorMonitor(verbose).note("Seen.")
    assert capsys.readouterr().out == printed


def fit(monitor: EstimatorMonitor) -> None:
    monitor.warn("It separates nothing.", DegenerateModelWarning)
    monitor.warn("A file was left out.")


def test_a_warning_has_its_category_and_points_at_the_caller_of_fit() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(EstimatorMonitor())
        line = test_a_warning_has_its_category_and_points_at_the_caller_of_fit.__code__
    assert [warning.category for warning in caught] == [DegenerateModelWarning, UserWarning]
    assert {warning.filename for warning in caught} == {__file__}
    assert {warning.lineno for warning in caught} == {line.co_firstlineno + 3}
