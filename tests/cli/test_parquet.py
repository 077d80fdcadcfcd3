"""Tables as Parquet files, in and out: the same models and rankings as from CSV."""

import csv
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onesided.data.read.parquet_rows import ParquetRows, number_columns
from onesided.storage.parquet import numbers_in, open_parquet
from tests.cli.command import TINY, assert_refused, call

ROWS = 90


def columns() -> dict[str, list[object]]:
    random = np.random.default_rng(0)
    positive = np.arange(ROWS) % 3 == 0
    numbers = random.standard_normal((ROWS, 3)).astype(np.float32) + 2 * positive[:, None]
    return {
        "id": [f"i{row}" for row in range(ROWS)],
        "label": ["positive" if one else "unlabelled" for one in positive],
        **{name: numbers[:, place].tolist() for place, name in enumerate("abc")},
    }


def written(path: Path, table: dict[str, list[object]]) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.table(table), path, row_group_size=20)
        return path
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parquet")
    table = written(folder / "items.parquet", columns())
    fitted = call(
        "fit",
        "--table",
        table,
        "-o",
        folder / "run",
        "--method",
        "linear",
        "-q",
        "--allow-degenerate",
    )
    assert fitted.exit_code == 0, fitted.err
    return folder / "run"


def scores_of(path: Path) -> dict[str, float]:
    if path.suffix == ".parquet":
        found = pq.read_table(path).to_pydict()
        assert list(found) == ["item", "score", "rank", "decision"]
        assert found["rank"] == list(range(1, len(found["rank"]) + 1))
        return dict(zip(found["item"], found["score"], strict=True))
    with path.open(newline="") as file:
        return {row["item"]: float(row["score"]) for row in csv.DictReader(file)}


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("output", ["ranked.parquet", "ranked.csv"])
def test_parquet_and_csv_give_the_same_ranking(
    kind: str, output: str, run: Path, tmp_path: Path
) -> None:
    table = written(tmp_path / f"items.{kind}", columns())
    assert call("rank", run, table, "-o", tmp_path / output, "-q").exit_code == 0
    first = call("rank", run, run.parent / "items.parquet", "-o", tmp_path / "first.csv", "-q")
    assert first.exit_code == 0, first.err
    expected, found = scores_of(tmp_path / "first.csv"), scores_of(tmp_path / output)
    assert list(found) == list(expected)
    assert found == pytest.approx(expected, abs=1e-8)


def test_columns_are_found_by_name_in_any_order(run: Path, tmp_path: Path) -> None:
    given = columns()
    turned = {name: given[name] for name in ("c", "id", "b", "a")}
    turned["further"] = [1.5] * ROWS
    table = written(tmp_path / "items.parquet", turned)
    outcome = call("rank", run, table, "-o", tmp_path / "ranked.csv")
    assert outcome.exit_code == 0, outcome.err
    assert "columns that were not used: further" in outcome.err
    same = call("rank", run, run.parent / "items.parquet", "-o", tmp_path / "first.csv")
    assert same.exit_code == 0
    assert scores_of(tmp_path / "ranked.csv") == scores_of(tmp_path / "first.csv")
    del turned["b"]
    written(tmp_path / "items.parquet", turned)
    assert_refused(call("rank", run, table, "-o", tmp_path / "two.csv"), "there is no column 'b'")


def test_embeddings_as_lists_are_learnt_from_and_ranked(tmp_path: Path) -> None:
    given = columns()
    lists = [list(row) for row in zip(given["a"], given["b"], given["c"], strict=True)]
    for kind in (pa.list_(pa.float32()), pa.list_(pa.float64(), 3)):
        table = pa.table({"id": given["id"], "label": given["label"], "v": pa.array(lists, kind)})
        pq.write_table(table, tmp_path / "items.parquet")
        words = ("--method", "linear", "--overwrite", "-q", "--allow-degenerate")
        path = tmp_path / "items.parquet"
        fitted = call("fit", "--table", path, "-o", tmp_path / "run", *words)
        assert fitted.exit_code == 0, fitted.err
        ranked = call("rank", tmp_path / "run", path, "-o", tmp_path / "ranked.parquet")
        assert ranked.exit_code == 0, ranked.err
        assert len(scores_of(tmp_path / "ranked.parquet")) == ROWS


def test_rows_with_gaps_are_skipped_and_told(run: Path, tmp_path: Path) -> None:
    given = columns()
    given["b"][40] = None
    table = written(tmp_path / "items.parquet", given)
    outcome = call("rank", run, table, "-o", tmp_path / "ranked.csv")
    assert outcome.exit_code == 0, outcome.err
    assert "Skipped i40: it cannot be used: row 41 holds a gap" in outcome.err
    assert len(scores_of(tmp_path / "ranked.csv")) == ROWS - 1


def test_paths_and_words_in_parquet_are_read_as_in_csv(data: Path, tmp_path: Path) -> None:
    files = [*sorted((data / "P").iterdir()), *sorted((data / "U").iterdir())]
    labels = ["positive" if file.parent.name == "P" else "unlabelled" for file in files]
    given: dict[str, list[object]] = {
        "path": [f"{one.parent.name}/{one.name}" for one in files],
        "label": [*labels],
    }
    table = written(data / "items.parquet", given)
    fitted = call("fit", "--table", table, "-o", tmp_path / "run", *TINY, "--allow-degenerate")
    assert fitted.exit_code == 0, fitted.err
    ranked = call("rank", tmp_path / "run", table, "-o", tmp_path / "ranked.parquet")
    assert ranked.exit_code == 0, ranked.err
    assert set(scores_of(tmp_path / "ranked.parquet")) == set(given["path"])
    mixed = columns()
    mixed["colour"] = ["red" if row % 2 else "blue" for row in range(ROWS)]
    path = written(tmp_path / "mixed.parquet", mixed)
    words = ("--method", "linear", "-q", "--allow-degenerate")
    assert call("fit", "--table", path, "-o", tmp_path / "mixed", *words).exit_code == 0
    both = call("rank", tmp_path / "mixed", path, "-o", tmp_path / "mixed.csv")
    assert both.exit_code == 0, both.err


def test_chunks_are_those_of_the_file_wherever_reading_begins(tmp_path: Path) -> None:
    path = written(tmp_path / "items.parquet", columns())
    file = open_parquet(path)
    numbers = number_columns(file)
    assert numbers is not None
    everything = np.concatenate([numbers_in(one, numbers) for one in file.batches(numbers)])
    assert everything.shape == (ROWS, 3)
    items = ParquetRows(file, numbers)
    records = list(items.records(tmp_path))
    for start in (0, 7, 14, 70, 3, 88):
        chunk = items.read(records[start : start + 7])
        np.testing.assert_array_equal(chunk.values, everything[start : start + 7])


def test_rows_that_do_not_follow_each_other_are_read_alone(tmp_path: Path) -> None:
    table = columns()
    table["a"][60] = None
    file = open_parquet(written(tmp_path / "items.parquet", table))
    numbers = number_columns(file)
    assert numbers is not None
    rows = ParquetRows(file, numbers)
    records = list(rows.records(tmp_path))
    chunk = rows.read([records[row] for row in (3, 4, 41, 60, 89)])
    expected = [[table[name][row] for name in "abc"] for row in (3, 4, 41, 89)]
    np.testing.assert_array_equal(chunk.values, np.array(expected, np.float32))
    assert list(chunk.reasons) == [3]
    assert "row 61 holds a gap" in chunk.reasons[3]
    assert len(rows.read([]).values) == 0


def test_a_missing_library_is_told_before_anything_is_scored(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = written(tmp_path / "items.csv", columns())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    refused = call("rank", run, table, "-o", tmp_path / "ranked.parquet")
    assert_refused(refused, "pip install 'onesided[parquet]'")
    assert [path.name for path in tmp_path.iterdir()] == ["items.csv"]


def test_files_that_are_no_parquet_are_refused(run: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"PAR1 nothing PAR1")
    assert_refused(call("rank", run, bad, "-o", tmp_path / "r.csv"), "cannot be read as Parquet")
    assert_refused(call("fit", "--table", bad, "-o", tmp_path / "new"), "cannot be read as Parquet")
    uneven = pa.table({"v": [[1.0, 2.0, 3.0], [1.0]]})
    pq.write_table(uneven, bad)
    assert_refused(call("rank", run, bad, "-o", tmp_path / "r.csv"), "a list of another length")
    labelled = uneven.append_column("label", pa.array(["positive", "unlabelled"]))
    pq.write_table(labelled, bad)
    assert_refused(call("fit", "--table", bad, "-o", tmp_path / "new"), "have different lengths")


def test_one_short_list_among_many_is_skipped_and_the_ranking_ends(
    run: Path, tmp_path: Path
) -> None:
    lists = [[float(number), 1.0, 2.0] for number in range(60)]
    lists[45] = [1.0]
    pq.write_table(pa.table({"v": lists}), tmp_path / "items.parquet")
    outcome = call("rank", run, tmp_path / "items.parquet", "-o", tmp_path / "ranked.csv")
    assert outcome.exit_code == 0, outcome.err
    assert "row 46 holds a gap, a list of another length" in outcome.err
    assert len((tmp_path / "ranked.csv").read_text().splitlines()) == 60
