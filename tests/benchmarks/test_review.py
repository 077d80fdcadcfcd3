"""The simulated reviewer: its page is made from rows alone, and one round is what it says."""

from pathlib import Path

import pytest

from benchmarks import review


def test_the_page_shows_what_the_rows_say() -> None:
    found = {strategy: [3, 5] for strategy in review.STRATEGIES} | {"random": [1, 1]}
    rows = [{"seed": seed, "pool": 100, "positives": 10, "found": found} for seed in range(2)]
    content = {
        "data": "digits", "rounds": 2, "answers": 5, "mistakes": 0.02, "rows": rows,
        "origin": {"commit": "abc", "dirty": False, "machine": {}, "versions": {}},
    }  # fmt: skip
    text = review.page(content)
    assert "| random | 1.0 | 1.0 | 10.0 (10.0 to 10.0) |" in text
    assert "| likely | 3.0 | 5.0 | 50.0 (50.0 to 50.0) |" in text
    assert "10.0 % are positive" in text


@pytest.mark.slow
def test_a_review_finds_no_more_than_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review, "METHOD", {"method": "ce", "epochs": 1})
    monkeypatch.setattr(review, "STRATEGIES", ("likely", "random", review.ONE_PASS))
    monkeypatch.setattr(review, "ROUNDS", 2)
    row = review.reviewed("toy-images", None, 0, 10)
    for found in row["found"].values():
        assert len(found) == 2
        assert 0 <= found[0] <= found[1] <= min(20, row["positives"])
    assert row["found"]["likely"][0] == row["found"][review.ONE_PASS][0]
    assert not list(Path().glob("run*"))
