"""The simulated reviewer: its page is made from rows alone, and one round is what it says."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import review
from onesided.storage.atomic import write_text


def content() -> dict[str, object]:
    found = {strategy: [3, 5] for strategy in review.STRATEGIES} | {"random": [1, 1]}
    rows = [
        {"row": f"{name} {seed}", "problem": name, "seed": seed, "pool": 100, "positives": 10,
         "found": found, "cpu_seconds": 60}
        for name in review.PROBLEMS
        for seed in range(2)
    ]  # fmt: skip
    return {
        "rounds": 2, "answers": dict.fromkeys(review.PROBLEMS, 5), "mistakes": 0.02, "rows": rows,
        "origin": {"commit": "abc", "dirty": False, "machine": {}, "versions": {}},
    }  # fmt: skip


def test_the_page_shows_what_the_rows_say() -> None:
    text = review.page(content())
    assert text.count("| random | 1.0 | 1.0 | 10.0 (10.0 to 10.0) |") == 3
    assert text.count("| likely | 3.0 | 5.0 | 50.0 (50.0 to 50.0) |") == 3
    assert "of which 10 are positive" in text
    assert "2.0 CPU-minutes" in text


def test_the_plot_names_what_it_draws() -> None:
    drawn = review.plot(content())
    for word in (*review.DRAWN, *review.WORDS.values(), "answers"):
        assert f">{word}<" in drawn


def test_folders_hold_the_positives_that_they_say(tmp_path: Path) -> None:
    given, _, _ = review._two_folders(
        np.arange(1000), np.arange(1000, 9000),
        lambda value, path: write_text(path.with_suffix(".txt"), str(value)),
        tmp_path, 0,
    )  # fmt: skip
    values = [int(file.read_text()) for file in given["unlabelled"].iterdir()]
    assert len(values) == len(set(values)) == review.POOL
    assert sum(value < 1000 for value in values) == review.SHARE * review.POOL
    known = {int(file.read_text()) for file in given["positives"].iterdir()}
    assert len(known) == review.LABELLED
    assert not known & set(values)


@pytest.mark.slow
def test_a_review_finds_no_more_than_there_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(review, "METHOD", {"method": "ce", "epochs": 1})
    monkeypatch.setattr(review, "PENALTY", {})
    monkeypatch.setattr(review, "STRATEGIES", ("likely", "random", review.ONE_PASS))
    monkeypatch.setattr(review, "ROUNDS", 2)
    row = review.reviewed(({"data": "toy-images"}, {}, review.of_data_set), tmp_path, 0, 10)
    for found in row["found"].values():
        assert len(found) == 2
        assert 0 <= found[0] <= found[1] <= min(20, row["positives"])
    assert row["found"]["likely"][0] == row["found"][review.ONE_PASS][0]
