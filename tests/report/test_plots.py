import pytest

from onesided.report.plots import Described, curves, described
from onesided.report.runfiles import Epoch, RunFiles

LOGS = {"threshold": {"title": "Threshold τ", "note": "How sure the model must be."}}


def run_that_logged(name: str, **result: object) -> RunFiles:
    epochs = tuple(Epoch("train", {}, {name: value}, None, None) for value in (0.5, 0.25))
    return RunFiles("quake", {"method": "ncpu", **result}, epochs=epochs)


def test_a_logged_number_is_shown_in_the_words_of_its_method() -> None:
    page = curves(run_that_logged("threshold", logs=LOGS))
    assert "<b>Threshold τ</b><span>How sure the model must be. Ends at 0.25.</span>" in page
    assert 'aria-label="Threshold τ: first 0.5, last 0.25' in page


@pytest.mark.parametrize("logs", [None, {}, LOGS, [], "logs", {"positive_votes": 7}])
def test_a_number_without_a_description_is_shown_by_its_name(logs: object) -> None:
    run = run_that_logged("positive_votes", logs=logs)
    assert described(run, "positive_votes") == Described("Positive votes", "")
    assert "<b>Positive votes</b><span>Ends at 0.25.</span>" in curves(run)


def test_a_nameless_number_has_no_title() -> None:
    assert described(RunFiles("quake", {}), "") == Described("", "")


def test_without_a_log_there_are_no_curves() -> None:
    assert curves(RunFiles("quake", {})) == ""
