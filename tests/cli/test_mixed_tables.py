"""Tables as people have them: numbers with gaps, categories, dates, texts."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from onesided import PUClassifier
from onesided.data.problem.samples import CHUNK_ITEMS
from onesided.run.rank import rank_items
from tests.cli.command import TINY, call
from tests.run.mixed_tables import HEAD, mixed_rows, write_table


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table and the run trained on it."""
    folder = tmp_path_factory.mktemp("houses")
    write_table(folder / "houses.csv", mixed_rows())
    words = ("fit", "--table", folder / "houses.csv", "-o", folder / "run", "--allow-degenerate")
    outcome = call(*words, *TINY, "--epochs", "30")
    assert outcome.exit_code == 0, outcome.err
    assert "1 number, 1 category (town), 1 boolean (pool), 1 date (built), 1 text" in outcome.err
    assert "serial (it names the rows" in outcome.err
    return folder


def scores_in(path: Path, column: str) -> dict[str, float]:
    with path.open(newline="", encoding="utf-8") as file:
        return {row[column]: float(row["score"]) for row in csv.DictReader(file)}


def test_the_run_tells_positives_from_others(place: Path) -> None:
    result = json.loads((place / "run" / "result.json").read_text())
    assert result["pu"]["figures"]["proxy_auc"]["value"] > 0.7
    assert any("1 category (town)" in notice for notice in result["notices"])


def test_ranking_the_table_again_gives_the_scores_of_the_run(place: Path) -> None:
    outcome = call("rank", place / "run", place / "houses.csv", "-o", place / "ranked.csv")
    assert outcome.exit_code == 0, outcome.err
    assert "columns that were not used: serial" in outcome.err
    ranked = scores_in(place / "ranked.csv", "item")
    trained = scores_in(place / "run" / "scores.csv", "item")
    assert len(trained) == 90
    np.testing.assert_allclose([ranked[name] for name in trained], list(trained.values()), 1e-5)


def test_the_same_table_gives_the_same_model_to_the_bit(place: Path, tmp_path: Path) -> None:
    words = ("fit", "--table", place / "houses.csv", "-o", tmp_path / "run", "--allow-degenerate")
    assert call(*words, *TINY, "--epochs", "30").exit_code == 0
    for name in ("model.safetensors", "model.json", "scores.npz"):
        again, first = (tmp_path / "run" / name).read_bytes(), (place / "run" / name).read_bytes()
        assert again == first, name


def test_methods_are_compared_on_a_mixed_table(place: Path, tmp_path: Path) -> None:
    words = ("fit", "--table", place / "houses.csv", "-o", tmp_path / "run", "--allow-degenerate")
    outcome = call(*words, *TINY, "--compare", "puet", "--prior", "0.33")
    assert outcome.exit_code == 0, outcome.err
    assert (tmp_path / "run" / "compare" / "puet" / "model.json").exists()


def test_unknown_values_are_counted_and_wrong_cells_are_skipped(
    place: Path, tmp_path: Path
) -> None:
    rows = mixed_rows(40, seed=1)
    rows[3][2], rows[5][2], rows[7][3] = "Atlantis", "Utopia", "large"
    table = write_table(tmp_path / "new.csv", rows)
    outcome = call("rank", place / "run", table, "-o", tmp_path / "ranked.csv")
    assert outcome.exit_code == 0, outcome.err
    assert "Column 'town': 2 rows hold values that the model does not know" in outcome.err
    assert "house 7: it cannot be used: line 9, column 'area' holds 'large'" in outcome.err
    assert len(scores_in(tmp_path / "ranked.csv", "item")) == 39


def test_unknown_values_that_a_stopped_command_met_are_counted_too(
    place: Path, tmp_path: Path
) -> None:
    rows = mixed_rows(2 * CHUNK_ITEMS, seed=1)
    rows[3][2], rows[-1][2] = "Atlantis", "Utopia"
    table, output = write_table(tmp_path / "new.csv", rows), tmp_path / "ranked.csv"

    def stop(done: int, total: int) -> None:
        assert done < total, "one chunk of several is scored"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rank_items(place / "run", table, output, tolerate=0.05, progress=stop)
    told: list[str] = []
    rank_items(place / "run", table, output, tolerate=0.05, notify=told.append)
    assert any("Column 'town': 2 rows hold values" in sentence for sentence in told), told


def test_a_table_without_a_column_or_of_another_kind_is_refused(
    place: Path, tmp_path: Path
) -> None:
    rows = mixed_rows(40, seed=1)
    lacking = write_table(tmp_path / "a.csv", rows, (*HEAD[:2], "city", *HEAD[3:]))
    outcome = call("rank", place / "run", lacking, "-o", tmp_path / "ranked.csv")
    assert outcome.exit_code == 2
    assert "there is no column 'town'" in outcome.err
    for row in rows:
        row[4] = "long ago"
    other = write_table(tmp_path / "b.csv", rows)
    outcome = call("rank", place / "run", other, "-o", tmp_path / "ranked.csv")
    assert outcome.exit_code == 2
    assert "column 'built' holds 'long ago', which is not a date" in outcome.err


def test_a_model_file_whose_encoder_was_changed_is_refused(place: Path, tmp_path: Path) -> None:
    for name in ("model.json", "model.safetensors"):
        (tmp_path / name).write_bytes((place / "run" / name).read_bytes())
    content = json.loads((tmp_path / "model.json").read_text())
    content["encoder"]["columns"][0]["values"].pop()
    (tmp_path / "model.json").write_text(json.dumps(content))
    outcome = call("rank", tmp_path, place / "houses.csv", "-o", tmp_path / "ranked.csv")
    assert outcome.exit_code == 2
    assert "does not fit" in outcome.err or "do not fit" in outcome.err


def test_the_prior_of_a_mixed_table_is_estimated(place: Path) -> None:
    outcome = call("prior", "--table", place / "houses.csv", "--estimator", "km2", "--json")
    assert outcome.exit_code == 0, outcome.err


def test_an_estimator_opens_the_run(place: Path) -> None:
    loaded = PUClassifier.load(place / "run")
    assert loaded.n_features_in_ == 5
    assert loaded.feature_names_in_.tolist() == ["town", "area", "built", "pool", "note"]
