"""Documents: a column of a table, or folders of .txt files."""

import json
from pathlib import Path

import numpy as np
import pytest

from onesided.run.config import OwnConfig
from onesided.run.load import load_data
from tests.cli.command import TINY, call
from tests.cli.test_mixed_tables import scores_in
from tests.run.mixed_tables import mixed_rows, write_table

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with P and U, folders of texts, and the run trained on them."""
    place = tmp_path_factory.mktemp("texts")
    for row in mixed_rows(160):
        side = place / ("P" if row[0] == "positive" else "U")
        side.mkdir(exist_ok=True)
        (side / f"{row[1]}.txt").write_text(f"{row[6]} {HOSTILE} {'and on ' * 200}")
    words = ("fit", "-p", place / "P", "-u", place / "U", "-o", place / "run")
    outcome = call(*words, *TINY, "--epochs", "30", "--allow-degenerate")
    assert outcome.exit_code == 0, outcome.err
    return place


def test_folders_of_texts_are_learnt_from(folders: Path) -> None:
    result = json.loads((folders / "run" / "result.json").read_text())
    assert result["pu"]["figures"]["proxy_auc"]["value"] > 0.7


def test_the_report_shows_texts_escaped_and_shortened(folders: Path) -> None:
    page = (folders / "run" / "report.html").read_text()
    assert "&lt;script&gt;alert(1)" in page
    assert HOSTILE not in page
    assert "says visitor" in page
    assert "and on " * 60 not in page


def test_a_folder_of_texts_is_ranked_with_the_scores_of_the_run(
    folders: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    words = ("rank", folders / "run", folders / "U", "-o", tmp_path / "r.csv", "--page", page)
    outcome = call(*words)
    assert outcome.exit_code == 0, outcome.err
    ranked = scores_in(tmp_path / "r.csv", "item")
    trained = scores_in(folders / "run" / "scores.csv", "item")
    assert len(ranked) == len(trained) == 120
    again = [ranked[name] for name in trained]
    np.testing.assert_allclose(again, list(trained.values()), 1e-5)
    assert HOSTILE not in page.read_text()
    assert "says visitor" in page.read_text()


def test_a_model_of_texts_refuses_other_folders(folders: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    outcome = call("rank", folders / "run", tmp_path / "empty", "-o", tmp_path / "r.csv")
    assert outcome.exit_code == 2
    assert "holds no text" in outcome.err


def test_a_column_is_read_as_text_on_request(tmp_path: Path) -> None:
    towns = enumerate(mixed_rows(60))
    rows = [[row[0], f"{row[2]} {number}", f"S{number}"] for number, row in towns]
    table = write_table(tmp_path / "towns.csv", rows, ("label", "Town", "serial"))
    words = ("fit", "--table", table, "-o", tmp_path / "run", "--text", "town", *TINY)
    outcome = call(*words, "--allow-degenerate")
    assert outcome.exit_code == 0, outcome.err
    assert "Columns: 1 text (Town)." in outcome.err
    assert '[data.kinds]\ntown = "text"' in (tmp_path / "run" / "config.toml").read_text()
    outcome = call("fit", "--table", table, "-o", tmp_path / "b", "--text", "city", *TINY)
    assert outcome.exit_code == 2
    assert "column 'city', which the table does not have" in outcome.err


def test_text_goes_with_a_table_alone(folders: Path, tmp_path: Path) -> None:
    words = ("fit", "-p", folders / "P", "-u", folders / "U", "-o", tmp_path / "run")
    outcome = call(*words, "--text", "x")
    assert outcome.exit_code == 2
    assert "--text goes with --table" in outcome.err


def test_rows_of_one_group_are_never_on_both_sides(tmp_path: Path) -> None:
    rows = mixed_rows()
    for number, row in enumerate(rows):
        row[7] = f"street {number % 9}"
    table = write_table(tmp_path / "houses.csv", rows)
    words = ("fit", "--table", table, "-o", tmp_path / "run", "--group", "Serial", *TINY)
    outcome = call(*words, "--allow-degenerate")
    assert outcome.exit_code == 0, outcome.err
    assert "Whole groups are held out, of 9" in outcome.err
    street = {row[1]: row[7] for row in rows}
    sides: dict[bool, set[str]] = {True: set(), False: set()}
    for line in (tmp_path / "run" / "split.csv").read_text().splitlines()[1:]:
        name, role = line.rsplit(",", 1)
        sides[role.startswith("held-out")].add(street[name])
    assert sides[True]
    assert not sides[True] & sides[False]


def test_files_are_grouped_by_the_folder_they_lie_in(tmp_path: Path) -> None:
    for number, row in enumerate(mixed_rows(160)):
        side = tmp_path / ("P" if row[0] == "positive" else "U") / f"street {number % 5}"
        side.mkdir(parents=True, exist_ok=True)
        (side / f"{number}.txt").write_text(row[6])
    folders = {"positive_folder": str(tmp_path / "P"), "unlabelled_folder": str(tmp_path / "U")}
    split = load_data(OwnConfig(name="folders", group="parent", **folders)).split
    assert split.held_out is not None
    assert split.train.groups is not None
    assert split.held_out.groups is not None
    assert not set(split.train.groups) & set(split.held_out.groups)
    for name, group in zip(split.train.names, split.train.groups, strict=True):
        assert name.split("/")[1] == group
    words = ("fit", "-p", tmp_path / "P", "-u", tmp_path / "U", "-o", tmp_path / "run")
    outcome = call(*words, "--group", "street")
    assert outcome.exit_code == 2
    assert "'parent', the folder that they lie in" in outcome.err
