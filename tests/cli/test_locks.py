"""Every command that writes into a run folder is there alone."""

from pathlib import Path

from onesided.storage.lock import alone
from tests.cli.command import assert_refused, call, contents


def test_no_command_writes_beside_another(run: Path, shared_data: Path) -> None:
    before = contents(run)
    with alone(run):
        for words in (
            ("evaluate", run, "--threshold", "0.3"),
            ("report", run),
            ("rank", run, shared_data / "U", "-o", run / "ranked.csv"),
        ):
            assert_refused(call(*words), "Another command is at work in", run)
    assert contents(run) == before


def test_a_ranking_does_not_overwrite_a_file_of_the_run(run: Path, shared_data: Path) -> None:
    before = contents(run)
    for words in (("-o", run / "scores.csv"), ("--page", run / "report.html")):
        outcome = call("rank", run, shared_data / "U", *words)
        assert_refused(outcome, "is a file of the run", "Choose another name")
    assert contents(run) == before
