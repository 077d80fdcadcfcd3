"""The benchmark of embedding: both ways agree, and the page says what the file says."""

import pytest

from benchmarks import embedding
from benchmarks.embedding import AGREEMENT, PAGE, RESULT, page
from onesided.storage.atomic import read_json


def test_both_ways_to_the_features_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "THREADS", (1,))
    rows = embedding.measure(None)
    assert [row["images"] for row in rows] == ["CIFAR-10", "large"]
    assert all(row["disagreement"] <= AGREEMENT for row in rows)
    assert all(speed > 0 for row in rows for speed in row["per_second"].values())


def test_the_page_is_made_from_the_result_file() -> None:
    content = read_json(RESULT)
    assert PAGE.read_text(encoding="utf-8") == page(content)
    assert content["origin"]["dirty"] is False
    assert all(row["disagreement"] <= AGREEMENT for row in content["rows"])
