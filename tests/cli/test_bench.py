"""`onesided bench list` and `show` can be read in a narrow terminal, and line by line in a file."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from onesided.bench.suite import read_suite
from onesided.cli import show
from tests.bench.test_tables import record
from tests.cli.command import call


@pytest.fixture(params=[80, 100])
def terminal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Return what a terminal of so many columns shows."""
    screen = io.StringIO()
    console = Console(file=screen, width=request.param, force_terminal=True, color_system=None)
    monkeypatch.setattr(show, "console", console)
    return screen


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return results of a table of which some rows were run, in two seeds."""
    runs = [(row, seed) for row in ("ncpu", "ncpu-self") for seed in (0, 1)]
    cells = [record(row, seed, 0.8 + seed / 10, seconds=1.0) for row, seed in runs]
    (tmp_path / "ncpu").mkdir()
    (tmp_path / "ncpu" / "table2.json").write_text(json.dumps({"cells": cells}))
    return tmp_path


@pytest.mark.parametrize("words", [(), ("ncpu", "--scale", "features")], ids=str)
def test_no_name_and_no_number_of_the_list_is_cut(
    words: tuple[str, ...], terminal: io.StringIO
) -> None:
    assert call("bench", "list", *words).exit_code == 0
    shown = terminal.getvalue()
    assert "…" not in shown
    for name in read_suite("ncpu").tables:
        assert f"ncpu/{name} " in shown


def test_published_and_measured_figures_are_shown_whole(
    terminal: io.StringIO, results: Path
) -> None:
    assert call("bench", "show", "ncpu/table2", "-o", results).exit_code == 0
    shown = terminal.getvalue()
    assert "…" not in shown
    for number in ("40.58 ± 22.9", "88.28 ± 0.6", "85.00 ± 7.1"):
        assert number in shown


def test_a_file_has_each_table_in_one_line_with_cells_and_hours() -> None:
    outcome = call("bench", "list", "ncpu", "--scale", "features")
    (line,) = [line for line in outcome.out.splitlines() if line.startswith("ncpu/table3 ")]
    assert line.split()[1] == "12"
    assert line.rstrip().endswith(read_suite("ncpu").tables["table3"].title)


def test_a_row_has_a_line_of_the_paper_and_one_of_here(results: Path) -> None:
    lines = call("bench", "show", "ncpu/table2", "-o", results).out.splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("NcPU"))
    assert lines[place].split()[1:5] == ["paper", "88.28", "±", "0.6"]
    assert lines[place + 1].split()[:4] == ["here", "85.00", "±", "7.1"]
    assert any(line.startswith("no alignment, s; ") for line in lines), "rows that were not run"


def test_a_scale_that_does_not_exist_is_refused_in_a_sentence() -> None:
    outcome = call("bench", "list", "ncpu", "--scale", "tiny")
    assert outcome.exit_code == 2
    assert "tiny" in outcome.err
