import csv
import json
import shutil
import sys
from pathlib import Path

import pytest

from onesided.storage.names import name_in_cell, original_name
from tests.cli.command import TINY, call, fit
from tests.cli.pictures import BLUE, draw, draw_data

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="other systems do not allow these file names"
)

NAMES = (
    "=HYPERLINK(1).png",
    "'=1+1.png",
    "+1.png",
    "@sum.png",
    'quo"te,comma;semicolon.png',
    "line\nfeed.png",
    "carriage\rreturn.png",
    "tab\tbell\x07escape\x1b[31mred.png",
    "<script>alert(1)</script>.png",
    "</td>&amp;.png",
    "back\\slash\\xff.png",
    "not utf-8 \udcff\udcfe.png",
    "[bold]markup[ /red] :warning:.png",
    "snow \N{SNOWMAN} \N{RIGHT-TO-LEFT OVERRIDE}gnp.png",
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """P and U in which most names are hostile, and so is a folder above them."""
    folder = tmp_path_factory.mktemp("hostile") / "d\udcffir"
    draw_data(folder, positives=12, unlabelled=10)
    for number, name in enumerate(NAMES):
        draw(folder / "U" / name, 7000 + number, BLUE)
    return folder


@pytest.fixture(scope="module")
def hostile_run(hostile: Path) -> Path:
    run = hostile.parent / "<b>run</b>"
    # Nothing held out, so that every name is in every file.
    outcome = fit(hostile, run, "--set", "data.held_out=0")
    assert outcome.exit_code == 0, outcome.err
    return run


def names_in(table: Path, column: str) -> list[str]:
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    assert all(None not in row and None not in row.values() for row in rows)
    return [row[column] for row in rows]


def test_every_name_comes_back_from_the_split(hostile: Path, hostile_run: Path) -> None:
    cells = names_in(hostile_run / "split.csv", "item")
    items = [original_name(name_in_cell(cell)) for cell in cells]
    there = [path.relative_to(hostile).as_posix() for path in hostile.rglob("*.png")]
    assert sorted(items) == sorted(there)


def test_every_name_comes_back_from_the_scores(hostile: Path, hostile_run: Path) -> None:
    cells = names_in(hostile_run / "scores.csv", "item")
    items = [original_name(name_in_cell(cell)) for cell in cells]
    assert sorted(items) == sorted(
        path.relative_to(hostile).as_posix() for path in hostile.glob("U/**/*.png")
    )


def test_no_name_becomes_a_tag_in_the_report(hostile_run: Path) -> None:
    page = (hostile_run / "report.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert(1)" not in page
    assert "<b>run</b>" not in page
    assert "</td>&amp;.png" not in page
    assert "\x1b" not in page


def test_a_ranking_gives_every_name_back_and_no_formula(hostile: Path, hostile_run: Path) -> None:
    output = hostile.parent / "ranked.csv"
    (hostile / "U" / "broken\x1b[2J.png").write_bytes(b"")
    try:
        outcome = call("rank", hostile_run, hostile / "U", "-o", output)
    finally:
        (hostile / "U" / "broken\x1b[2J.png").unlink()
    assert outcome.exit_code == 0, outcome.err
    cells = names_in(output, "item")
    there = [path.relative_to(hostile).as_posix() for path in hostile.glob("U/**/*.png")]
    assert sorted(original_name(name_in_cell(cell)) for cell in cells) == sorted(there)
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert "broken\\x1b[2J.png" in outcome.err
    assert "\x1b" not in outcome.err


def test_a_run_is_repeated_although_its_folders_are_not_utf8(
    hostile: Path, hostile_run: Path
) -> None:
    words = ("--config", hostile_run / "config.toml", "-o", hostile.parent / "again", "--json")
    outcome = call("fit", *words, "--allow-degenerate")
    assert outcome.exit_code == 0, outcome.err
    again, first = (
        (run / "scores.csv").read_bytes() for run in (hostile.parent / "again", hostile_run)
    )
    assert again == first
    shutil.rmtree(hostile.parent / "again")


def test_names_of_unreadable_files_survive_in_the_result(tmp_path: Path) -> None:
    folder = draw_data(tmp_path, positives=12, unlabelled=20)
    (folder / "P" / "<i>\n\udcff.png").write_bytes(b"")
    words = ("-p", folder / "P", "-u", folder / "U", *TINY, "--tolerate", "0.5")
    outcome = call("fit", *words, "-o", tmp_path / "run", "--json", "--allow-degenerate")
    ((name, reason),) = json.loads(outcome.out)["skipped"]
    assert original_name(name) == "P/<i>\n\udcff.png"
    assert reason


def test_folders_and_outputs_of_odd_names_are_told_readably(tmp_path: Path) -> None:
    outcome = call("fit", "-p", tmp_path / "no\udcff\x1b", "-u", tmp_path, "-o", tmp_path / "x")
    assert outcome.exit_code == 2
    assert "no\\xff\\x1b does not exist" in outcome.err
