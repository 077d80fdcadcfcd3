"""Signs of life: nothing is cut off in a narrow terminal, and a pipe gets a line a minute."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from onesided.cli import progress, show
from onesided.cli.progress import Bar, Lines, bars, counting, minute_by_minute
from tests.cli.command import call, fit

LONG = (
    "trying the average of a linear model, penalty 0.3, features on one scale and a forest, "
    "fitted again with its likely positives, fold 4 of 5\n"
    "best so far: a linear model, penalty 0.3, features on one scale, proxy AUC 76.5%"
)


def screen(monkeypatch: pytest.MonkeyPatch, *, width: int, terminal: bool) -> io.StringIO:
    """Put a terminal, or a file, of so many columns in the place of stderr."""
    written = io.StringIO()
    shown = Console(file=written, width=width, force_terminal=terminal, markup=False)
    for module in (show, progress):
        monkeypatch.setattr(module, "notes", shown)
    return written


@pytest.mark.parametrize("width", [80, 100])
def test_a_terminal_cuts_no_word_of_progress_off(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen(monkeypatch, width=width, terminal=True)
    shown = bars()
    bar = Bar("training Weak-to-strong contrastive learning", shown)
    bar.tried(1234, 5678, LONG)
    plain = Console(file=io.StringIO(), width=width)
    plain.print(shown.get_renderable())
    assert isinstance(plain.file, io.StringIO)
    text = plain.file.getvalue()
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for word in ("comparing models", "22%", "left", *LONG.split()):
        assert word in text


def test_a_search_shows_a_share_and_images_are_counted() -> None:
    lines = Lines("training auto")
    lines.embed(5, 750)
    assert (lines.title, lines.count()) == ("computing features", "5/750")
    lines.tried(123, 492, "trying a forest")
    assert (lines.title, lines.count()) == ("comparing models", "25%")
    lines(3, 40)
    assert (lines.title, lines.count(), lines.status) == ("training auto", "3/40", "")


def test_a_pipe_gets_a_line_at_the_start_and_then_one_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = screen(monkeypatch, width=80, terminal=False)
    lines = Lines("reading")
    assert written.getvalue() == "reading ...\n"
    lines(256, 1650)
    waits: list[float] = []

    def ended(seconds: float) -> bool:
        waits.append(seconds)
        return len(waits) == 3

    with minute_by_minute(lines, ended):
        pass
    assert waits == [60.0, 60.0, 60.0]
    told = written.getvalue().splitlines()
    assert len(told) == 3, "the start and two minutes"
    assert all(line.startswith("reading: 256/1650, ") for line in told[1:])
    assert lines.line(60) == "reading: 256/1650, 1 min 0 s so far, about 5 min 27 s left"


def test_nothing_is_told_when_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    written = screen(monkeypatch, width=80, terminal=False)
    with counting("reading", quiet=True) as phase:
        phase(1, 2)
    assert written.getvalue() == ""


def test_the_command_says_what_it_does_where_there_is_no_terminal(
    shared_data: Path, tmp_path: Path
) -> None:
    folders = ("-p", shared_data / "P", "-u", shared_data / "U", "-o", tmp_path / "run")
    words = ("--method", "ce", "--epochs", "1", "--set", "backbone.width=0.125")
    outcome = call("fit", *folders, *words, "--allow-degenerate")
    assert outcome.exit_code == 0
    assert "reading ...\n" in outcome.err
    assert "training CE ...\n" in outcome.err


def test_a_finished_run_says_that_nothing_is_trained(shared_data: Path, run: Path) -> None:
    folders = ("-p", shared_data / "P", "-u", shared_data / "U", "-o", run)
    words = ("--method", "ce", "--epochs", "1", "--device", "cpu")
    tiny = ("--set", "backbone.width=0.125", "--set", "train.batch_size=16")
    outcome = call("fit", *folders, *words, *tiny, "--allow-degenerate")
    assert outcome.exit_code == 0
    assert f"{run} holds this run, and it is finished: nothing is trained again." in outcome.err
    (run / "result.json").unlink()
    outcome = call("fit", *folders, *words, *tiny, "--allow-degenerate")
    assert f"Resuming the run in {run}: training continues from" in outcome.err
    assert "Resuming" not in fit(shared_data, run).err, "quiet"
