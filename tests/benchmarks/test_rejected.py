"""Weights of rejected items: the experiment changes them alone, and its page says what rows say."""

import copy
from typing import Any

import numpy as np
import pytest

from benchmarks import rejected
from onesided.methods.against_pool import TrainingRows

CLAIM = {
    "auc": 0.9,
    "found": 8,
    "figures": {"recall": [0.7, 0.9, 0.8], "precision": [None, None, 0.5]},
}


def rows() -> list[dict[str, Any]]:
    search = {weight: copy.deepcopy(CLAIM) for weight in rejected.WEIGHTS}
    return [
        {"row": f"{name} {seed}", "problem": name, "seed": seed, "cpu_seconds": 30,
         "rounds": {"unlabelled": [3, 5], "prior": [3, 6], "positive": [4, 7]},
         "search": copy.deepcopy(search), **({"trucks": search} if name == "cats" else {})}
        for name in ("digits", "cats", "harvey")
        for seed in range(2)
    ]  # fmt: skip


def content(of: list[dict[str, Any]]) -> dict[str, Any]:
    return {"rows": of, "minutes": 0.5, "origin": {"commit": "abc", "dirty": False}}


def verdicts(of: list[dict[str, Any]]) -> dict[str, list[str]]:
    return {words: cells for words, *cells in rejected._verdicts(of)}


def test_the_page_shows_what_the_rows_say() -> None:
    text = rejected.page(content(rows()))
    assert "| cats | 5.0 (5, 5) | 6.0 (6, 6) | 7.0 (7, 7) |" in text
    assert "| harvey | prior | 0.9000 | 8.0 | 2 of 2 |" in text
    assert "fails" not in text


def test_a_seed_with_fewer_positives_makes_a_claim_fail() -> None:
    changed = rows()
    changed[-1]["rounds"]["positive"] = [1, 5]
    assert verdicts(changed)["more on cats and Harvey, in each seed"] == ["holds", "**fails**"]
    assert verdicts(changed)["no fewer positives in any problem"] == ["holds", "holds"]


def test_a_false_interval_and_a_lower_auc_make_claims_fail() -> None:
    changed = rows()
    changed[0]["search"]["prior"]["figures"]["recall"][2] = 0.95
    changed[2]["trucks"]["positive"]["auc"] = 0.85
    found = verdicts(changed)
    assert found["intervals after a search"] == ["**fails**", "holds"]
    assert found["AUC with trucks"] == ["holds", "**fails**"]
    assert found["AUC after a search"] == ["holds", "holds"]


@pytest.mark.parametrize(("weight", "times"), [("unlabelled", 1), ("prior", 6), ("positive", 24)])
def test_rejected_items_weigh_what_the_experiment_says(weight: str, times: float) -> None:
    labelled, negative = np.arange(101) < 4, np.arange(101) == 100
    data = TrainingRows(np.zeros((101, 1)), labelled, negative)
    usual = data.balanced()
    with rejected.rejected_weigh(weight, prior=0.25):
        weights = data.balanced()
    assert weights[100] == pytest.approx(weights[50] * times)
    np.testing.assert_array_equal(weights[:100], usual[:100])
    np.testing.assert_array_equal(data.balanced(), usual)
