"""Large tables: what is written, what a ranking must be, and the page."""

from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from benchmarks.big_table import WIDTH, check_ranking, page, write_table


def test_a_table_has_names_numbers_and_labels_if_they_are_asked_for(tmp_path: Path) -> None:
    for labels in (False, True):
        write_table(tmp_path / "t.parquet", 50, labels)
        found = pyarrow.parquet.read_table(tmp_path / "t.parquet")
        assert found.shape == (50, 1 + WIDTH + labels)
        assert found["id"][49].as_py() == "item-49"


def test_a_ranking_that_lost_a_row_or_its_order_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ranked.parquet"

    def written(*scores: float) -> None:
        columns = {"score": scores, "rank": range(1, len(scores) + 1)}
        table = pyarrow.table({name: list(values) for name, values in columns.items()})
        pyarrow.parquet.write_table(table, path)

    written(0.9, 0.5, 0.5)
    check_ranking(path, 3)
    with pytest.raises(AssertionError, match="every row"):
        check_ranking(path, 4)
    written(0.5, 0.9)
    with pytest.raises(AssertionError, match="best first"):
        check_ranking(path, 2)


def test_the_page_says_how_memory_grew_where_there_are_two_sizes() -> None:
    row = {"rows": 10, "table_mb": 1, "seconds": 2.0, "cpu_seconds": 1.0, "peak_mb": 100}
    content = {"origin": {"machine": {"cpu": "x", "cores": 2}}, "width": 64, "rows": [row]}
    assert "times as high" not in page(content)
    larger = {**row, "rows": 100, "peak_mb": 110}
    text = page({**content, "rows": [row, larger]})
    assert "With 10 times the rows, peak memory is 1.10 times as high" in text
